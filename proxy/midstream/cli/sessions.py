"""`sessions`: session databases that hold compaction rows."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.cli.parser import Verbs, add_group, add_verb

if TYPE_CHECKING:
    from midstream.sessions.findings import Finding

OK, FOUND = 0, 1


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
    from midstream.sessions.database import reading
    from midstream.sessions.findings import find
    from midstream.sessions.layouts import layouts_of

    path = Path(args.db)
    with reading(path) as database:
        findings = [f for layout in layouts_of(database, args.db) for f in find(database, layout)]
    _report(args, findings, "holds")
    return FOUND if findings else OK


def repair(args: argparse.Namespace) -> int:
    from midstream.sessions.database import backed_up, reading, writing
    from midstream.sessions.findings import find
    from midstream.sessions.layouts import layouts_of
    from midstream.sessions.repair import repair as carry_out

    path = Path(args.db)
    with reading(path) as database:
        layouts = layouts_of(database, args.db)
        findings = [f for layout in layouts for f in find(database, layout)]
    if not findings or not args.write:
        _report(args, findings, "would be taken out of")
        return FOUND if findings else OK
    with writing(path) as database:
        database.execute("BEGIN IMMEDIATE")  # nobody else writes from here on
        copy = backed_up(path)
        findings = [f for layout in layouts for f in find(database, layout)]
        carry_out(database, findings, args.db)
    _report(args, findings, "were taken out of", backup=str(copy))
    return OK


def _report(
    args: argparse.Namespace, findings: "list[Finding]", verb: str, backup: str | None = None
) -> None:
    if args.json:
        from midstream.cli.capture.output import print_json

        document: dict[str, Any] = {
            "database": args.db,
            "rows": sum(len(finding.removed) for finding in findings),
            "sessions": [_as_json(finding) for finding in findings],
        }
        print_json(document | ({"backup": backup} if backup is not None else {}))
        return
    if not findings:
        sys.stdout.write(f"{args.db}: clean\n")
        return
    if backup is not None:
        sys.stdout.write(f"backup: {backup}\n")
    for finding in findings:
        _print(finding, args.db, verb)
    if verb == "would be taken out of":
        sys.stdout.write("nothing was changed; --write does it, after a backup\n")


def _print(finding: "Finding", database: str, verb: str) -> None:
    count = len(finding.removed)
    rows = f"{count} filed summar{'y' if count == 1 else 'ies'}"
    session = f'session "{finding.session}"' if finding.session else "the session"
    said = (
        f"{session} of {database} holds {rows}"
        if verb == "holds"
        else f"{rows} {verb} {session} of {database}"
    )
    lines = [said, *(f"  row {identifier}" for identifier in finding.removed)]
    lines += [
        f"  {moved.id}: parent {moved.old_parent} -> {moved.new_parent or 'none'}"
        for moved in finding.moved
    ]
    for pointed in finding.pointed:
        if pointed.new_from is None:
            lines.append(f"  record {pointed.id}: nothing of its range is left, it stays as it is")
        else:
            lines.append(
                f"  record {pointed.id}: {pointed.old_from} to {pointed.old_to} -> "
                f"{pointed.new_from} to {pointed.new_to}"
            )
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _as_json(finding: "Finding") -> dict[str, object]:
    return {
        "session": finding.session,
        "table": finding.layout.messages,
        "rows": finding.removed,
        "reparented": finding.moved,
        "repointed": finding.pointed,
    }
