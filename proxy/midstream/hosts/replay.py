"""The replay host: a capture through the addons, offline.

`replay` is for programs and tests, `main` is behind `midstream replay`.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from midstream import wiring
from midstream.adapters.capture_format import HEADER, StoredRecord, encode
from midstream.adapters.capture_open import Source, open_capture
from midstream.config import load
from midstream.core.addon import Answer
from midstream.core.engine import Engine
from midstream.core.errors import CaptureError, ConfigError
from midstream.core.frames import Frame, Side
from midstream.core.ports import Record, RecordKind
from midstream.hosts.replay_diff import Differ, Difference, Verdicts
from midstream.hosts.replay_run import Replayer
from midstream.hosts.replay_script import Script


class ReplayResult(msgspec.Struct):
    """What left each exchange, in order, and what could not be played."""

    left: dict[int, list[Frame]]
    problems: Counter[str]

    def frames(self, exchange: int, sender: Side) -> list[Frame]:
        """Return the frames that went on towards the other side of `sender`."""
        return [frame for frame in self.left.get(exchange, []) if frame.sender is sender]

    def octets(self, exchange: int, sender: Side) -> bytes:
        return b"".join(frame.wire for frame in self.frames(exchange, sender))


def replay(
    records: Iterable[StoredRecord],
    engine: Engine,
    fetch: Callable[[str], Answer] | None = None,
) -> ReplayResult:
    """Play records through an engine. `fetch` answers what the records do not (see `Replayer`)."""
    kept = list(records)
    replayer = Replayer(engine, Script(kept), fetch)
    left: dict[int, list[Frame]] = {}
    for record in kept:
        for step in replayer.feed(record):
            left.setdefault(step.exchange, []).extend(step.frames)
    return ReplayResult(left, replayer.problems)


class Recording:
    """A sink that counts the repairs of a replay and keeps its records until they are taken."""

    def __init__(self) -> None:
        self.rules: Counter[tuple[str, str]] = Counter()
        self.records: list[Record] = []

    def write(self, record: Record) -> None:
        self.rules.update(record.rules)
        self.records.append(record)

    def take(self) -> list[Record]:
        taken, self.records = self.records, []
        return taken


class Tally(msgspec.Struct):
    """The summary of a replay."""

    records: int = 0
    exchanges: int = 0
    received: int = 0
    left: int = 0
    differences: int = 0


def main(capture: str, config: str | None, observe: bool, out: str | None, diff: bool) -> int:
    """Run `midstream replay`: return 1 if `diff` found differences, 2 if it cannot be run."""
    try:
        reader = open_capture(capture)
        if out is None:
            return _run(reader, config, observe, None, diff)
        with _created(Path(out), reader) as file:
            return _run(reader, config, observe, file, diff)
    except (CaptureError, ConfigError) as error:
        sys.stderr.write(f"midstream replay: {error}\n")
    except OSError as error:
        sys.stderr.write(f"midstream replay: {out}: cannot be written: {error.strerror}\n")
    return 2


def _run(
    reader: Source, config: str | None, observe: bool, out: BinaryIO | None, diff: bool
) -> int:
    sink = Recording()
    engine = wiring.engine(load(config, needs_upstream=False), sink=sink, observe=observe)
    replayer = Replayer(engine, Script(reader))
    differ, verdicts, tally = Differ(), Verdicts(), Tally()
    for record in reader:
        verdicts.captured(record)
        tally.records += 1
        tally.exchanges += record.kind is RecordKind.OPEN
        tally.received += record.kind is RecordKind.FRAME
        for step in replayer.feed(record):
            tally.left += len(step.frames)
            found = differ.compare(step)
            tally.differences += len(found)
            if diff:
                _print_differences(found)
        made = sink.take()
        for new in made:
            verdicts.replayed(replayer.numbers[new.exchange], new)
        _write(made, out, record, replayer)
    if replayer.is_mended:  # else no addon ran, and there is nothing to compare
        changed = list(verdicts.differences())
        tally.differences += len(changed)
        if diff:
            sys.stdout.write("".join(f"{line}\n" for line in changed))
    _print_summary(reader, tally, sink.rules, replayer)
    return 1 if diff and tally.differences else 0


def _created(path: Path, reader: Source) -> BinaryIO:
    """Make the capture that a replay writes. Raises CaptureError over the capture that it reads."""
    if any(path.exists() and path.samefile(source) for source in reader.paths):
        raise CaptureError(f"{path}: is the capture that is read, name another to write")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    file = os.fdopen(fd, "wb")
    file.write(HEADER)
    return file


def _write(
    records: list[Record], out: BinaryIO | None, at: StoredRecord, replayer: Replayer
) -> None:
    """Write new records under the exchange numbers and at the times of the capture they repeat."""
    if out is None:
        return
    for record in records:
        wall_ns = at.wall_ns - at.mono_ns + record.mono_ns
        stored = StoredRecord.of(record, wall_ns, at.route)
        number = replayer.numbers[record.exchange]
        out.write(encode(msgspec.structs.replace(stored, exchange=number)))


def _print_differences(found: Iterable[Difference]) -> None:
    for difference in found:
        for line in difference.lines():
            sys.stdout.write(f"{line}\n")


def _print_summary(
    reader: Source, tally: Tally, rules: Counter[tuple[str, str]], replayer: Replayer
) -> None:
    lines = [
        f"{tally.records} records, {tally.exchanges} exchanges: {tally.received} frames received, "
        f"{tally.left} sent",
        *(f"repair {addon} {rule}: {count}" for (addon, rule), count in sorted(rules.items())),
        *(f"note: {reason}: {count}" for reason, count in sorted(replayer.problems.items())),
        f"differences to the capture: {tally.differences}",
    ]
    if replayer.unended:
        lines.insert(-1, f"note: exchanges without an end: {replayer.unended}")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if reader.damage is not None:
        damage = reader.damage
        sys.stderr.write(
            f"midstream replay: {damage.path}: damaged at byte {damage.offset}: {damage.reason}\n"
        )
