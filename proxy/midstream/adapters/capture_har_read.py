"""Reads a HAR as exchanges, from whatever browser or tool wrote it.

What a HAR may lack is taken as absent: times (one entry after the other), headers, bodies. What
was never on a network is passed over. What must be there is `log.entries`, each with a request that
has a method and a URL.
"""

import base64
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from midstream.adapters.capture_script import Scene, ns_of
from midstream.core.errors import CaptureError
from midstream.core.exchange import Headers, RequestHead, ResponseHead, header
from midstream.core.frames import Frame, Kind, Side
from midstream.core.sse import SseSplitter, event

MAX_BYTES: Final = 1 << 30
HOP: Final = frozenset({"content-encoding", "transfer-encoding", "content-length"})
"""What a body that is stored decoded and whole no longer has."""
WEBSOCKETS: Final = {"ws": "http", "wss": "https"}
NO_NETWORK: Final = ("about", "blob", "chrome", "chrome-extension", "data", "file", "moz-extension")
SENDERS: Final = {
    "send": Side.CLIENT, "request": Side.CLIENT, "receive": Side.SERVER, "response": Side.SERVER,
}  # fmt: skip
TEXT, BINARY, SWITCHING = 1, 2, 101

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
            if _is_foreign(entry):
                continue
            scenes.append(_scene(entry, scenes[-1].began_ns + 1 if scenes else 1))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            what = f"{type(error).__name__} {error}".strip()
            raise CaptureError(f"{path}: entry {number} cannot be read: {what}") from None
    return scenes


def _is_foreign(entry: Json) -> bool:
    """Tell whether an entry never was on a network: browsers note `data:` and `blob:` too."""
    return str(entry["request"]["url"]).partition(":")[0].lower() in NO_NETWORK


def _scene(entry: Json, after_ns: int) -> Scene:
    request, response = entry["request"], entry.get("response") or {}
    url = urlsplit(_clean(request["url"]))
    if not url.netloc:
        raise ValueError(f"found the url {str(request['url'])[:40]!r}, expected http://HOST/...")
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    began_ns = _time(entry.get("startedDateTime"), after_ns)
    head = RequestHead(_clean(request["method"]), target, _headers(request, url.netloc))
    messages = entry.get("_webSocketMessages")
    if not head.is_websocket and (messages is not None or url.scheme in WEBSOCKETS):
        # Some tools leave the headers of the handshake out.
        head = RequestHead(head.method, target, (*head.headers, ("Upgrade", "websocket")))
    origin = f"{WEBSOCKETS.get(url.scheme, url.scheme)}://{url.netloc}"
    scene = Scene(began_ns, head, origin=origin)
    if not head.is_websocket and (body := _posted(request.get("postData") or {})):
        scene.frames.append((began_ns, Frame(Side.CLIENT, Kind.BODY, body)))
    _add_response(scene, entry, response)
    if head.is_websocket:
        scene.frames += _messages(messages or [], scene.answered_ns or began_ns)
    return scene


def _posted(posted: Json) -> bytes:
    """Return the body of a request; of a form also where only its fields were kept."""
    body = _decoded(posted.get("text"), posted.get("encoding"))
    if body or "urlencoded" not in str(posted.get("mimeType", "")):
        return body
    fields = [(_clean(p["name"]), _clean(p.get("value"))) for p in posted.get("params") or []]
    return urlencode(fields, errors="surrogateescape").encode()


def _add_response(scene: Scene, entry: Json, response: Json) -> None:
    status = int(response.get("status") or (101 if scene.head.is_websocket else 0))
    if not 100 <= status <= 999:
        scene.is_broken = True  # 0 and -1: it was never answered
        return
    content = response.get("content") or {}
    gone = HOP - {"content-encoding"} if "_coding" in content else HOP
    headers = tuple(pair for pair in _headers(response) if pair[0].lower() not in gone)
    if content.get("mimeType") and header(headers, "content-type") is None:
        headers = (*headers, ("Content-Type", _clean(content["mimeType"])))
    timings = entry.get("timings") or {}
    waits = (timings.get(key) for key in ("blocked", "dns", "connect", "send", "wait"))
    wait_s = sum(map(_seconds, waits))
    scene.answered_ns = scene.began_ns + ns_of(wait_s)
    scene.response = ResponseHead(status, headers)
    scene.is_broken = bool(response.get("_error"))
    if status == SWITCHING and scene.head.is_websocket:
        return
    ended_ns = scene.began_ns + ns_of(max(_seconds(entry.get("time")), wait_s))
    body = _decoded(content.get("text"), content.get("encoding"))
    events = entry.get("_eventSourceMessages") or []
    scene.frames += _answer(body, events, ended_ns)


def _answer(body: bytes, events: list[Json], ended_ns: int) -> Iterator[tuple[int, Frame]]:
    """Return a body; an event stream whose events have times, event by event."""
    wires: list[bytes] = []
    if body and events:
        splitter = SseSplitter(len(body) + 1)
        wires = [wire for wire in [*splitter.receive(body), splitter.flush()] if wire]
    elif events:  # Chrome has no text of a stream that it read with EventSource
        wires = [_event(each) for each in events]
    times = [_stamp(each.get("time"), ended_ns) for each in events]
    if len(times) != len(wires):  # comments are events here, and not for Chrome
        times = [ended_ns] * len(wires)
    for wall_ns, wire in zip(times, wires, strict=True):
        yield wall_ns, Frame(Side.SERVER, Kind.SSE, wire)
    if body and not events:
        yield ended_ns, Frame(Side.SERVER, Kind.BODY, body)


def _event(told: Json) -> bytes:
    name, number = told.get("eventName"), told.get("eventId")
    return event(
        str(told.get("data", "")).encode("utf-8", "surrogatepass"),
        event=_clean(name) if name and name != "message" else None,
        id=_clean(number) if number else None,
    )


def _messages(messages: list[Json], began_ns: int) -> Iterator[tuple[int, Frame]]:
    for message in messages:
        side = SENDERS.get(str(message.get("type")))
        opcode = int(message.get("opcode") or TEXT)
        if side is None or opcode not in (TEXT, BINARY):
            continue  # an error that a browser noted, or a control frame
        data = str(message.get("data", ""))
        if opcode == TEXT:
            frame = Frame(side, Kind.WS_TEXT, data.encode("utf-8", "surrogatepass"))
        else:
            frame = Frame(side, Kind.WS_BINARY, base64.b64decode(data))
        yield _stamp(message.get("time"), began_ns), frame


def _headers(message: Json, host: str = "") -> Headers:
    """Return headers. What a browser joined with line breaks is one for each line again."""
    pairs = tuple(
        (_clean(each["name"]), line)
        for each in message.get("headers") or []
        if not str(each["name"]).startswith(":")  # the pseudo headers of HTTP/2
        for line in _clean(each.get("value")).split("\n")
    )
    return (("Host", host), *pairs) if host and header(pairs, "host") is None else pairs


def _clean(value: object) -> str:
    """Return text that a record can hold: half a surrogate pair becomes bytes that are no UTF-8."""
    if value is None:
        return ""
    return str(value).encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


def _decoded(text: object, encoding: object) -> bytes:
    if not isinstance(text, str) or not text:
        return b""
    if encoding == "base64":
        return base64.b64decode(text)
    return text.encode("utf-8", "surrogatepass")


def _seconds(milliseconds: object) -> float:
    """Return a duration; 0 for what is not one, as browsers write -1."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return 0.0
    return max(milliseconds / 1000, 0.0) if math.isfinite(milliseconds) else 0.0


def _time(text: object, otherwise_ns: int) -> int:
    """Return an ISO time as nanoseconds since 1970."""
    if not isinstance(text, str) or not text:
        return otherwise_ns
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return ns_of(moment.timestamp())


def _stamp(value: object, otherwise_ns: int) -> int:
    """Return a time in seconds since 1970 as nanoseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return otherwise_ns
    return ns_of(value)
