"""HTTP bodies inside mitmproxy: which arrive whole, which stream, and what a session makes of them.

Rules of this file:
- A body that a session reads whole and that fits the frame limit is buffered by mitmproxy and
  edited in its hook, so that Content-Length stays right. Everything else streams: nothing stalls.
- The callable that a body streams through returns a list of pieces that are not empty, and never
  raises: an empty piece ends a chunked body, an exception loses the rest of it.
"""

import logging
from collections.abc import Callable

from mitmproxy import http
from mitmproxy.net import encoding

from midstream.core.errors import BadEncoding, FrameTooLarge
from midstream.core.frames import Side
from midstream.core.session import Reading
from midstream.hosts.gateway_codings import inflater
from midstream.hosts.gateway_heads import BODY_DIGESTS
from midstream.hosts.mitm_live import Live

logger = logging.getLogger(__name__)

MAX_BUFFERED_UNREAD_BYTES = 1 << 20
"""Unread requests up to this size arrive whole, for mitmproxy's own addons that edit requests."""

type Pump = Callable[[bytes], list[bytes]]


def pump(live: Live, side: Side) -> Pump:
    """Return the callable that a body streams through. The last call brings no bytes."""

    def receive(data: bytes) -> list[bytes]:
        try:
            if data:
                live.receive(side, data)
            else:
                live.end(side)
            return live.take(side)
        except Exception:
            logger.exception("a streamed body passes as it came")
            return [data] if data else []

    return receive


def plan(live: Live, side: Side, message: http.Message, max_bytes: int) -> Pump | None:
    """Return the callable that a body should stream through, or None where it arrives whole."""
    reading = live.session.reads(side)
    size, coding = _size(message), _coding(message)
    fits = size is not None and size <= max_bytes
    if coding and reading in (Reading.BODY, Reading.EVENTS):
        can_inflate = reading is Reading.BODY and fits and inflater(coding) is not None
        if not can_inflate:
            live.give_up(side, "bad_encoding")
            reading = Reading.UNREAD
    if reading is Reading.BODY and fits:
        return None
    if reading is Reading.UNREAD and side is Side.CLIENT and size is not None:
        return pump(live, side) if size > MAX_BUFFERED_UNREAD_BYTES else None
    return pump(live, side)


def rewrite(live: Live, side: Side, message: http.Message, max_bytes: int) -> None:
    """Send a body that arrived whole through its session. It is touched only if it changed."""
    raw = message.raw_content or b""
    coding = _coding(message) if live.session.reads(side) is Reading.BODY else ""
    body = raw
    if raw and coding:
        try:
            body = _inflated(raw, coding, max_bytes)
        except (BadEncoding, FrameTooLarge) as error:
            live.give_up(side, "bad_encoding" if isinstance(error, BadEncoding) else "too_large")
            coding = ""
    if body:
        live.receive(side, body)
    live.end(side)
    out = b"".join(live.take(side))
    if out != body:
        _replace(message, out, coding)


def unfix_length(flow: http.HTTPFlow) -> None:
    """Let a response grow or shrink while it streams."""
    response = flow.response
    if response is None or flow.request.method == "HEAD" or response.status_code in (204, 304):
        return
    _drop_digests(response)
    if response.headers.pop("content-length", None) is None:
        return
    if flow.request.http_version == response.http_version == "HTTP/1.1":
        response.headers["transfer-encoding"] = "chunked"  # else the end of the connection ends it


def _inflated(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Return what a coded body holds. Raises BadEncoding, FrameTooLarge."""
    inflate = inflater(coding)
    if inflate is None:
        raise BadEncoding(f"the coding {coding} cannot be undone")
    out = bytearray()
    for piece in inflate.inflate(body):
        out += piece
        if len(out) > max_bytes:
            raise FrameTooLarge(f"an inflated body is over {max_bytes} bytes")
    inflate.finish()
    return bytes(out)


def _replace(message: http.Message, body: bytes, coding: str) -> None:
    """Give a message a new body, in the coding it came in."""
    message.raw_content = encoding.encode(body, coding) if coding else body
    _drop_digests(message)
    if "transfer-encoding" not in message.headers:
        message.headers["content-length"] = str(len(message.raw_content))


def _drop_digests(message: http.Message) -> None:
    for name in BODY_DIGESTS:
        message.headers.pop(name, None)


def _coding(message: http.Message) -> str:
    coding = message.headers.get("content-encoding", "").strip().lower()
    return "" if coding == "identity" else coding


def _size(message: http.Message) -> int | None:
    """Return the announced size of a body in bytes, or None."""
    if "transfer-encoding" in message.headers:
        return None
    try:
        return int(message.headers["content-length"])
    except (KeyError, ValueError):
        return None
