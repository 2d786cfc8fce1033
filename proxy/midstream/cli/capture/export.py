"""`export` and `import`: HAR, mitmproxy flows, JSON lines."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.output import progress, report_damage
from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import CaptureError

if TYPE_CHECKING:
    from midstream.adapters.capture_open import Source

FORMS = ("har", "mitm", "jsonl")


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "export",
        export,
        "write a capture for a browser (har), for mitmweb (mitm), or as JSON lines (jsonl)",
        "midstream capture export har captures --out case.har\n"
        "midstream capture export mitm captures --out case.mitm --seen-by server\n"
        "midstream capture export jsonl captures --out case.jsonl",
    )
    parser.add_argument("form", choices=FORMS, help="the form to write")
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("--out", metavar="FILE", required=True, help="where to write")
    parser.add_argument(
        "--exchange", metavar="N", action="append", type=int, help="only this exchange; repeatable"
    )
    parser.add_argument(
        "--seen-by",
        choices=("client", "server"),
        default="client",
        help="har, mitm: frames as this side saw them, what midstream changed included (client)",
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
    from midstream.adapters.capture_exchanges import gathered
    from midstream.adapters.capture_open import open_capture
    from midstream.core.frames import Side

    source = open_capture(args.file)
    only = frozenset(args.exchange or ())
    out = Path(args.out)
    with os.fdopen(created(out, source), "wb") as file:
        records = progress(source, "exporting")
        if args.form == "jsonl":
            from midstream.adapters.capture_jsonl import write_jsonl

            write_jsonl((r for r in records if not only or r.exchange in only), file)
        else:
            exchanges = gathered(records, seen_by=Side(args.seen_by), only=only)
            if args.form == "har":
                from midstream.adapters.capture_har import write_har

                write_har(exchanges, file)
            else:
                from midstream.adapters.capture_mitm import write_flows

                write_flows(exchanges, file)
    sys.stdout.write(f"written to {out}\n")
    return report_damage(source, "export")


def import_(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_format import HEADER, encode
    from midstream.adapters.capture_open import open_capture

    source = open_capture(args.file)
    count = 0
    with os.fdopen(created(Path(args.out), source), "wb") as file:
        file.write(HEADER)
        for record in source:
            file.write(encode(record))
            count += 1
    sys.stdout.write(f"{count} records written to {args.out}\n")
    return report_damage(source, "import")


def created(path: Path, source: "Source") -> int:
    """Make a file for its owner alone and return its descriptor. Raises CaptureError."""
    if any(path.exists() and path.samefile(known) for known in source.paths):
        raise CaptureError(f"{path}: is the capture that is read, name another to write")
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be written: {error.strerror}") from None
