"""`export` and `import`: HAR, mitmproxy flows, JSON lines."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from midstream.cli.capture.output import progress, report_damage
from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import CaptureError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord
    from midstream.adapters.capture_open import Source

FORMS = ("har", "mitm", "jsonl")


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "export",
        export,
        "write a capture for a browser (har), for mitmweb (mitm), or as JSON lines (jsonl)",
        "midstream capture export har captures --out case.har\n"
        "midstream capture export mitm captures --out case.mitm --received\n"
        "midstream capture export jsonl captures --out case.jsonl",
    )
    parser.add_argument("form", choices=FORMS, help="the form to write")
    parser.add_argument("file", metavar="FILE", help="a capture (or a HAR, or mitmproxy flows)")
    parser.add_argument("--out", metavar="FILE", required=True, help="where to write")
    parser.add_argument(
        "--exchange", metavar="N", action="append", type=int, help="only this exchange; repeatable"
    )
    views = parser.add_mutually_exclusive_group()
    views.add_argument(
        "--seen-by",
        choices=("client", "server"),
        default="client",
        dest="view",
        help="har, mitm: all frames as this side saw them (client): its own as it sent them, "
        "the other side's as midstream handed them on",
    )
    for view, what in (
        ("received", "as both sides sent them, before midstream changed anything"),
        ("sent", "as midstream handed them on, to both sides"),
    ):
        views.add_argument(
            f"--{view}",
            action="store_const",
            const=view,
            dest="view",
            help=f"har, mitm: all frames {what}",
        )
    parser = add_verb(
        verbs,
        "import",
        import_,
        "turn a HAR or mitmproxy flows into a capture",
        "midstream capture import case.har --out case.cap",
    )
    parser.add_argument("file", metavar="FILE", help="a HAR, or mitmproxy flows")
    parser.add_argument("--out", metavar="FILE", required=True, help="where to write")


def export(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_exchanges import View, gathered
    from midstream.adapters.capture_open import open_capture

    source = open_capture(args.file)
    only, found = frozenset(args.exchange or ()), set[int]()
    with _writing(Path(args.out), source) as file:
        records = _noting(progress(source, "exporting"), found)
        if args.form == "jsonl":
            from midstream.adapters.capture_jsonl import write_jsonl

            write_jsonl((r for r in records if not only or r.exchange in only), file)
        else:
            exchanges = gathered(records, seen_by=View(args.view), only=only)
            if args.form == "har":
                from midstream.adapters.capture_har import write_har

                write_har(exchanges, file)
            else:
                from midstream.adapters.capture_mitm import write_flows

                write_flows(exchanges, file)
        if missing := sorted(only - found):
            raise CaptureError(f"{args.file}: has no exchange {', '.join(map(str, missing))}")
    sys.stdout.write(f"written to {args.out}\n")
    return report_damage(source, "export")


def import_(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_format import HEADER, encode
    from midstream.adapters.capture_open import open_capture

    source = open_capture(args.file)
    count = 0
    with _writing(Path(args.out), source) as file:
        file.write(HEADER)
        for record in progress(source, "importing"):
            file.write(encode(record))
            count += 1
    sys.stdout.write(f"{count} records written to {args.out}\n")
    return report_damage(source, "import")


def _noting(records: "Iterable[StoredRecord]", found: set[int]) -> "Iterator[StoredRecord]":
    """Pass records on, and note of which exchanges they are."""
    for record in records:
        found.add(record.exchange)
        yield record


@contextmanager
def _writing(path: Path, source: "Source") -> Iterator[BinaryIO]:
    """Make a file that has its name only when it is whole. Raises CaptureError."""
    _refuse_read(path, source)
    if path.exists() and not path.is_file():  # a pipe or a device cannot be put in its place
        with os.fdopen(created(path, source), "wb") as file:
            yield file
        return
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        with os.fdopen(created(part, source), "wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def created(path: Path, source: "Source") -> int:
    """Make a file for its owner alone and return its descriptor. Raises CaptureError."""
    _refuse_read(path, source)
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be written: {error.strerror}") from None


def _refuse_read(path: Path, source: "Source") -> None:
    if any(path.exists() and path.samefile(known) for known in source.paths):
        raise CaptureError(f"{path}: is the capture that is read, name another to write")
