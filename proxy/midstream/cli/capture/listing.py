"""`ls`, `verify` and `stats`: what there is, whether it is whole, and how much of what."""

import argparse
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.output import (
    print_json,
    print_table,
    progress,
    report_damage,
    styled,
)
from midstream.cli.parser import Verbs, add_verb

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord

NS_PER_S = 1_000_000_000


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs, "ls", ls, "list the captures of a folder", "midstream capture ls captures"
    )
    parser.add_argument("dir", metavar="DIR", help="a folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser = add_verb(
        verbs,
        "verify",
        verify,
        "check that every record of a capture is whole; exit 1 and the byte where one is not",
        "midstream capture verify captures/run-000001.cap",
    )
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser = add_verb(
        verbs,
        "stats",
        stats,
        "count what a capture holds",
        "midstream capture stats captures/run-000001.cap\nmidstream capture stats captures --json",
    )
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("--json", action="store_true", help="print JSON")


def ls(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_format import Reader, segments_in
    from midstream.core.errors import CaptureError

    folder = Path(args.dir)
    if not folder.is_dir():
        raise CaptureError(f"{folder}: no such folder")
    found: dict[str, list[Path]] = {}
    for path in segments_in(folder):
        found.setdefault(path.name[:-11], []).append(path)
    entries: list[dict[str, object]] = []
    for name, paths in found.items():
        size = sum(path.stat().st_size for path in paths)
        entry: dict[str, object] = {"name": name, "segments": len(paths), "bytes": size}
        try:
            first = next(iter(Reader(paths[:1])), None)
            entry["began"] = None if first is None else _when(first.wall_ns)
        except CaptureError as error:
            entry["error"] = str(error)
        entry["changed"] = _when(int(max(path.stat().st_mtime for path in paths) * NS_PER_S))
        entries.append(entry)
    if args.json:
        print_json(entries)
        return 0
    if not entries:
        sys.stdout.write(f"{folder}: no captures\n")
        return 0
    rows = [
        [
            str(entry["name"]),
            f"{entry['segments']:,}",
            f"{entry['bytes']:,}",
            str(entry.get("began") or entry.get("error") or "empty"),
            str(entry["changed"]),
        ]
        for entry in entries
    ]
    print_table(("capture", "segments", "bytes", "began", "last written"), rows)
    return 0


def verify(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_open import open_capture

    source = open_capture(args.file)
    records = exchanges = 0
    for record in progress(source, "verifying"):
        records += 1
        exchanges += record.kind.value == "open"
    damage = source.damage
    if args.json:
        print_json(
            {
                "ok": damage is None,
                "records": records,
                "exchanges": exchanges,
                "segments": len(source.paths),
                "damage": None
                if damage is None
                else {"file": str(damage.path), "byte": damage.offset, "reason": damage.reason},
            }
        )
        return 0 if damage is None else 1
    if damage is None:
        said = styled("ok", "green")
        sys.stdout.write(f"{said}: {records:,} records, {exchanges:,} exchanges, ")
        sys.stdout.write(f"{len(source.paths):,} segment{'' if len(source.paths) == 1 else 's'}\n")
        return 0
    sys.stdout.write(
        f"{damage.path}: {styled('damaged', 'red')} at byte {damage.offset}: {damage.reason}; "
        f"{records:,} records before it are whole\n"
    )
    return 1


class _Sums:
    """What is counted of a capture."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
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
        self.first_ns = self.first_ns or record.wall_ns
        self.last_ns = max(self.last_ns, record.wall_ns)
        self.rules.update(record.rules)
        self.skips.update(record.skips)
        if record.rules:
            self.mended.add(record.exchange)
        match record.kind.value:
            case "gap":
                self.missing += int(record.meta.get("count", 0))
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
        "mended_exchanges": len(sums.mended),
        "missing_records": sums.missing,
        "began": _when(sums.first_ns) if sums.first_ns else None,
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
    began = f", {seconds:,.1f} s from {_when(sums.first_ns)}" if sums.first_ns else ""
    exchanges = sums.kinds["open"]
    lines = [
        f"{sums.kinds.total()} records of {exchanges} exchanges{began}",
        f"mended exchanges: {len(sums.mended)}",
    ]
    if sums.first_event_s is not None:
        lines.append(f"first frame of the server after {sums.first_event_s:.3f} s (median)")
    if sums.missing:
        lines.append(f"{sums.missing} records are missing (gaps)")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if sums.frames:
        rows = [
            [route, kind, side, f"{count:,}", f"{sums.bytes[route, kind, side]:,}"]
            for (route, kind, side), count in sorted(sums.frames.items())
        ]
        sys.stdout.write("\n")
        print_table(("route", "kind", "side", "frames", "bytes"), rows)
    _print_words("repairs", ("addon", "rule", "count"), sums.rules)
    _print_words("declined", ("addon", "reason", "count"), sums.skips)


def _print_words(title: str, columns: tuple[str, ...], words: Counter[tuple[str, str]]) -> None:
    if words:
        sys.stdout.write(f"\n{styled(title, 'bold')}\n")
        print_table(columns, [[a, b, f"{count:,}"] for (a, b), count in sorted(words.items())])


def _when(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns / NS_PER_S, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
