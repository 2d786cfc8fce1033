"""What a page is shown of the ring: exchanges as rows, records as rows, one record in full.

Rules of this file:
- Every record goes through the redactor of the capture first, whether or not one is configured.
- Of a query only the names are shown.
- What is shown of one record is bounded; a page that wants all of it downloads the capture.
"""

import io
from collections.abc import Iterator

import msgspec

from midstream import describing
from midstream.adapters.capture_exchanges import gathered
from midstream.adapters.capture_format import HEADER, StoredRecord, encode
from midstream.adapters.capture_har import write_har
from midstream.adapters.capture_redact import Redactor
from midstream.core.exchange import Headers
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind
from midstream.core.sse import fields_of
from midstream.explaining import explain
from midstream.hosts.inspector import Ring, Trail

MAX_TEXT_BYTES = 600
"""Of a payload in a row, which the page searches."""
MAX_SHOWN_BYTES = 1 << 18
"""Of one frame in full."""
MAX_FRAMES_SHOWN = 200
MAX_FIRST_RECORDS = 12
HEX_BYTES = 4096
NS_PER_MS = 1_000_000


class View:
    """Puts what a ring remembers into what a page shows, ready for JSON."""

    def __init__(self, ring: Ring, redactor: Redactor) -> None:
        self.ring = ring
        self._redactor = redactor

    def exchange(self, trail: Trail) -> dict[str, object]:
        """Return the row of an exchange. `in` and `out` are frames by the side that sent them."""
        known = self._known(trail)
        return {
            "exchange": trail.number,
            "route": trail.route,
            "method": trail.head.method,
            "path": known.path,
            "transport": trail.transport.value,
            "dialect": known.spoken(trail),
            "opened_ms": (trail.opened_ns + self.ring.wall_offset_ns) // NS_PER_MS,
            "seen_ms": (trail.seen_ns + self.ring.wall_offset_ns) // NS_PER_MS,
            "in": trail.received,
            "out": trail.sent,
            "mended": trail.mended,
            "declined": trail.declined,
            "status": trail.status,
            "outcome": trail.outcome,
        }

    def row(self, trail: Trail, record: Record) -> dict[str, object]:
        """Return the row of a record."""
        record = self._clean(trail, record)
        frame = record.frame or (record.sent[0] if record.sent else None)
        return {
            "seq": record.seq,
            "at_ms": round((record.mono_ns - trail.opened_ns) / NS_PER_MS, 1),
            "record": record.kind.value,
            "side": "" if record.side is None else record.side.value,
            "kind": "" if frame is None else frame.kind.value,
            "size": 0 if frame is None else len(frame.wire),
            "words": self._words(trail, record, frame),
            "text": "" if frame is None else _text(frame, MAX_TEXT_BYTES),
            "rules": record.rules,
            "skips": record.skips,
            "became": became(record),
        }

    def detail(self, trail: Trail, record: Record) -> dict[str, object]:
        """Return one record in full: the frame as received, what left instead, and why."""
        record = self._clean(trail, record)
        meta = {key: value for key, value in record.meta.items() if key not in ("headers", "why")}
        if "target" in meta:
            meta["target"] = shown_target(str(meta["target"]))
        return self.row(trail, record) | {
            "wall_ms": (record.mono_ns + self.ring.wall_offset_ns) // NS_PER_MS,
            "before": None if record.frame is None else self._shown(trail, record.frame),
            "after": None
            if record.sent is None
            else [self._shown(trail, frame) for frame in record.sent[:MAX_FRAMES_SHOWN]],
            "left": 0 if record.sent is None else len(record.sent),
            "why": explain(record.rules, record.skips, record.meta.get("why", ())),
            "headers": _headers(record.meta),
            "meta": {key: _plain(value) for key, value in meta.items()},
        }

    def holds(self, trail: Trail, record: Record, text: str) -> bool:
        """Tell whether a record's frames hold a text, given in lower case."""
        record = self._clean(trail, record)
        frames = (*(() if record.frame is None else (record.frame,)), *(record.sent or ()))
        return any(text in _text(frame, len(frame.wire)).lower() for frame in frames)

    def capture(self, trail: Trail) -> Iterator[bytes]:
        """Return what is remembered of an exchange as the bytes of a capture segment."""
        yield HEADER
        for record in self.stored(trail):
            yield encode(record)

    def stored(self, trail: Trail) -> Iterator[StoredRecord]:
        """Return the records of an exchange as a capture holds them, a gap for what is lost."""
        offset_ns = self.ring.wall_offset_ns
        if trail.lost:
            meta: dict[str, object] = {"count": trail.lost, "reason": "ring"}
            gap = Record(trail.opened_ns, trail.number, 0, RecordKind.GAP, meta=meta)
            yield StoredRecord.of(gap, trail.opened_ns + offset_ns, trail.route)
        for record in tuple(trail.records):
            wall_ns = record.mono_ns + offset_ns
            yield StoredRecord.of(self._clean(trail, record), wall_ns, trail.route)

    def har(self, trail: Trail) -> bytes:
        """Return what is remembered of an exchange as HAR, as the client saw it."""
        file = io.BytesIO()
        write_har(gathered(self.stored(trail), seen_by=Side.CLIENT), file)
        return file.getvalue()

    def _clean(self, trail: Trail, record: Record) -> Record:
        """Return a record without secrets.

        A body that is not read comes in pieces, and a secret may be cut between two of them: the
        redactor needs the one before, and without it the piece is left out.
        """
        frame = record.frame
        if frame is not None and "unread" in record.meta:
            before = trail.find(record.seq - 1)
            if before is None:
                meta: dict[str, object] = {"count": 1, "reason": "what came before is forgotten"}
                return msgspec.structs.replace(
                    record, kind=RecordKind.GAP, frame=None, sent=None, meta=meta
                )
            self._redactor.record(before)
        return self._redactor.record(record)

    def _known(self, trail: Trail) -> "_Known":
        """Return what of an exchange never changes; it is worked out once."""
        known = trail.shown
        if not isinstance(known, _Known):
            head = trail.head
            meta: dict[str, object] = {"target": head.target, "headers": head.headers}
            opened = Record(trail.opened_ns, trail.number, 0, RecordKind.OPEN, meta=meta)
            target = str(self._redactor.record(opened).meta["target"])
            known = trail.shown = _Known(shown_target(target), describing.dialects_of(head))
        return known

    def _meaning(self, trail: Trail, frame: Frame) -> str:
        return describing.in_words(self._known(trail).dialects, frame)

    def _words(self, trail: Trail, record: Record, frame: Frame | None) -> str:
        meta = record.meta
        match record.kind:
            case RecordKind.OPEN:
                return f"{trail.head.method} {self._known(trail).path}"
            case RecordKind.HEADERS:
                return f"status {meta.get('status')}"
            case RecordKind.CLOSE:
                said = [f"{key} {value}" for key, value in meta.items() if value not in ("", None)]
                return ("" if record.side is None else "end, ") + (", ".join(said) or "no more")
            case RecordKind.GAP:
                return f"{meta.get('count')} records not kept: {meta.get('reason')}"
            case RecordKind.ASK:
                return f"answer to {type(meta.get('ask')).__name__.lower()}"
        if frame is None:
            return "gave up reading" if "gave_up" in meta else "nothing left"
        return self._meaning(trail, frame)

    def _shown(self, trail: Trail, frame: Frame) -> dict[str, object]:
        text = _text(frame, MAX_SHOWN_BYTES)
        return {
            "side": frame.sender.value,
            "kind": frame.kind.value,
            "size": len(frame.wire),
            "words": self._meaning(trail, frame),
            "fields": _fields(frame),
            "text": text,
            "cut": len(frame.payload) > MAX_SHOWN_BYTES,
        }


class _Known(msgspec.Struct):
    """What of an exchange is worked out once. `dialects` may read it, `dialect` is spoken in it."""

    path: str
    dialects: list[str]
    dialect: str = ""
    looked: int = 0

    def spoken(self, trail: Trail) -> str:
        """Return the dialect that knows one of the first frames; nothing where none does."""
        if not self.dialect and self.looked < MAX_FIRST_RECORDS:
            for record in trail.after(self.looked, MAX_FIRST_RECORDS):
                self.looked, frame = record.seq, record.frame
                if frame is not None and not self.dialect:
                    known = (name for name in self.dialects if describing.is_known([name], frame))
                    self.dialect = next(known, "")
        return self.dialect


def became(record: Record) -> str:
    """Return in a word what was done with the frame of a record; empty where nothing was."""
    sent, frame = record.sent, record.frame
    if frame is None:
        return f"sent {len(sent)}" if sent else ""
    if record.rules:
        if sent is None:
            return "would mend"
        return "dropped" if not sent else "mended"
    if sent is None:
        return "left alone" if record.skips else ""
    return f"sent {len(sent)}" if sent else "held"


def shown_target(target: str) -> str:
    """Return a request target with the values of its query left out."""
    path, mark, query = target.partition("?")
    names = [name + ("=…" if is_set else "") for name, is_set, _ in map(_halves, query.split("&"))]
    return path + mark + "&".join(names)


def _halves(pair: str) -> tuple[str, str, str]:
    return pair.partition("=")


def _fields(frame: Frame) -> list[tuple[str, str]]:
    """Return the lines of an event that are no data."""
    if frame.kind is not Kind.SSE:
        return []
    return [
        (name.decode("utf-8", "replace"), value.decode("utf-8", "replace")[:1000])
        for name, value in fields_of(frame.wire)
        if name != b"data"
    ][:50]


def _text(frame: Frame, max_bytes: int) -> str:
    """Return what a frame carries as text: JSON for msgpack, hexadecimal for what is neither."""
    payload = frame.payload or frame.wire  # a comment is all that some events have
    if frame.kind is Kind.WS_BINARY or b"\x00" in payload[:1000]:
        try:
            return msgspec.json.encode(msgspec.msgpack.decode(payload)).decode()[:max_bytes]
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            return payload[: min(HEX_BYTES, max_bytes)].hex(" ", 2)
    return payload[:max_bytes].decode("utf-8", "replace")


def _headers(meta: dict[str, object]) -> Headers:
    headers = meta.get("headers", ())
    return headers if isinstance(headers, tuple) else ()


def _plain(value: object) -> object:
    """Return a value of `meta` that JSON can hold, in short."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(msgspec.to_builtins(value))
    return text.encode("utf-8", "replace").decode()[:2000]
