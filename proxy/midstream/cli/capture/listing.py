"""`ls` and `verify`: what captures there are, and whether they are whole."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.lines import is_changed, when
from midstream.cli.capture.output import (
    print_json,
    print_table,
    printable,
    progress,
    styled,
)
from midstream.cli.parser import Verbs, add_verb

if TYPE_CHECKING:
    from midstream.adapters.capture_format import Damage, Reader

MAX_NAMED = 8

type Entry = dict[str, object]


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "ls",
        ls,
        "list the captures of a folder",
        "midstream capture ls captures\nmidstream capture ls captures --count",
    )
    parser.add_argument("dir", metavar="DIR", help="a folder")
    parser.add_argument(
        "--count", action="store_true", help="read them whole: records, exchanges, mended ones"
    )
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


def ls(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_format import segments_in
    from midstream.core.errors import CaptureError

    folder = Path(args.dir)
    if not folder.is_dir():
        raise CaptureError(f"{folder}: no such folder")
    found: dict[str, list[Path]] = {}
    for path in segments_in(folder):
        found.setdefault(path.name[:-11], []).append(path)
    entries = [
        entry
        for name, paths in found.items()
        if (entry := _entry(name, paths, count=args.count)) is not None
    ]
    if args.json:
        print_json(entries)
    elif entries:
        _print_entries(entries, count=args.count)
    else:
        sys.stdout.write(f"{folder}: no captures\n")
    return 0


def _entry(name: str, paths: list[Path], *, count: bool) -> Entry | None:
    """Return what there is to say of a capture; None if it was removed just now."""
    from midstream.adapters.capture_format import Reader
    from midstream.core.errors import CaptureError

    sizes, times = [], []
    for path in list(paths):
        try:
            stat = path.stat()
        except OSError:  # rotation removes the oldest ones
            paths.remove(path)
            continue
        sizes.append(stat.st_size)
        times.append(stat.st_mtime_ns)
    if not paths:
        return None
    entry: Entry = {"name": name, "segments": len(paths), "bytes": sum(sizes)}
    try:
        began = next(iter(Reader(paths[:1])), None)
        entry["began"] = None if began is None else when(began.wall_ns)
        entry["changed"] = when(max(times))
        if count:
            entry |= _counted(Reader(paths), name)
    except (CaptureError, OSError) as error:
        entry.setdefault("began", None)
        entry.setdefault("changed", when(max(times)))
        entry["error"] = str(error)
    return entry


def _counted(reader: "Reader", name: str) -> Entry:
    records, last_ns = 0, 0
    exchanges: set[int] = set()
    mended: set[int] = set()
    for record in progress(reader, f"reading {name}"):
        records += 1
        last_ns = record.wall_ns
        exchanges.add(record.exchange)
        if is_changed(record):
            mended.add(record.exchange)
    damage = reader.damage
    return {
        "ended": when(last_ns) if records else None,
        "records": records,
        "exchanges": len(exchanges),
        "mended": len(mended),
        "damage": None if damage is None else _damage(damage),
    }


def _print_entries(entries: list[Entry], *, count: bool) -> None:
    columns = ["capture", "segments", "bytes", "began", "last written"]
    columns += ["records", "exchanges", "mended"] if count else []
    columns += ["remark"] if any(_remark(entry) for entry in entries) else []
    rows = []
    for entry in entries:
        row = [printable(str(entry["name"])), f"{entry['segments']:,}", f"{entry['bytes']:,}"]
        row += [str(entry["began"] or ("" if "error" in entry else "empty")), str(entry["changed"])]
        if count:
            keys = ("records", "exchanges", "mended")
            row += [f"{entry[key]:,}" if key in entry else "" for key in keys]
        rows.append([*row, printable(_remark(entry))][: len(columns)])
    print_table(columns, rows)


def _remark(entry: Entry) -> str:
    damage = entry.get("damage")
    if isinstance(damage, dict):
        return f"damaged at byte {damage['byte']} of {Path(damage['file']).name}"
    return str(entry.get("error", ""))


def verify(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_format import Reader
    from midstream.adapters.capture_open import open_capture

    source = open_capture(args.file)
    if isinstance(source, Reader):
        source = Reader(source.paths, over_damage=True)
    records = exchanges = 0
    for record in progress(source, "verifying"):
        records += 1
        exchanges += record.kind.value == "open"
    damages = source.damages if isinstance(source, Reader) else []
    missing = _missing(source.paths)
    if args.json:
        print_json(
            {
                "ok": not damages,
                "records": records,
                "exchanges": exchanges,
                "segments": len(source.paths),
                "missing_segments": missing,
                "damage": _damage(damages[0]) if damages else None,
                "damages": [_damage(damage) for damage in damages],
            }
        )
        return 1 if damages else 0
    for damage in damages:
        sys.stdout.write(
            f"{damage.path}: {styled('damaged', 'red')} at byte {damage.offset}: {damage.reason}; "
            f"{damage.whole:,} records before it are whole\n"
        )
    said = f"{records:,} records, {exchanges:,} exchanges, {len(source.paths):,} segment"
    said += "" if len(source.paths) == 1 else "s"
    sys.stdout.write(f"readable: {said}\n" if damages else f"{styled('ok', 'green')}: {said}\n")
    if missing:
        more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
        names = ", ".join(map(str, missing[:MAX_NAMED]))
        sys.stdout.write(f"segments are missing: {names}{more}\n")
    return 1 if damages else 0


def _missing(paths: tuple[Path, ...]) -> list[int]:
    """Return the numbers that are missing between the segments."""
    numbers = [int(path.name[-10:-4]) for path in paths] if len(paths) > 1 else []
    return sorted(set(range(numbers[0], numbers[-1])) - set(numbers)) if numbers else []


def _damage(damage: "Damage") -> Entry:
    return {
        "file": str(damage.path),
        "byte": damage.offset,
        "reason": damage.reason,
        "records_before": damage.whole,
    }
