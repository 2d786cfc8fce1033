"""A capture as HAR 1.2, as browsers write and read it.

- WebSocket messages stand in `_webSocketMessages` as Chrome writes them, with the exchange's
  `_resourceType` of `websocket`; text is data, a binary message is base64 with opcode 2.
- There is no agreed place for events: an event stream is the content's text, and its events with
  their times stand in `_eventSourceMessages` beside it, which Chrome writes too and does not read.
- Bodies are text without their content coding; one whose coding is not undone here is base64, and
  `_coding` beside it names the coding.
- What midstream did is `_midstream`, a member that others pass over.

Source: HAR 1.2 (W3C web performance group, historical draft); Chromium
`front_end/models/har/HARFormat.ts` for its own members.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final
from urllib.parse import parse_qsl, quote

import msgspec

from midstream import __version__
from midstream.adapters.capture_exchanges import Gathered, Moment
from midstream.adapters.capture_jsonl import readable
from midstream.core.exchange import Headers, header
from midstream.core.frames import Kind, Side
from midstream.core.sse import fields_of

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
UNKNOWN: Final = -1
URL_SAFE: Final = "".join(map(chr, range(0x21, 0x7F)))
MAX_INFLATED_BYTES: Final = 64 << 20
REASONS: Final = {101: "Switching Protocols", 200: "OK", 204: "No Content", 404: "Not Found"}


def write_har(exchanges: Iterable[Gathered], file: BinaryIO) -> None:
    """Write one log; entry by entry, so that a large capture needs little memory."""
    creator = msgspec.json.encode({"name": "midstream", "version": __version__})
    file.write(b'{"log":{"version":"1.2","creator":' + creator + b',"pages":[],"entries":[')
    for number, exchange in enumerate(exchanges):
        file.write(b",\n" if number else b"\n")
        file.write(msgspec.json.encode(entry(exchange)))
    file.write(b"\n]}}\n")


def entry(exchange: Gathered) -> dict[str, Any]:
    """Return an exchange as an entry of a log."""
    took_ms = max(exchange.ended_ns - exchange.began_ns, 0) / NS_PER_MS
    answered_ns = exchange.answered_ns or exchange.ended_ns
    wait_ms = max(answered_ns - exchange.began_ns, 0) / NS_PER_MS
    found: dict[str, Any] = {
        "startedDateTime": _when(exchange.began_ns),
        "time": took_ms,
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": {"send": 0, "wait": wait_ms, "receive": max(took_ms - wait_ms, 0)},
        "_resourceType": _resource_type(exchange),
        "_midstream": {
            "exchange": exchange.number,
            "route": exchange.route,
            "upstream": exchange.meta.get("upstream", ""),
            "rules": [{"seq": s, "addon": a, "rule": r} for s, a, r in exchange.rules],
            "declined": [{"seq": s, "addon": a, "reason": r} for s, a, r in exchange.skips],
            "ending": exchange.ending,
        },
    }
    if exchange.head.is_websocket:
        found["_webSocketMessages"] = [_message(moment) for moment in exchange.messages]
    elif exchange.response is not None and exchange.response.is_event_stream:
        found["_eventSourceMessages"] = list(_events(exchange))
    return found


def url_of(exchange: Gathered) -> str:
    """Return the URL that the client asked for."""
    origin = exchange.meta.get("origin") or ""
    if not isinstance(origin, str) or not origin:
        origin = f"http://{header(exchange.head.headers, 'host') or 'unknown'}"
    if exchange.head.is_websocket:
        origin = origin.replace("http", "ws", 1)
    return origin + exchange.head.target


def _request(exchange: Gathered) -> dict[str, Any]:
    head = exchange.head
    body, text = _text_of(exchange, Side.CLIENT)
    found: dict[str, Any] = {
        "method": head.method,
        "url": quote(url_of(exchange).encode("utf-8", "surrogateescape"), safe=URL_SAFE),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(head.headers),
        "queryString": [
            {"name": _text(name), "value": _text(value)}
            for name, value in parse_qsl(head.query, keep_blank_values=True)
        ],
        "headersSize": UNKNOWN,
        "bodySize": len(body),
    }
    if body:
        mime_type = header(head.headers, "content-type") or ""
        found["postData"] = {"mimeType": _text(mime_type), **text}
    return found


def _response(exchange: Gathered) -> dict[str, Any]:
    response = exchange.response
    status = 0 if response is None else response.status
    headers = () if response is None else response.headers
    body, text = _text_of(exchange, Side.SERVER)
    mime_type = header(headers, "content-type") or "x-unknown"
    content = {"size": len(body), "mimeType": _text(mime_type), **text}
    found = {
        "status": status,
        "statusText": REASONS.get(status, ""),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "content": content,
        "redirectURL": _text(header(headers, "location") or ""),
        "headersSize": UNKNOWN,
        "bodySize": len(body),
    }
    if exchange.ending == "aborted":
        found["_error"] = "the exchange was broken off"
    return found


def _text_of(exchange: Gathered, side: Side) -> tuple[bytes, dict[str, Any]]:
    """Return the body of a side without its coding, and the members that hold it as text."""
    body = b"" if exchange.head.is_websocket else exchange.body(side)
    if not body:
        return body, {}
    more: dict[str, Any] = {}
    if coding := exchange.coding(side):
        inflated = _inflated(body, coding)
        body, more = (body, {"_coding": coding}) if inflated is None else (inflated, {})
    text = readable(body)
    if isinstance(text, str):
        return body, {"text": text, **more}
    return body, {"text": text["base64"], "encoding": "base64", **more}


def _inflated(body: bytes, coding: str) -> bytes | None:
    """Undo gzip and deflate; None for other codings, and for a body too large or not whole."""
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        found = inflater.decompress(body, MAX_INFLATED_BYTES)
    except zlib.error:
        return None
    return found if inflater.eof and not inflater.unused_data else None


def _message(moment: Moment) -> dict[str, Any]:
    frame = moment.frame
    is_text = frame.kind is Kind.WS_TEXT
    return {
        "type": "send" if frame.sender is Side.CLIENT else "receive",
        "time": moment.wall_ns / NS_PER_S,
        "opcode": 1 if is_text else 2,
        "data": frame.wire.decode("utf-8", "replace")
        if is_text
        else base64.b64encode(frame.wire).decode(),
    }


def _events(exchange: Gathered) -> Iterator[dict[str, Any]]:
    for moment in exchange.frames:
        if moment.frame.kind is Kind.SSE:
            fields = dict(fields_of(moment.frame.wire))
            yield {
                "time": moment.wall_ns / NS_PER_S,
                "eventName": fields.get(b"event", b"message").decode("utf-8", "replace"),
                "eventId": fields.get(b"id", b"").decode("utf-8", "replace"),
                "data": moment.frame.payload.decode("utf-8", "replace"),
            }


def _pairs(headers: Headers) -> list[dict[str, str]]:
    return [{"name": _text(name), "value": _text(value)} for name, value in headers]


def _text(value: str) -> str:
    """Return text that JSON can hold: a byte that was no UTF-8 is replaced."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _resource_type(exchange: Gathered) -> str:
    if exchange.head.is_websocket:
        return "websocket"
    response = exchange.response
    return "eventsource" if response is not None and response.is_event_stream else "fetch"


def _when(wall_ns: int) -> str:
    moment = datetime.fromtimestamp(wall_ns / NS_PER_S, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
