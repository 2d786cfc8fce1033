"""`show`: the records of a capture, one line each."""

import argparse
import base64
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from midstream.cli.capture.lines import (
    ARROWS,
    MIN_MEANING,
    MIN_WIDTH,
    Choice,
    Telling,
    add_choices,
    done,
    size_of,
)
from midstream.cli.capture.output import (
    is_terminal,
    print_json,
    printable,
    report_damage,
    styled,
)
from midstream.cli.parser import Verbs, add_verb

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord

PIPED_WIDTH = 200
NS_PER_S = 1_000_000_000
KINDS = {"open": "cyan", "headers": "cyan", "close": "cyan", "gap": "red"}


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "show",
        show,
        "print a capture, one line a record: time, exchange, side, kind, meaning, what was done",
        "midstream capture show captures/run-000001.cap\n"
        "midstream capture show captures --mended --diff\n"
        "midstream capture show captures --exchange 3 --raw",
    )
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    add_looks(parser)
    parser.add_argument("--limit", metavar="N", type=int, help="at most so many records")


def add_looks(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how records are printed, and which."""
    add_choices(parser)
    parser.add_argument("--wall", action="store_true", help="dates and times (UTC), not seconds")
    parser.add_argument("--raw", action="store_true", help="print the payload of each frame below")
    parser.add_argument("--diff", action="store_true", help="mended frames: before and after")
    parser.add_argument("--full", action="store_true", help="do not cut lines at the width")
    parser.add_argument("--width", metavar="N", type=int, help="cut lines at so many characters")
    parser.add_argument("--json", action="store_true", help="print JSON lines")


def show(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_open import open_capture

    choice, printer, count = Choice.of(args), Printer(args), 0
    source = open_capture(args.file)
    for record in printer.telling.follow(source):
        if choice.takes(record, printer.telling.began_ns):
            if args.limit is not None and count >= args.limit:
                return 0
            printer.print(record)
            count += 1
    return report_damage(source, "show")


class Printer:
    """Prints records as the flags of `add_looks` ask for."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.telling = Telling(wall=args.wall)
        self._args = args
        self._time_width = 23 if args.wall else 9
        self._width = _width(args)

    def print(self, record: "StoredRecord") -> None:
        if self._args.json:
            print_json(as_json(record, self.telling))
            return
        sys.stdout.write(self._line(record) + "\n")
        if self._args.raw:
            sys.stdout.writelines(f"{line}\n" for line in _raw(record))
        if self._args.diff and record.sent is not None:
            from midstream.cli.capture.difference import before_and_after

            sys.stdout.writelines(f"{line}\n" for line in before_and_after(record))

    def _line(self, record: "StoredRecord") -> str:
        arrow = "  " if record.side is None else ARROWS[record.side.value]
        kind = record.kind.value if record.frame is None else record.frame.value
        size = "" if record.frame is None else f"{size_of(record):,}"
        time = f"{self.telling.time(record):>{self._time_width}}"
        start = f"{time} {record.exchange:>4}:{record.seq:<5} {arrow} {kind:<9} {size:>8} "
        what, what_done = printable(self.telling.meaning(record)), printable(done(record))
        ending = f"  [{what_done}]" if what_done else ""
        if self._width is not None:
            room = max(self._width - len(ending) - len(start), MIN_MEANING)
            what = what if len(what) <= room else f"{what[: room - 1]}…"
        style = KINDS.get(record.kind.value)
        what = styled(what, style) if style else what
        return start + what + styled(ending, "yellow" if record.rules else "dim")


def _width(args: argparse.Namespace) -> int | None:
    if args.full:
        return None
    if args.width is not None:
        return max(int(args.width), MIN_WIDTH)
    return max(shutil.get_terminal_size().columns, MIN_WIDTH) if is_terminal() else PIPED_WIDTH


def _raw(record: "StoredRecord") -> Iterator[str]:
    if record.frame is not None:
        for line in record.data.decode("utf-8", "backslashreplace").splitlines():
            yield printable(line)


def as_json(record: "StoredRecord", telling: Telling) -> dict[str, object]:
    """Return what one line says, for machines; a payload that is not UTF-8 is base64."""
    found: dict[str, object] = {
        "time": record.wall_ns / NS_PER_S,
        "exchange": record.exchange,
        "seq": record.seq,
        "kind": record.kind.value,
        "side": None if record.side is None else record.side.value,
        "route": record.route,
        "frame": None if record.frame is None else record.frame.value,
        "bytes": size_of(record),
        "meaning": telling.meaning(record),
        "addon": record.rules[0][0] if record.rules else None,
        "rule": record.rules[0][1] if record.rules else None,
        "rules": record.rules,
        "declined": record.skips,
    }
    if record.frame is not None:
        found["payload"] = readable(record.data)
    if record.sent is not None:
        found["sent"] = [
            {"side": side.value, "frame": kind.value, "payload": readable(wire)}
            for side, kind, wire in record.sent
        ]
    return found


def readable(data: bytes) -> str | dict[str, str]:
    """Return text as it is, anything else as base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
