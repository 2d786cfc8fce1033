"""`tail`: the records of a capture as they are written."""

import argparse
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.lines import Choice
from midstream.cli.capture.look import Printer, add_looks
from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import CaptureError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord, Tail

POLL_SECONDS = 0.25
SEGMENT = re.compile(r"(?P<name>.+)-\d{6}\.cap")


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "tail",
        tail,
        "follow a capture that is being written; Ctrl-C ends it",
        "midstream capture tail captures\nmidstream capture tail captures -n 100 --mended",
    )
    parser.add_argument("file", metavar="FILE", help="DIR/NAME, a folder with one, or a segment")
    parser.add_argument("-n", metavar="N", type=int, default=10, help="lines of before (10)")
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=None, help="end after so long (never)"
    )
    add_looks(parser)


def tail(args: argparse.Namespace) -> int:
    choice, printer = Choice.of(args), Printer(args)
    last: deque[StoredRecord] = deque(maxlen=max(args.n, 0))
    began = time.monotonic()
    is_live = False
    for record in _following(Path(args.file)):
        if record is None:
            if not is_live:
                for kept in last:
                    printer.print(kept)
                is_live = True
            sys.stdout.flush()
            if args.seconds is not None and time.monotonic() - began >= args.seconds:
                return 0
            time.sleep(POLL_SECONDS)
            continue
        printer.telling.note(record)
        if not choice.takes(record, printer.telling.began_ns):
            continue
        if is_live:
            printer.print(record)
        else:
            last.append(record)
    return 0


def _following(path: Path) -> "Iterator[StoredRecord | None]":
    """Return the records of a capture as they come, and None whenever there are no more yet."""
    from midstream.adapters.capture_format import segments, segments_in

    first = segments(path)[0]
    match = SEGMENT.fullmatch(first.name)
    name = match["name"] if match else ""
    current: Tail | None = None
    last = ""  # the file that was begun last; the numbers in names make them sort
    while True:
        found = [f for f in segments_in(first.parent) if f.name[:-11] == name] if match else [first]
        for file in found:
            if not max(last, first.name) <= file.name or file.name == last:
                continue
            begun = _begun(file)
            if begun is None:
                continue
            if current is not None:
                yield from current.records()  # what was written before the writer went on
                _end(current)
            current, last = begun, file.name
        if current is not None:
            yield from current.records()
        yield None


def _begun(file: Path) -> "Tail | None":
    """Return a reader of a segment; None where it has no header yet, or is removed already."""
    from midstream.adapters.capture_format import Tail, is_begun

    try:
        return Tail(file) if is_begun(file) else None
    except CaptureError:
        if file.exists():
            raise
        return None


def _end(segment: "Tail") -> None:
    segment.close()
    lost = segment.unread
    if lost is not None:
        sys.stderr.write(
            f"midstream capture tail: {lost.path}: damaged at byte {lost.offset}: {lost.reason}\n"
        )
