"""Exchanges as other tools recorded them, written as the records of a capture."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from midstream.adapters.capture_format import StoredRecord, storable
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import RecordKind
from midstream.core.sse import SseSplitter

ROUTE = "default"
MAX_EVENT_BYTES = 64 << 20
US_PER_S, NS_PER_US = 1_000_000, 1000
MAX_NS = 1 << 62
"""The year 2116: later times are of no clock, and larger numbers fit no record."""


def ns_of(seconds: float) -> int:
    """Return seconds as nanoseconds that fit a record, to the microsecond, as floats of today are.

    Raises ValueError for NaN.
    """
    return round(min(max(seconds * US_PER_S, 0), MAX_NS // NS_PER_US)) * NS_PER_US


class Scene(msgspec.Struct):
    """One exchange: what happened in it, and when, in nanoseconds since 1970."""

    began_ns: int
    head: RequestHead
    response: ResponseHead | None = None
    answered_ns: int = 0
    origin: str = ""
    frames: list[tuple[int, Frame]] = msgspec.field(default_factory=list)
    close: tuple[Side, int, str] | None = None
    is_broken: bool = False


def records_of(scenes: Iterable[Scene]) -> list[StoredRecord]:
    """Return the records of exchanges in the order of time, numbered as they began."""
    made: list[StoredRecord] = []
    for number, scene in enumerate(sorted(scenes, key=lambda scene: scene.began_ns), 1):
        last_ns = scene.began_ns
        for seq, (wall_ns, kind, fields) in enumerate(_happenings(scene), 1):
            last_ns = max(last_ns, wall_ns)
            made.append(StoredRecord(last_ns, last_ns, number, seq, kind, route=ROUTE, **fields))
    made.sort(key=lambda record: record.mono_ns)  # stable: each exchange keeps its own order
    return made


def _happenings(scene: Scene) -> Iterator[tuple[int, RecordKind, dict[str, Any]]]:
    head, answered_ns = scene.head, scene.answered_ns or scene.began_ns
    meta = {
        "route": ROUTE, "upstream": "", "origin": storable(scene.origin),
        "method": storable(head.method), "target": storable(head.target),
        "headers": storable(head.headers),
    }  # fmt: skip
    yield scene.began_ns, RecordKind.OPEN, {"meta": meta}
    frames = list(_split(scene))
    early = [] if head.is_websocket else [f for f in frames if f[1].sender is Side.CLIENT]
    late = frames if head.is_websocket else [f for f in frames if f[1].sender is Side.SERVER]
    for wall_ns, frame in early:
        yield wall_ns, RecordKind.FRAME, _fields(frame)
    if not head.is_websocket:
        yield scene.began_ns, RecordKind.CLOSE, {"side": Side.CLIENT}
    if scene.response is not None:
        told = {"status": scene.response.status, "headers": storable(scene.response.headers)}
        yield answered_ns, RecordKind.HEADERS, {"side": Side.SERVER, "meta": told}
    for wall_ns, frame in late:
        yield wall_ns, RecordKind.FRAME, _fields(frame)
    end_ns = max([scene.began_ns, answered_ns, *(wall_ns for wall_ns, _ in frames)])
    if scene.is_broken:
        yield end_ns, RecordKind.CLOSE, {"meta": {"ending": "aborted"}}
        return
    side, code, reason = scene.close or (Side.SERVER, 0, "")
    closing: dict[str, Any] = {"code": code, "reason": storable(reason)} if scene.close else {}
    yield end_ns, RecordKind.CLOSE, {"side": side, "meta": closing}
    if head.is_websocket:
        yield end_ns, RecordKind.CLOSE, {"side": side.other, "meta": closing}
    yield end_ns, RecordKind.CLOSE, {"meta": {"ending": "complete"}}


def _fields(frame: Frame) -> dict[str, Any]:
    return {"side": frame.sender, "frame": frame.kind, "data": frame.wire}


def _split(scene: Scene) -> Iterator[tuple[int, Frame]]:
    """Return the frames, the body of an event stream as its events."""
    is_stream = scene.response is not None and scene.response.is_event_stream
    for wall_ns, frame in scene.frames:
        if not (is_stream and frame.sender is Side.SERVER and frame.kind is Kind.BODY):
            yield wall_ns, frame
            continue
        splitter = SseSplitter(MAX_EVENT_BYTES)
        for wire in [*splitter.receive(frame.wire), splitter.flush()]:
            if wire:
                yield wall_ns, Frame(Side.SERVER, Kind.SSE, wire)
