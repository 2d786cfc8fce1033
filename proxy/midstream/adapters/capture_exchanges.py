"""Gathers the records of each exchange, for forms that know only whole exchanges."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_heads import request_head, response_head
from midstream.core.errors import CaptureError
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import RecordKind


class Moment(msgspec.Struct, frozen=True):
    """A frame as it was on the wire at one side, and when. `record` is where it comes from."""

    wall_ns: int
    frame: Frame
    record: StoredRecord


class Gathered(msgspec.Struct):
    """One exchange. `frames` are in the order of the capture."""

    number: int
    route: str
    head: RequestHead
    began_ns: int
    meta: dict[str, Any]
    answered_ns: int = 0
    ended_ns: int = 0
    response: ResponseHead | None = None
    frames: list[Moment] = msgspec.field(default_factory=list)
    rules: list[tuple[int, str, str]] = msgspec.field(default_factory=list)
    skips: list[tuple[int, str, str]] = msgspec.field(default_factory=list)
    closes: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    ending: str = ""

    def body(self, side: Side) -> bytes:
        """Return the bytes of the frames of a side, joined: a body, or an event stream."""
        return b"".join(m.frame.wire for m in self.frames if m.frame.sender is side)

    @property
    def messages(self) -> list[Moment]:
        return [m for m in self.frames if m.frame.kind in (Kind.WS_TEXT, Kind.WS_BINARY)]


def gathered(
    records: Iterable[StoredRecord], *, seen_by: Side, only: frozenset[int] = frozenset()
) -> Iterator[Gathered]:
    """Return the exchanges, each when it ends, those that never end last.

    Frames are as one side saw them: its own as it sent them, the other's as midstream handed them
    on. `only` are the numbers of the exchanges that are wanted, none for all.
    """
    open_: dict[int, Gathered] = {}
    for record in records:
        number = record.exchange
        if only and number not in only:
            continue
        if record.kind is RecordKind.OPEN:
            head = request_head(record)
            open_[number] = Gathered(number, record.route, head, record.wall_ns, record.meta)
        exchange = open_.get(number)
        if exchange is None:
            continue
        _note(exchange, record, seen_by)
        if record.kind is RecordKind.CLOSE and record.side is None:
            yield open_.pop(number)
    yield from open_.values()


def _note(exchange: Gathered, record: StoredRecord, seen_by: Side) -> None:
    exchange.ended_ns = record.wall_ns
    exchange.rules += [(record.seq, *words) for words in record.rules]
    exchange.skips += [(record.seq, *words) for words in record.skips]
    received = record.received
    own = [received] if received is not None and received.sender is seen_by else []
    others = [frame for frame in record.left if frame.sender is not seen_by]
    exchange.frames += [Moment(record.wall_ns, frame, record) for frame in (*own, *others)]
    if record.kind is RecordKind.HEADERS:
        exchange.answered_ns = record.wall_ns
        try:
            exchange.response = response_head(record)
        except CaptureError:
            exchange.response = None
    elif record.kind is RecordKind.CLOSE:
        side = "" if record.side is None else record.side.value
        exchange.closes[side] = record.meta
        if record.side is None:
            exchange.ending = str(record.meta.get("ending", ""))
