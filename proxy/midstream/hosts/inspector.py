"""What the inspector page can show: a bounded memory of the last exchanges and their records.

Rules of this file:
- Writing is an append and a few additions, whether or not anybody looks: records are redacted and
  put into words only when a page asks for them (`inspector_view.py`).
- What is remembered is bounded in bytes and in number, for all exchanges and for each one, so that
  one long download does not push out the evidence of the others.
- The oldest record goes first, whichever exchange it belongs to. An exchange that is over is
  forgotten before one that is open.
"""

import time
from collections import deque
from collections.abc import Iterator
from itertools import islice

import msgspec

from midstream.core.addon import Answer
from midstream.core.exchange import Headers, RequestHead, Transport, media_type
from midstream.core.frames import Side
from midstream.core.ports import Record, RecordKind
from midstream.hosts.gateway_call import Streams

MAX_EVENTS = 200
MAX_STREAMS = 200
MAX_RULES = 5
NS_PER_S = 1_000_000_000
RECORD_BYTES = 400
"""About what a record takes beside the bytes of its frames (measured: 330 to 420)."""


class RingBounds(msgspec.Struct, frozen=True):
    """How much is remembered: of everything, of one exchange, and of how many exchanges."""

    max_bytes: int = 24 << 20
    max_records: int = 30_000
    max_exchange_bytes: int = 12 << 20
    max_exchange_records: int = 12_000
    max_exchanges: int = 2_000


class Happening(msgspec.Struct, frozen=True):
    """Something an addon did, or declined to do: `what` is a rule or a reason."""

    at_ns: int
    exchange: int
    addon: str
    what: str
    mended: bool


class Trail:
    """What is remembered of one exchange. Counts are of all its frames, `records` the last ones.

    `revision` grows with every record of the ring; `lost` is how many records were forgotten.
    """

    __slots__ = (
        "declined",
        "head",
        "lost",
        "mended",
        "number",
        "opened_ns",
        "outcome",
        "received",
        "records",
        "revision",
        "route",
        "seen_ns",
        "sent",
        "shown",
        "size_bytes",
        "status",
        "transport",
    )  # fmt: skip

    def __init__(self, record: Record) -> None:
        meta = record.meta
        self.number = record.exchange
        self.route = str(meta.get("route", ""))
        self.head = RequestHead(
            str(meta.get("method", "")), str(meta.get("target", "")), _headers(meta)
        )
        self.transport = Transport.WS if self.head.is_websocket else Transport.HTTP
        self.opened_ns = self.seen_ns = record.mono_ns
        self.status = 0
        self.outcome = ""
        self.received = [0, 0]  # of the client, of the server: a dict of sides costs twice as much
        self.sent = [0, 0]
        self.mended = self.declined = 0
        self.records: deque[Record] = deque()
        self.revision = self.size_bytes = self.lost = 0
        self.shown: object = None  # where the view keeps what of this never changes

    def count(self, record: Record) -> None:
        """Add a record to the counts. `received` and `sent` are by the side that sent a frame."""
        self.seen_ns = record.mono_ns
        frame, sent = record.frame, record.sent
        if frame is not None:
            is_server = frame.sender is Side.SERVER
            self.received[is_server] += 1
            if sent is None:
                self.sent[is_server] += 1
        if sent:
            for left in sent:
                self.sent[left.sender is Side.SERVER] += 1
        if record.rules:
            self.mended += 1
        elif record.skips:
            self.declined += 1
        if record.kind is RecordKind.HEADERS:
            self._answered(record)
        elif record.kind is RecordKind.CLOSE and "ending" in record.meta:
            self.outcome = str(record.meta["ending"])

    def after(self, seq: int, limit: int) -> list[Record]:
        """Return at most `limit` of the records behind a number, oldest first."""
        records = self.records
        if not records:
            return []
        start = min(max(0, seq + 1 - records[0].seq), len(records))
        return list(islice(records, start, start + limit))

    def find(self, seq: int) -> Record | None:
        found = self.after(seq - 1, 1)
        return found[0] if found and found[0].seq == seq else None

    def _answered(self, record: Record) -> None:
        status = record.meta.get("status")
        self.status = status if isinstance(status, int) else 0
        if self.transport is Transport.WS and self.status == 101:
            return
        is_stream = media_type(_headers(record.meta)) == "text/event-stream"
        self.transport = Transport.SSE if is_stream else Transport.HTTP


class Ring:
    """A sink that remembers the last happenings, and the last records of the last exchanges."""

    def __init__(self, bounds: RingBounds | None = None) -> None:
        self.bounds = bounds or RingBounds()
        self.happenings: deque[Happening] = deque(maxlen=MAX_EVENTS)
        self.trails: dict[int, Trail] = {}
        self.revision = 0
        self.size_bytes = self.records = 0
        self.wall_offset_ns = time.time_ns() - time.monotonic_ns()
        self._last: dict[int, deque[str]] = {}
        self._closed: deque[int] = deque()
        self._order: deque[tuple[Trail, int]] = deque()

    def write(self, record: Record) -> None:
        if record.rules or record.skips:
            self._happened(record)
        if record.kind is RecordKind.OPEN:
            self._open(record)
        trail = self.trails.get(record.exchange)
        if trail is not None:  # else more exchanges are open than are remembered
            self.revision = trail.revision = self.revision + 1
            trail.count(record)
            self._keep(trail, record)
        if record.kind is RecordKind.CLOSE and "ending" in record.meta:
            self._last.pop(record.exchange, None)
            if trail is not None:
                self._closed.append(trail.number)

    def newest(self, limit: int) -> Iterator[Trail]:
        """Return the newest exchanges, newest first."""
        return islice(reversed(self.trails.values()), limit)

    def last_rules(self, exchange: int) -> list[str]:
        return list(self._last.get(exchange, ()))

    # --- what is remembered ---------------------------------------------------------------------

    def _open(self, record: Record) -> None:
        self.trails[record.exchange] = Trail(record)
        while len(self.trails) > self.bounds.max_exchanges:
            number = self._closed.popleft() if self._closed else next(iter(self.trails))
            trail = self.trails.pop(number, None)
            while trail is not None and trail.records:
                self._drop(trail)
        self._tidy()

    def _keep(self, trail: Trail, record: Record) -> None:
        bounds = self.bounds
        size = size_of(record)
        if size > bounds.max_exchange_bytes:
            record = _too_large(record, size)
            size = RECORD_BYTES
        trail.records.append(record)
        self._order.append((trail, record.seq))
        trail.size_bytes += size
        self.size_bytes += size
        self.records += 1
        if (
            trail.size_bytes > bounds.max_exchange_bytes
            or len(trail.records) > bounds.max_exchange_records
            or self.size_bytes > bounds.max_bytes
            or self.records > bounds.max_records
        ):
            self._forget(trail)

    def _forget(self, trail: Trail) -> None:
        """Return to the bounds: those of the exchange that has just grown, then those of all."""
        bounds = self.bounds
        while (
            trail.size_bytes > bounds.max_exchange_bytes
            or len(trail.records) > bounds.max_exchange_records
        ):
            self._drop(trail)
        while self.size_bytes > bounds.max_bytes or self.records > bounds.max_records:
            oldest, seq = self._order.popleft()
            if oldest.records and oldest.records[0].seq == seq:
                self._drop(oldest)
        self._tidy()

    def _tidy(self) -> None:
        if len(self._order) > 2 * self.bounds.max_records:  # mostly of records that are gone
            self._order = deque(item for item in self._order if item[1] > item[0].lost)

    def _drop(self, trail: Trail) -> None:
        record = trail.records.popleft()
        size = size_of(record)
        trail.lost = record.seq
        trail.size_bytes -= size
        self.size_bytes -= size
        self.records -= 1

    def _happened(self, record: Record) -> None:
        at_ns, number = record.mono_ns, record.exchange
        for addon, rule in record.rules:
            self.happenings.append(Happening(at_ns, number, addon, rule, mended=True))
            rules = self._last.setdefault(number, deque(maxlen=MAX_RULES))
            rules.append(f"{addon}: {rule}")
        for addon, reason in record.skips:
            self.happenings.append(Happening(at_ns, number, addon, reason, mended=False))


def size_of(record: Record) -> int:
    """Return about how many bytes a record takes in memory."""
    frame, meta = record.frame, record.meta
    size = RECORD_BYTES if frame is None else RECORD_BYTES + len(frame.wire)
    if record.sent:
        size += sum(RECORD_BYTES + len(frame.wire) for frame in record.sent)
    if meta:
        size += sum(len(name) + len(value) + 200 for name, value in _headers(meta))
        answer = meta.get("answer")
        if isinstance(answer, Answer):
            size += len(answer.body)
    return size


def _too_large(record: Record, size: int) -> Record:
    meta: dict[str, object] = {"count": 1, "reason": "too_large", "bytes": size}
    return msgspec.structs.replace(record, kind=RecordKind.GAP, frame=None, sent=None, meta=meta)


def _headers(meta: dict[str, object]) -> Headers:
    headers = meta.get("headers", ())
    return headers if isinstance(headers, tuple) else ()


def snapshot(streams: Streams, ring: Ring) -> dict[str, object]:
    """Return which streams are open and what was mended of late, ready for JSON; no content."""
    now_ns = time.monotonic_ns()
    newest = sorted(streams.open.items(), reverse=True)[:MAX_STREAMS]
    return {
        "draining": streams.is_draining,
        "open": len(streams.open),
        "streams": [
            {
                "exchange": number,
                "route": stream.route,
                "transport": stream.transport.value,
                "age_s": round((now_ns - stream.opened_ns) / NS_PER_S, 1),
                "in": {side.value: count for side, count in stream.frames_in.items()},
                "out": {side.value: count for side, count in stream.frames_out.items()},
                "rules": ring.last_rules(number),
            }
            for number, stream in newest
        ],
        "happenings": [
            {
                "age_s": round((now_ns - happening.at_ns) / NS_PER_S, 1),
                "exchange": happening.exchange,
                "addon": happening.addon,
                "what": happening.what,
                "mended": happening.mended,
            }
            for happening in reversed(ring.happenings)
        ],
    }
