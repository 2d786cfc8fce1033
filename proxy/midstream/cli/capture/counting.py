"""`stats`: how much of what a capture holds."""

import argparse
import sys
from collections import Counter
from typing import TYPE_CHECKING

from midstream.cli.capture.lines import NS_PER_S, is_changed, when
from midstream.cli.capture.output import (
    print_json,
    print_table,
    printable,
    progress,
    report_damage,
    styled,
)
from midstream.cli.parser import Verbs, add_verb

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord

SWITCHING = 101


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "stats",
        stats,
        "count what a capture holds",
        "midstream capture stats captures/run-000001.cap\nmidstream capture stats captures --json",
    )
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("--json", action="store_true", help="print JSON")


class _Sums:
    """What is counted of a capture."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.transports: Counter[str] = Counter()
        self.frames: Counter[tuple[str, str, str]] = Counter()
        self.bytes: Counter[tuple[str, str, str]] = Counter()
        self.rules: Counter[tuple[str, str]] = Counter()
        self.skips: Counter[tuple[str, str]] = Counter()
        self.mended: set[int] = set()
        self.missing = 0
        self.first_ns = self.last_ns = 0
        self._opened: dict[int, int] = {}
        self.first_event_ns: list[int] = []

    def add(self, record: "StoredRecord") -> None:
        self.kinds[record.kind.value] += 1
        self.first_ns = min(self.first_ns or record.wall_ns, record.wall_ns)
        self.last_ns = max(self.last_ns, record.wall_ns)
        self.rules.update(record.rules)
        self.skips.update(record.skips)
        if is_changed(record):
            self.mended.add(record.exchange)
        match record.kind.value:
            case "gap":
                count = record.meta.get("count")
                self.missing += count if isinstance(count, int) else 0
            case "headers":
                self.transports[_transport(record)] += 1
            case "open":
                self._opened[record.exchange] = record.mono_ns
            case "frame" if record.frame is not None and record.side is not None:
                key = (record.route, record.frame.value, record.side.value)
                self.frames[key] += 1
                self.bytes[key] += len(record.data)
                if record.side.value == "server" and record.exchange in self._opened:
                    began_ns = self._opened.pop(record.exchange)
                    self.first_event_ns.append(record.mono_ns - began_ns)

    @property
    def first_event_s(self) -> float | None:
        """The median time from an open to the first frame of the server, in seconds."""
        times = sorted(self.first_event_ns)
        return times[len(times) // 2] / NS_PER_S if times else None


def _transport(record: "StoredRecord") -> str:
    """Return what a response turns an exchange into, in the words of the metrics."""
    from midstream.adapters.capture_heads import response_head
    from midstream.core.errors import CaptureError

    try:
        head = response_head(record)
    except CaptureError:
        return "unknown"
    if head.status == SWITCHING:
        return "ws"
    return "sse" if head.is_event_stream else "http"


def stats(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_open import open_capture

    source = open_capture(args.file)
    sums = _Sums()
    for record in progress(source, "counting"):
        sums.add(record)
    if args.json:
        print_json(_as_json(sums) | {"damaged": source.damage is not None})
    else:
        _print(sums)
    return report_damage(source, "stats")


def _as_json(sums: _Sums) -> dict[str, object]:
    return {
        "records": sums.kinds.total(),
        "kinds": dict(sums.kinds),
        "exchanges": sums.kinds["open"],
        "transports": dict(sums.transports),
        "mended_exchanges": len(sums.mended),
        "missing_records": sums.missing,
        "began": when(sums.first_ns) if sums.first_ns else None,
        "seconds": (sums.last_ns - sums.first_ns) / NS_PER_S,
        "first_event_seconds": sums.first_event_s,
        "frames": [
            {"route": r, "kind": k, "side": s, "frames": n, "bytes": sums.bytes[r, k, s]}
            for (r, k, s), n in sorted(sums.frames.items())
        ],
        "repairs": [
            {"addon": addon, "rule": rule, "count": count}
            for (addon, rule), count in sorted(sums.rules.items())
        ],
        "declined": [
            {"addon": addon, "reason": reason, "count": count}
            for (addon, reason), count in sorted(sums.skips.items())
        ],
    }


def _print(sums: _Sums) -> None:
    seconds = (sums.last_ns - sums.first_ns) / NS_PER_S
    began = f", {seconds:,.1f} s from {when(sums.first_ns)}" if sums.first_ns else ""
    count = sums.kinds["open"]
    exchanges = f"{count} exchange{'' if count == 1 else 's'}"
    lines = [
        f"{sums.kinds.total()} records of {exchanges}{began}",
        f"records: {_counted(sums.kinds)}",
        f"responses: {_counted(sums.transports) or 'none'}",
        f"mended exchanges: {len(sums.mended)}",
    ]
    if sums.first_event_s is not None:
        lines.append(f"first frame of the server after {sums.first_event_s:.3f} s (median)")
    if sums.missing:
        lines.append(f"{sums.missing} records are missing (gaps)")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if sums.frames:
        rows = [
            [printable(route), kind, side, f"{count:,}", f"{sums.bytes[route, kind, side]:,}"]
            for (route, kind, side), count in sorted(sums.frames.items())
        ]
        sys.stdout.write("\n")
        print_table(("route", "kind", "side", "frames", "bytes"), rows)
    _print_words("repairs", ("addon", "rule", "count"), sums.rules)
    _print_words("declined", ("addon", "reason", "count"), sums.skips)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {word}" for word, count in counts.most_common())


def _print_words(title: str, columns: tuple[str, ...], words: Counter[tuple[str, str]]) -> None:
    if words:
        sys.stdout.write(f"\n{styled(title, 'bold')}\n")
        print_table(columns, [[a, b, f"{n:,}"] for (a, b), n in sorted(words.items())])
