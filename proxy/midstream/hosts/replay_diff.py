"""Compares what a replay sends with what the capture says was sent, exchange by exchange.

WebSocket messages and events are compared one by one; a body is compared when its side has ended,
because it may have been recorded whole or in pieces.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from midstream.adapters.capture_format import StoredRecord
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind
from midstream.hosts.replay_run import Left

EXCERPT_BYTES = 160

type Words = tuple[tuple[str, str], ...]


class Difference(msgspec.Struct, frozen=True):
    """One place where a replay sends something else. `seq` is 0 where no record is at hand."""

    exchange: int
    seq: int
    captured: tuple[Frame, ...]
    replayed: tuple[Frame, ...]

    def lines(self) -> Iterator[str]:
        """Describe it for people, each frame cut to an excerpt."""
        where = f"exchange {self.exchange}" + (f" seq {self.seq}" if self.seq else " (a timer)")
        yield f"{where}: captured {_count(self.captured)}, replay {_count(self.replayed)}"
        yield from (f"  - {_excerpt(frame)}" for frame in self.captured)
        yield from (f"  + {_excerpt(frame)}" for frame in self.replayed)


class Verdicts:
    """What the addons did in each exchange, in the capture and in the replay."""

    def __init__(self) -> None:
        self._captured: dict[int, Counter[str]] = {}
        self._replayed: dict[int, Counter[str]] = {}

    def captured(self, record: StoredRecord) -> None:
        _count_words(self._captured, record.exchange, record.rules, record.skips)

    def replayed(self, exchange: int, record: Record) -> None:
        _count_words(self._replayed, exchange, record.rules, record.skips)

    def differences(self) -> Iterator[str]:
        """Return a line for each word that was said another number of times."""
        for exchange in sorted(self._captured.keys() | self._replayed.keys()):
            before = self._captured.get(exchange, Counter())
            after = self._replayed.get(exchange, Counter())
            for words in sorted(before.keys() | after.keys()):
                if before[words] != after[words]:
                    yield (
                        f"exchange {exchange}: {words}: captured {before[words]}, "
                        f"replay {after[words]}"
                    )


def _count_words(
    counts: dict[int, Counter[str]],
    exchange: int,
    rules: Words,
    skips: Words,
) -> None:
    if rules or skips:
        counter = counts.setdefault(exchange, Counter())
        counter.update(f"{addon} {rule}" for addon, rule in rules)
        counter.update(f"{addon} declined: {reason}" for addon, reason in skips)


class Differ:
    """Takes what leaves, in order, and returns the differences."""

    def __init__(self) -> None:
        self._captured: dict[tuple[int, Side], tuple[int, list[Frame]]] = {}
        self._replayed: dict[tuple[int, Side], list[Frame]] = {}

    def compare(self, left: Left) -> list[Difference]:
        record = left.record
        replayed = tuple(left.frames)
        if record is None:
            return self._differing(left.exchange, 0, (), replayed)
        if record.kind is RecordKind.FRAME and record.frame is Kind.BODY and record.side:
            return self._put_off(record, record.side, replayed)
        if record.kind is RecordKind.CLOSE:
            return self._closed(record, replayed)
        return self._differing(left.exchange, record.seq, record.left, replayed)

    def _put_off(
        self, record: StoredRecord, side: Side, replayed: Sequence[Frame]
    ) -> list[Difference]:
        key = (record.exchange, side)
        self._captured.setdefault(key, (record.seq, []))[1].extend(record.left)
        self._replayed.setdefault(key, []).extend(replayed)
        return []

    def _closed(self, record: StoredRecord, replayed: Sequence[Frame]) -> list[Difference]:
        if record.side is None:
            keys = [(record.exchange, side) for side in Side]
        else:
            keys = [(record.exchange, record.side)]
        found: list[Difference] = []
        body = False
        for key in keys:
            if key in self._captured:
                body = True
                seq, captured = self._captured.pop(key)
                both = (*self._replayed.pop(key), *replayed)
                found += self._differing(record.exchange, seq, (*captured, *record.left), both)
        if body:
            return found
        return self._differing(record.exchange, record.seq, record.left, replayed)

    def _differing(
        self, exchange: int, seq: int, captured: Sequence[Frame], replayed: Sequence[Frame]
    ) -> list[Difference]:
        if list(captured) == list(replayed) or _bodies(captured) == _bodies(replayed) is not None:
            return []
        return [Difference(exchange, seq, tuple(captured), tuple(replayed))]


def _bodies(frames: Sequence[Frame]) -> dict[Side, bytes] | None:
    """Return the bytes of bodies by sender; None if the frames are not all bodies."""
    if not frames or any(frame.kind is not Kind.BODY for frame in frames):
        return None
    return {side: b"".join(f.wire for f in frames if f.sender is side) for side in Side}


def _count(frames: Sequence[Frame]) -> str:
    sent = "frame" if len(frames) == 1 else "frames"
    return f"{len(frames)} {sent} of {sum(len(frame.wire) for frame in frames)} bytes"


def _excerpt(frame: Frame) -> str:
    payload = frame.wire[:EXCERPT_BYTES].decode("utf-8", "replace")
    more = f" ... {len(frame.wire)} bytes" if len(frame.wire) > EXCERPT_BYTES else ""
    return f"{frame.sender.value} {frame.kind.value} {payload!r}{more}"
