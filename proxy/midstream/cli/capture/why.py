"""`why`: what was done to one frame, on which evidence, or why it was left alone."""

import argparse
import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.lines import Telling
from midstream.cli.capture.output import print_json, report_damage, styled
from midstream.cli.parser import Verbs, add_verb

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "why",
        why,
        "explain in words what was done to a frame, or why it was left alone",
        "midstream capture why captures 3\n"
        "midstream capture why captures/run-000001.cap 3:17\n"
        "midstream capture why old.har 3 --replay --config midstream.toml",
    )
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("place", metavar="EXCHANGE[:SEQ]", help="an exchange, or one record of it")
    parser.add_argument(
        "--replay",
        action="store_true",
        help="play it through the addons first, and explain what they do now",
    )
    parser.add_argument("--config", metavar="FILE", help="with --replay: a TOML file")
    parser.add_argument("--json", action="store_true", help="print JSON")


def why(args: argparse.Namespace) -> int:
    if not args.replay:
        return _explain(args, args.file)
    with tempfile.TemporaryDirectory(prefix="midstream-") as folder:
        return _explain(args, _replayed(args, Path(folder) / "replayed-000001.cap"))


def _replayed(args: argparse.Namespace, path: Path) -> str:
    """Write what the addons make of a capture now, under its own exchange numbers."""
    from midstream.core.errors import CaptureError
    from midstream.hosts import replay

    with contextlib.redirect_stdout(io.StringIO()):  # its summary is not what is asked for
        code = replay.main(args.file, args.config, False, str(path), False)
    if code:
        raise CaptureError(f"{args.file}: cannot be played")
    return str(path)


def _explain(args: argparse.Namespace, file: str) -> int:
    from midstream.adapters.capture_open import open_capture
    from midstream.core.errors import CaptureError

    exchange, seq = _place(args.place)
    source, telling = open_capture(file), Telling()
    numbers: set[int] = set()
    records: list[StoredRecord] = []
    for record in source:
        numbers.add(record.exchange)
        if record.exchange == exchange:
            telling.note(record)
            records.append(record)
    if not records:
        raise CaptureError(f"{args.file}: no exchange {exchange}, there are {_ranges(numbers)}")
    opened = records[0] if records[0].kind.value == "open" else None
    if seq is not None:
        wanted = [record for record in records if record.seq == seq]
        if not wanted:
            known = _ranges({record.seq for record in records})
            raise CaptureError(f"{args.file}: exchange {exchange} has no record {seq}, has {known}")
    else:
        wanted = [r for r in records if r.rules or r.skips or r.kind.value in _FRAME_WORK]
    told = [_told(record, opened, telling) for record in wanted]
    if args.json:
        print_json({"exchange": exchange, "dialects": telling.dialects(exchange), "records": told})
    else:
        _print(told, opened, telling.dialects(exchange))
    return report_damage(source, "why")


_FRAME_WORK = ("open", "headers", "close")
"""Beside what was mended or declined, what a summary of an exchange tells."""


def _told(
    record: "StoredRecord", opened: "StoredRecord | None", telling: Telling
) -> dict[str, object]:
    from midstream.explaining import explain

    lines = explain(record.rules, record.skips, record.meta.get("why", ()))
    if not lines and record.frame is not None:
        lines = [_left_alone(record, opened, telling)]
    sent = record.sent
    return {
        "seq": record.seq,
        "kind": record.kind.value,
        "side": None if record.side is None else record.side.value,
        "meaning": telling.meaning(record),
        "received_bytes": len(record.data),
        "sent_bytes": None if sent is None else [len(wire) for _, _, wire in sent],
        "why": lines,
    }


def _left_alone(record: "StoredRecord", opened: "StoredRecord | None", telling: Telling) -> str:
    if "unread" in record.meta:
        return f"left alone: this side is read no more ({record.meta['unread'] or 'unread'})"
    if opened is None or "addons" not in opened.meta:
        return "left alone, and the capture does not say by which addons"
    names = [f"{name} ({mode})" for name, mode in opened.meta["addons"]]
    if not names:
        return "left alone: no addon of this route reads the exchange"
    if not telling.dialects(record.exchange):
        return "left alone: no dialect reads this exchange"
    return f"left alone: these addons had nothing to say: {', '.join(names)}"


def _print(
    told: list[dict[str, object]], opened: "StoredRecord | None", dialects: list[str]
) -> None:
    out = sys.stdout.write
    out(f"read as: {', '.join(dialects) or 'nothing that is known'}\n")
    if opened is not None and "addons" in opened.meta:
        names = [f"{name} ({mode})" for name, mode in opened.meta["addons"]]
        out(f"addons: {', '.join(names) or 'none'}\n")
    for entry in told:
        side = f" from the {entry['side']}" if entry["side"] else ""
        out(f"\n{styled(str(entry['seq']), 'bold')} {entry['kind']}{side}: {entry['meaning']}\n")
        sizes = entry["sent_bytes"]
        if isinstance(sizes, list):
            left = ", ".join(f"{size:,} bytes" for size in sizes) or "nothing"
            out(f"  received {entry['received_bytes']:,} bytes, sent {left}\n")
        for line in entry["why"] if isinstance(entry["why"], list) else ():
            out(f"  {line}\n")


def _place(text: str) -> tuple[int, int | None]:
    from midstream.core.errors import ConfigError

    exchange, colon, seq = text.partition(":")
    try:
        return int(exchange), int(seq) if colon else None
    except ValueError:
        raise ConfigError(
            f'command line: EXCHANGE[:SEQ]: found "{text}", expected numbers such as 3 or 3:17'
        ) from None


def _ranges(numbers: set[int]) -> str:
    """Return numbers as `1-4, 7`; of many ranges, the first few."""
    if not numbers:
        return "none"
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in ranges[:8]]
    return ", ".join(shown) + (" and more" if len(ranges) > 8 else "")
