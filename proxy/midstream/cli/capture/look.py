"""`show` and `tail`: the frames of a capture, one line each."""

import argparse
import base64
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.lines import (
    ARROWS,
    MIN_WIDTH,
    Choice,
    Telling,
    add_choices,
    done,
    size_of,
)
from midstream.cli.capture.output import is_terminal, print_json, report_damage, styled
from midstream.cli.parser import Verbs, add_verb

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord

POLL_SECONDS = 0.25
PIPED_WIDTH = 200


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
    _add_looks(parser)
    parser.add_argument("--diff", action="store_true", help="mended frames: before and after")
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
    _add_looks(parser)


def _add_looks(parser: argparse.ArgumentParser) -> None:
    add_choices(parser)
    parser.add_argument("--raw", action="store_true", help="print the payload of each frame below")
    parser.add_argument("--full", action="store_true", help="do not cut lines at the width")
    parser.add_argument("--json", action="store_true", help="print JSON lines")


def show(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_open import open_capture

    choice = Choice.of(args)
    source = open_capture(args.file)
    telling = Telling()
    for record in telling.follow(source):
        if choice.takes(record):
            _print(record, telling, args)
    return report_damage(source, "show")


def tail(args: argparse.Namespace) -> int:
    choice, telling = Choice.of(args), Telling()
    last: deque[StoredRecord] = deque(maxlen=max(args.n, 0))
    began = time.monotonic()
    is_live = False
    for record in _following(args.file):
        if record is None:
            if not is_live:
                for kept in last:
                    _print(kept, telling, args)
                is_live = True
            sys.stdout.flush()
            if args.seconds is not None and time.monotonic() - began >= args.seconds:
                return 0
            time.sleep(POLL_SECONDS)
            continue
        telling.note(record)
        if not choice.takes(record):
            continue
        if is_live:
            _print(record, telling, args)
        else:
            last.append(record)
    return 0


def _following(name: str) -> "Iterator[StoredRecord | None]":
    """Return the records of a capture as they come, and None whenever there are no more yet."""
    from midstream.adapters.capture_format import Tail, segments

    known: list[Path] = []
    tails: list[Tail] = []
    while True:
        for path in segments(Path(name)):
            if path not in known:
                known.append(path)
                tails.append(Tail(path))
        for index, one in enumerate(tails):
            yield from one.records()
            if index + 1 < len(tails):
                one.close()
        tails = tails[-1:]
        yield None


def _print(record: "StoredRecord", telling: Telling, args: argparse.Namespace) -> None:
    if args.json:
        print_json(as_json(record, telling))
        return
    sys.stdout.write(_line(record, telling, is_full=args.full) + "\n")
    if args.raw and record.frame is not None:
        sys.stdout.write(f"{record.data.decode('utf-8', 'backslashreplace')}\n")
    if getattr(args, "diff", False) and record.sent is not None:
        from midstream.cli.capture.difference import before_and_after

        sys.stdout.writelines(f"{line}\n" for line in before_and_after(record))


def _line(record: "StoredRecord", telling: Telling, *, is_full: bool) -> str:
    arrow = ARROWS.get(record.side.value, "  ") if record.side is not None else "  "
    kind = record.frame.value if record.frame is not None else record.kind.value
    what, what_done = telling.meaning(record), done(record)
    size = f"{size_of(record):,}" if record.frame is not None else ""
    start = f"{telling.time(record):>9} {record.exchange:>4}:{record.seq:<5} {arrow} {kind:<9}"
    text = f"{start} {size:>8} {what}"
    ending = f"  [{what_done}]" if what_done else ""
    if not is_full:
        width = shutil.get_terminal_size().columns if is_terminal() else PIPED_WIDTH
        room = max(width, MIN_WIDTH) - min(len(ending), width // 2)
        text = text if len(text) <= room else f"{text[: room - 1]}…"
    return text + (styled(ending, "yellow" if record.rules else "dim") if ending else "")


def as_json(record: "StoredRecord", telling: Telling) -> dict[str, object]:
    """Return what one line says, for machines; a payload that is not UTF-8 is base64."""
    found: dict[str, object] = {
        "time": record.wall_ns / 1e9,
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
