"""`sessions`: session databases that hold compaction rows."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.cli.parser import Verbs, add_group, add_verb

if TYPE_CHECKING:
    import sqlite3

    from midstream.sessions.findings import Finding, Pointed

OK, FOUND = 0, 1
HOLDS, WOULD, TAKEN_OUT = "holds", "would be taken out of", "taken out of"


def add_verbs(verbs: Verbs) -> None:
    inner = add_group(
        verbs,
        "sessions",
        "find stored compaction rows in a session database (SQLite), and take them out",
        "midstream sessions check state.sqlite\n"
        "midstream sessions repair state.sqlite\n"
        "midstream sessions repair state.sqlite --write",
    )
    parser = add_verb(
        inner,
        "check",
        check,
        "say which stored rows are the server's own summaries; exit 1 if there are any",
        "midstream sessions check state.sqlite --json",
    )
    parser.add_argument("db", metavar="DB", help="an SQLite file; its -wal file may lie beside it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser = add_verb(
        inner,
        "repair",
        repair,
        "say what would be changed (exit 1), or change it with --write, after a backup",
        "midstream sessions repair state.sqlite --write",
    )
    parser.add_argument("db", metavar="DB", help="an SQLite file that no server is using")
    parser.add_argument("--write", action="store_true", help="change the file, after a backup")
    parser.add_argument("--json", action="store_true", help="print JSON")


def check(args: argparse.Namespace) -> int:
    findings = _looked_through(args)
    _report(args, findings, HOLDS)
    return FOUND if findings else OK


def repair(args: argparse.Namespace) -> int:
    findings = _looked_through(args)
    if not findings or not args.write:
        _report(args, findings, WOULD)
        return FOUND if findings else OK
    findings, backup = _written(args)
    _report(args, findings, TAKEN_OUT, backup)
    return OK


def _looked_through(args: argparse.Namespace) -> "list[Finding]":
    from midstream.sessions.database import reading

    with _shown("looking through"), reading(Path(args.db)) as database:
        return _found(database, args.db)


def _written(args: argparse.Namespace) -> "tuple[list[Finding], Path | None]":
    from midstream.sessions.database import backed_up, writing
    from midstream.sessions.layouts import SessionsError
    from midstream.sessions.repair import repair as carry_out

    path = Path(args.db)
    with _shown("repairing") as progress, writing(path) as database:
        findings = _found(database, args.db)  # again: from here on nobody else writes
        if not findings:
            return findings, None
        copy = backed_up(database, path, progress)
        try:
            carry_out(database, findings, args.db)
        except SessionsError as error:
            raise SessionsError(f"{error}; the backup is {copy}") from None
    return findings, copy


def _found(database: "sqlite3.Connection", name: str) -> "list[Finding]":
    from midstream.sessions.findings import find
    from midstream.sessions.layouts import layouts_of

    return [f for layout in layouts_of(database, name) for f in find(database, layout)]


@contextmanager
def _shown(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar in a terminal while something long is done; what is given says how far it is."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _report(
    args: argparse.Namespace, findings: "list[Finding]", verb: str, backup: Path | None = None
) -> None:
    if args.json:
        from midstream.cli.capture.output import print_json

        document: dict[str, Any] = {
            "database": args.db,
            "rows": sum(len(finding.removed) for finding in findings),
            "sessions": [_as_json(finding) for finding in findings],
        }
        print_json(document | ({"backup": str(backup)} if backup is not None else {}))
        return
    if not findings:
        sys.stdout.write(f"{args.db}: clean\n")
        return
    if backup is not None:
        sys.stdout.write(f"backup: {backup}\n")
    for finding in findings:
        _print(finding, args.db, verb)
    if verb == WOULD:
        sys.stdout.write("nothing was changed; --write does it, after a backup\n")


def _print(finding: "Finding", database: str, verb: str) -> None:
    from midstream.cli.capture.output import printable

    count = len(finding.removed)
    rows = f"{count} filed summar{'y' if count == 1 else 'ies'}"
    session = f'session "{finding.session}"' if finding.session else "the session"
    said = (
        f"{session} of {database} holds {rows}"
        if verb == HOLDS
        else f"{rows} {verb} {session} of {database}"
    )
    lines = [said, *(f"  row {identifier}" for identifier in finding.removed)]
    lines += [
        f"  {moved.id}: parent {moved.old_parent} -> {moved.new_parent or 'none'}"
        for moved in finding.moved
    ]
    lines += [f"  record {pointed.id}: {_range(pointed)}" for pointed in finding.pointed]
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))


def _range(pointed: "Pointed") -> str:
    old = f"{pointed.old_from} to {pointed.old_to}"
    if pointed.new_from is None:
        return f"{old}, of which nothing is left on one branch: it stays as it is"
    return f"{old} -> {pointed.new_from} to {pointed.new_to}"


def _as_json(finding: "Finding") -> dict[str, object]:
    return {
        "session": finding.session,
        "table": finding.layout.messages,
        "rows": finding.removed,
        "reparented": finding.moved,
        "repointed": finding.pointed,
    }
