"""Gathers the records of each exchange, for forms that know only whole exchanges."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_heads import request_head, response_head
from midstream.core.errors import CaptureError
from midstream.core.exchange import RequestHead, ResponseHead, header
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import RecordKind

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class View(StrEnum):
    """Whose frames are meant: as one side saw them all, as they came in, or as they went out."""

    CLIENT = "client"
    SERVER = "server"
    RECEIVED = "received"
    SENT = "sent"

    def is_as_received(self, side: Side) -> bool:
        """Tell whether frames that a side sent are meant as it sent them."""
        return self is View.RECEIVED or self.value == side.value


class Moment(msgspec.Struct, frozen=True):
    """A frame as it was on the wire at one side, and when. `record` is where it comes from."""

    wall_ns: int
    frame: Frame
    record: StoredRecord


class Gathered(msgspec.Struct):
    """One exchange. `frames` are in the order of the capture.

    `closes` are what is known of each end by its side, the first that ended first; "" is the
    exchange itself. `closed_ns` is when the first side ended.
    """

    number: int
    route: str
    head: RequestHead
    began_ns: int
    meta: dict[str, Any]
    answered_ns: int = 0
    ended_ns: int = 0
    closed_ns: int = 0
    response: ResponseHead | None = None
    frames: list[Moment] = msgspec.field(default_factory=list)
    rules: list[tuple[int, str, str]] = msgspec.field(default_factory=list)
    skips: list[tuple[int, str, str]] = msgspec.field(default_factory=list)
    closes: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    ending: str = ""

    def body(self, side: Side) -> bytes:
        """Return the bytes of the frames of a side, joined: a body, or an event stream."""
        return b"".join(m.frame.wire for m in self.frames if m.frame.sender is side)

    def coding(self, side: Side) -> str:
        """Return the content coding that the body of a side still has; empty where it has none.

        A head is recorded as it came; a body that midstream read is recorded without its coding.
        """
        head = self.head if side is Side.CLIENT else self.response
        named = "" if head is None else header(head.headers, "content-encoding") or ""
        return named.strip().lower() if named and is_coded(self.body(side)) else ""

    @property
    def messages(self) -> list[Moment]:
        return [m for m in self.frames if m.frame.kind in (Kind.WS_TEXT, Kind.WS_BINARY)]


def gathered(
    records: Iterable[StoredRecord], *, seen_by: Side | View, only: frozenset[int] = frozenset()
) -> Iterator[Gathered]:
    """Return the exchanges, each when it ends, those that never end last.

    As one side saw them, its own frames are as it sent them, the other's as midstream handed them
    on. `only` are the numbers of the exchanges that are wanted, none for all.
    """
    view = View(seen_by.value)
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
        _note(exchange, record, view)
        if record.kind is RecordKind.CLOSE and record.side is None:
            yield open_.pop(number)
    yield from open_.values()


def is_coded(body: bytes) -> bool:
    """Tell whether a body that had a content coding still has it: what was read is text."""
    if body.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return True
    return False


def _note(exchange: Gathered, record: StoredRecord, view: View) -> None:
    exchange.ended_ns = record.wall_ns
    exchange.rules += [(record.seq, *words) for words in record.rules]
    exchange.skips += [(record.seq, *words) for words in record.skips]
    received = record.received
    own = [received] if received is not None and view.is_as_received(received.sender) else []
    others = [frame for frame in record.left if not view.is_as_received(frame.sender)]
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
        exchange.closed_ns = exchange.closed_ns or record.wall_ns
        if record.side is None:
            exchange.ending = str(record.meta.get("ending", ""))
