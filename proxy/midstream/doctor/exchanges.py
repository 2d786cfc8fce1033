"""The exchanges of a capture as they open and end, and the conversations they belong to.

Exchanges belong together that have upstream, path and credential in common, the path being what
their dialect calls the conversation. Of an A2A agent, whose path is one for all, the context that
its frames name tells conversations apart; of a model provider, what its requests quote.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from midstream import registry
from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_heads import request_head, response_head, text
from midstream.core.conversation import conversation_key
from midstream.core.dialect import Dialect
from midstream.core.errors import CaptureError
from midstream.core.exchange import Exchange, RequestHead, Transport
from midstream.core.frames import Frame, Side
from midstream.dialects import a2a
from midstream.doctor.looking import Opened
from midstream.doctor.quotes import Quotes

_KEY: Final = b"doctor"
_LATE: Final = ("cloudflare_chat", "a2a")
"""These read any WebSocket, and any JSON request; the others know theirs by the path."""


class Exchanges:
    """The exchanges of one capture."""

    def __init__(self, capture: int) -> None:
        self.all: dict[int, Opened] = {}
        self._capture = capture
        self._dialects = registry.dialects()
        self._quotes = Quotes()
        self._ended: dict[str, int] = {}

    def opened(self, record: StoredRecord) -> Opened | None:
        """Take an `open` record; one without a head is passed over."""
        try:
            head = request_head(record)
        except CaptureError:
            return None
        upstream = record.meta.get("upstream", "")
        where = text(upstream) if isinstance(upstream, str | bytes) else ""
        reader = _reader(head, self._dialects)
        exchange = Opened(
            self._capture,
            record.exchange,
            head,
            _key(record.route, where, head, reader),
            record.mono_ns,
            Transport.WS if head.is_websocket else Transport.HTTP,
            _page(head.query),
            dialect="" if reader is None else reader.name,
        )
        if exchange.transport is Transport.WS:
            exchange.follows = self._ended.get(exchange.key, 0)
        self.all[record.exchange] = exchange
        return exchange

    def answered(self, record: StoredRecord) -> None:
        """Take a `headers` record."""
        exchange = self.all.get(record.exchange)
        if exchange is None:
            return
        try:
            head = response_head(record)
        except CaptureError:
            return
        exchange.status = head.status
        if exchange.transport is Transport.HTTP and head.is_event_stream:
            exchange.transport = Transport.SSE

    def closed(self, record: StoredRecord) -> Opened | None:
        """Take a `close` record; return the exchange if it is over now."""
        exchange = self.all.get(record.exchange)
        if exchange is None or record.side is not None:
            return None
        exchange.end_ns = record.mono_ns
        exchange.ending = _ending(record)
        if exchange.transport is Transport.WS:
            self._ended[exchange.key] = exchange.number
        self._quotes.closed(exchange)
        return exchange

    def heard(self, exchange: Opened, frame: Frame) -> None:
        """Take a frame: it may name what its exchange belongs to."""
        if exchange.dialect not in _LATE:
            self._quotes.hear(exchange, frame)
        elif not exchange.context and frame.sender is Side.SERVER:
            event = a2a.read(frame)
            if isinstance(event, a2a.ArtifactUpdate | a2a.StatusUpdate | a2a.Task):
                exchange.context = event.context_id

    def conversations(self) -> list[list[Opened]]:
        """Return the exchanges by conversation, both in the order of their beginnings."""
        found: dict[tuple[str, str], list[Opened]] = {}
        for exchange in self.all.values():
            context = exchange.context or self._quotes.session(exchange)
            found.setdefault((exchange.key, context), []).append(exchange)
        return list(found.values())


def _reader(head: RequestHead, dialects: Sequence[Dialect]) -> Dialect | None:
    """Return the dialect of an exchange: one that knows it by more than its form, if any does."""
    readers = {dialect.name: dialect for dialect in dialects if dialect.reads(head)}
    late = _LATE if head.is_websocket else reversed(_LATE)
    names = [*(name for name in readers if name not in _LATE), *late]
    return next((readers[name] for name in names if name in readers), None)


def _key(route: str, upstream: str, head: RequestHead, reader: Dialect | None) -> str:
    path = head.path if reader is None else reader.conversation_path(head)
    exchange = Exchange.of(head, route=route, upstream=upstream)
    return hashlib.sha256(conversation_key(exchange, path, _KEY)).hexdigest()


def _page(query: str) -> str:
    """Return what a chat page calls itself: chat clients of Cloudflare agents say `_pk`."""
    return next((part[4:] for part in query.split("&") if part.startswith("_pk=")), "")


def _ending(record: StoredRecord) -> str:
    """Say in a few words how an exchange ended."""
    meta = record.meta
    words = [str(meta.get("ending", ""))]
    for key in ("side", "code", "reason", "error"):
        value = meta.get(key)
        if isinstance(value, str | int | bytes) and value not in ("", b""):
            words.append(text(value) if isinstance(value, bytes) else str(value))
    return " ".join(words)
