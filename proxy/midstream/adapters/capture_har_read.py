"""Reads a HAR as exchanges, from whatever browser or tool wrote it.

What a HAR may lack is taken as absent: times (one entry after the other), headers, bodies. What
must be there is `log.entries`, each with a request that has a method and a URL.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from midstream.adapters.capture_script import Scene
from midstream.core.errors import CaptureError
from midstream.core.exchange import Headers, RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.sse import with_data

NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000
MAX_BYTES: Final = 1 << 30
HOP: Final = frozenset({"content-encoding", "transfer-encoding", "content-length"})
"""What a body that is stored decoded and whole no longer has."""

type Json = dict[str, Any]


def read_har(path: Path) -> list[Scene]:
    """Return the exchanges of a HAR. Raises CaptureError."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise CaptureError(f"{path}: the HAR is {size:,} bytes, the limit is {MAX_BYTES:,}")
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CaptureError(f"{path}: not a HAR: {error}") from None
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise CaptureError(f"{path}: not a HAR: it has no log.entries")
    scenes: list[Scene] = []
    for number, entry in enumerate(entries, 1):
        try:
            scenes.append(_scene(entry, scenes[-1].began_ns + 1 if scenes else 1))
        except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
            what = f"{type(error).__name__} {error}".strip()
            raise CaptureError(f"{path}: entry {number} cannot be read: {what}") from None
    return scenes


def _scene(entry: Json, after_ns: int) -> Scene:
    request, response = entry["request"], entry.get("response") or {}
    url = urlsplit(request["url"])
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    began_ns = _time(entry.get("startedDateTime"), after_ns)
    head = RequestHead(str(request["method"]), target, _headers(request, url.netloc))
    is_websocket = "_webSocketMessages" in entry or url.scheme in ("ws", "wss")
    if is_websocket and not head.is_websocket:  # some tools leave the handshake's headers out
        head = RequestHead(head.method, target, (*head.headers, ("Upgrade", "websocket")))
    scheme = {"ws": "http", "wss": "https"}.get(url.scheme, url.scheme)
    scene = Scene(began_ns, head, origin=f"{scheme}://{url.netloc}")
    _add_request_body(scene, request)
    _add_response(scene, entry, response, is_websocket)
    if is_websocket:
        scene.frames += _messages(entry.get("_webSocketMessages") or [], began_ns)
    return scene


def _add_request_body(scene: Scene, request: Json) -> None:
    posted = request.get("postData") or {}
    body = _decoded(posted.get("text"), posted.get("encoding"))
    if body:
        scene.frames.append((scene.began_ns, Frame(Side.CLIENT, Kind.BODY, body)))


def _add_response(scene: Scene, entry: Json, response: Json, is_websocket: bool) -> None:
    status = int(response.get("status") or (101 if is_websocket else 0))
    if status <= 0:
        scene.is_broken = True
        return
    content = response.get("content") or {}
    headers = tuple(pair for pair in _headers(response) if pair[0].lower() not in HOP)
    if not any(name.lower() == "content-type" for name, _ in headers) and content.get("mimeType"):
        headers = (*headers, ("Content-Type", str(content["mimeType"])))
    timings = entry.get("timings") or {}
    waits = (timings.get(key) for key in ("blocked", "dns", "connect", "send", "wait"))
    wait_ms = sum(max(float(value or 0), 0) for value in waits)
    scene.answered_ns = scene.began_ns + int(wait_ms * NS_PER_MS)
    scene.response = ResponseHead(status, headers)
    took_ms = max(float(entry.get("time") or 0), wait_ms)
    events = entry.get("_eventSourceMessages")
    body = _decoded(content.get("text"), content.get("encoding"))
    if body and not is_websocket:
        end_ns = scene.began_ns + int(took_ms * NS_PER_MS)
        scene.frames += _timed(body, events, end_ns)
    elif events and not is_websocket:  # Chrome keeps no text of a stream that is still open
        scene.frames += [
            (_stamp(e.get("time"), scene.answered_ns), _event(str(e.get("data", ""))))
            for e in events
        ]


def _timed(body: bytes, events: Any, end_ns: int) -> Iterator[tuple[int, Frame]]:
    """Return a body; an event stream whose events have times, event by event."""
    if not isinstance(events, list) or not events:
        yield end_ns, Frame(Side.SERVER, Kind.BODY, body)
        return
    from midstream.core.sse import SseSplitter

    splitter = SseSplitter(len(body) + 1)
    wires = [wire for wire in [*splitter.receive(body), splitter.flush()] if wire]
    times = [_stamp(event.get("time"), end_ns) for event in events]
    if len(times) != len(wires):
        times = [end_ns] * len(wires)
    for wall_ns, wire in zip(times, wires, strict=True):
        yield wall_ns, Frame(Side.SERVER, Kind.SSE, wire)


def _event(data: str) -> Frame:
    return Frame(Side.SERVER, Kind.SSE, with_data(b"data: \n\n", data.encode()))


def _messages(messages: list[Json], began_ns: int) -> Iterator[tuple[int, Frame]]:
    for message in messages:
        side = Side.CLIENT if message.get("type") in ("send", "request") else Side.SERVER
        data, is_text = str(message.get("data", "")), int(message.get("opcode") or 1) == 1
        kind = Kind.WS_TEXT if is_text else Kind.WS_BINARY
        wire = data.encode("utf-8", "surrogatepass") if is_text else base64.b64decode(data)
        yield _stamp(message.get("time"), began_ns), Frame(side, kind, wire)


def _headers(message: Json, host: str = "") -> Headers:
    pairs = tuple(
        (str(header["name"]), str(header["value"]))
        for header in message.get("headers") or []
        if not str(header["name"]).startswith(":")  # the pseudo headers of HTTP/2
    )
    if host and not any(name.lower() == "host" for name, _ in pairs):
        return (("Host", host), *pairs)
    return pairs


def _decoded(text: object, encoding: object) -> bytes:
    if not isinstance(text, str) or not text:
        return b""
    if encoding == "base64":
        return base64.b64decode(text)
    return text.encode("utf-8", "surrogatepass")


def _time(text: object, otherwise_ns: int) -> int:
    """Return an ISO time as nanoseconds since 1970."""
    if not isinstance(text, str) or not text:
        return otherwise_ns
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * NS_PER_S)


def _stamp(value: object, otherwise_ns: int) -> int:
    """Return a time in seconds since 1970 as nanoseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return otherwise_ns
    return int(value * NS_PER_S)
