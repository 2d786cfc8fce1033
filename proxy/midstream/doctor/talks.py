"""Timelines: the exchanges of each conversation as lanes, with their frames.

Without `is_drawn` only lanes are kept, no frames. Of very long captures the frames that nothing is
told of are left out beyond a bound, and counted; those that are marked stay longer.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from midstream.adapters.capture_format import StoredRecord
from midstream.core.exchange import Transport
from midstream.core.frames import Side
from midstream.describing import dialects_of, in_words
from midstream.doctor.exchanges import Exchanges
from midstream.doctor.looking import Opened
from midstream.doctor.report import NS_PER_MS, Exchange, Frame, Talk
from midstream.doctor.words import reasons, shown

MAX_FRAMES: Final = 20_000
MAX_MARKED: Final = 40_000
MAX_LABEL_CHARS: Final = 120
MAX_TEXT_CHARS: Final = 160


class Timeline:
    """The lanes of one capture."""

    def __init__(self, capture: int, exchanges: Exchanges, *, is_drawn: bool) -> None:
        self._capture = capture
        self._exchanges = exchanges
        self._is_drawn = is_drawn
        self._begin_ns: int | None = None
        self._frames: dict[int, list[Frame]] = defaultdict(list)
        self._last: dict[tuple[int, Side], Frame] = {}
        self._count: dict[int, int] = defaultdict(int)
        self._size: dict[int, int] = defaultdict(int)
        self._left_out: dict[int, int] = defaultdict(int)
        self._dialects: dict[int, list[str]] = {}
        self._kept = 0

    def record(self, record: StoredRecord) -> None:
        """Take a record, before what is told of it."""
        if self._begin_ns is None:
            self._begin_ns = record.mono_ns
        received = record.received
        if received is not None:
            self._count[record.exchange] += 1
            self._size[record.exchange] += len(record.data)
        if not self._is_drawn or (received is None and not _did_something(record)):
            return
        sent = None if record.sent is None else sum(len(data) for _, _, data in record.sent)
        if received is None:
            text, side, kind = f"midstream sent {len(record.sent or ())} frames", "", "repair"
        else:
            text = in_words(self._readers(record.exchange), received)
            side, kind = received.sender.value, received.kind.value
        frame = Frame(
            record.exchange,
            record.seq,
            self._ms(record.mono_ns),
            side,
            kind,
            len(record.data),
            sent,
            shown(text, MAX_TEXT_CHARS),
        )
        _explain(frame, record)
        self._keep(frame, None if received is None else received.sender)

    def told(self, exchange: int, side: Side | None, faults: list[str], why: list[str]) -> None:
        """Mark the last frame of a side with what observe mode counted."""
        frame = self._last.get((exchange, side)) if side is not None else None
        if frame is None:
            found = [f for s in Side if (f := self._last.get((exchange, s))) is not None]
            frame = max(found, key=lambda one: one.seq, default=None)
        if frame is None:
            return
        frame.faults += faults
        frame.why += [line for line in why if line not in frame.why]

    def talks(self) -> list[Talk]:
        """Return the conversations with their lanes and frames."""
        found = []
        for opened in self._exchanges.conversations():
            frames = [frame for one in opened for frame in self._frames.pop(one.number, [])]
            frames.sort(key=lambda frame: (frame.at_ms, frame.exchange, frame.seq))
            left_out = sum(self._left_out[one.number] for one in opened)
            lanes = [self._lane(one) for one in opened]
            found.append(Talk(self._capture, _title(opened), lanes, frames, left_out))
        return found

    def _readers(self, exchange: int) -> list[str]:
        """Return the dialects that may read an exchange, found once."""
        if exchange not in self._dialects:
            opened = self._exchanges.all.get(exchange)
            self._dialects[exchange] = dialects_of(None if opened is None else opened.head)
        return self._dialects[exchange]

    def _keep(self, frame: Frame, side: Side | None) -> None:
        if self._kept >= (MAX_MARKED if frame.mended else MAX_FRAMES):
            self._left_out[frame.exchange] += 1
            if side is not None:
                self._last.pop((frame.exchange, side), None)
            return
        self._kept += 1
        self._frames[frame.exchange].append(frame)
        if side is not None:
            self._last[frame.exchange, side] = frame

    def _lane(self, opened: Opened) -> Exchange:
        return Exchange(
            opened.number,
            shown(f"{opened.head.method} {opened.head.path}", MAX_LABEL_CHARS),
            opened.transport.value,
            self._ms(opened.begin_ns),
            None if opened.end_ns is None else self._ms(opened.end_ns),
            shown(opened.ending, MAX_LABEL_CHARS),
            opened.status,
            self._count[opened.number],
            self._size[opened.number],
            opened.follows,
            [(self._ms(begin), self._ms(end), chunks) for begin, end, chunks in opened.replays],
        )

    def _ms(self, mono_ns: int) -> float:
        return round((mono_ns - (self._begin_ns or 0)) / NS_PER_MS, 3)


def _did_something(record: StoredRecord) -> bool:
    return bool(record.sent) or bool(record.rules)


def _explain(frame: Frame, record: StoredRecord) -> None:
    """Say of a frame what the capture says was done with it."""
    frame.mended = [f"{addon} {rule}" for addon, rule in record.rules if record.sent is not None]
    frame.declined = [f"{addon} {reason}" for addon, reason in record.skips]
    frame.why = reasons(record)


def _title(opened: Sequence[Opened]) -> str:
    first = opened[0]
    path = first.head.path
    if first.transport is Transport.HTTP and path.endswith("/get-messages"):
        path = path.removesuffix("/get-messages")
    context = next((one.context for one in opened if one.context), "")
    return shown(f"{path} · {context[:12]}" if context else path, MAX_LABEL_CHARS)
