"""A capture as mitmproxy flows, and mitmproxy flows as a capture.

mitmproxy's own reader and writer do the work, so that its files stay readable whatever version
wrote them. Imported lazily: mitmproxy is an extra.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import urlsplit

from midstream.adapters.capture_exchanges import Gathered
from midstream.adapters.capture_har import url_of
from midstream.adapters.capture_script import Scene
from midstream.core.errors import CaptureError
from midstream.core.exchange import Headers, RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

NS_PER_S: Final = 1_000_000_000
NEEDS = "mitmproxy is not installed, expected the extra: pip install 'midstream[mitm]'"


def write_flows(exchanges: Iterable[Gathered], file: BinaryIO) -> None:
    """Write a flow for each exchange. Raises CaptureError where mitmproxy is not installed."""
    try:
        from mitmproxy.io import FlowWriter
    except ImportError:
        raise CaptureError(NEEDS) from None
    writer = FlowWriter(file)
    for exchange in exchanges:
        writer.add(_flow(exchange))


def read_flows(path: Path) -> Iterator[Scene]:
    """Return the HTTP flows of a file. Raises CaptureError for what mitmproxy cannot read."""
    try:
        from mitmproxy.exceptions import FlowReadException
        from mitmproxy.http import HTTPFlow
        from mitmproxy.io import FlowReader
    except ImportError:
        raise CaptureError(f"{path}: {NEEDS}") from None
    with path.open("rb") as file:
        try:
            for flow in FlowReader(file).stream():
                if isinstance(flow, HTTPFlow):
                    yield _scene(flow)
        except FlowReadException as error:
            raise CaptureError(f"{path}: mitmproxy cannot read it: {error}") from None


def _flow(exchange: Gathered) -> "HTTPFlow":
    from mitmproxy import connection, http
    from mitmproxy import flow as flows
    from mitmproxy.net.http.url import parse_authority

    url = urlsplit(url_of(exchange))
    is_secure = url.scheme in ("https", "wss")
    host, port = parse_authority(url.netloc, check=False)
    port = port or (443 if is_secure else 80)
    began, ended = exchange.began_ns / NS_PER_S, exchange.ended_ns / NS_PER_S
    client = connection.Client(
        peername=("127.0.0.1", 0), sockname=("127.0.0.1", port), timestamp_start=began
    )
    server = connection.Server(address=(host, port))
    found = http.HTTPFlow(client, server)
    head = exchange.head
    found.request = http.Request(
        host, port, head.method.encode(), b"https" if is_secure else b"http", b"",
        head.target.encode("utf-8", "surrogateescape"), b"HTTP/1.1", _fields(head.headers),
        b"" if head.is_websocket else exchange.body(Side.CLIENT), None, began, began,
    )  # fmt: skip
    response = exchange.response
    if response is not None:
        answered = exchange.answered_ns / NS_PER_S
        found.response = http.Response(
            b"HTTP/1.1", response.status, b"", _fields(response.headers),
            b"" if head.is_websocket else exchange.body(Side.SERVER), None, answered, ended,
        )  # fmt: skip
    if head.is_websocket:
        found.websocket = _websocket(exchange)
    if exchange.ending == "aborted":
        found.error = flows.Error("the exchange was broken off", ended)
    rules = [f"{addon} {rule} (seq {seq})" for seq, addon, rule in exchange.rules]
    found.comment = "; ".join(rules)
    found.metadata["midstream_exchange"] = exchange.number
    found.marked = ":wrench:" if rules else ""
    return found


def _websocket(exchange: Gathered) -> Any:
    from mitmproxy.websocket import WebSocketData, WebSocketMessage
    from wsproto.frame_protocol import Opcode

    data = WebSocketData()
    for moment in exchange.messages:
        frame = moment.frame
        opcode = Opcode.TEXT if frame.kind is Kind.WS_TEXT else Opcode.BINARY
        is_client = frame.sender is Side.CLIENT
        when = moment.wall_ns / NS_PER_S
        data.messages.append(WebSocketMessage(opcode, is_client, frame.wire, when))
    for side in Side:
        close = exchange.closes.get(side.value, {})
        if "code" in close and data.close_code is None:
            data.close_code = int(close["code"])
            data.close_reason = str(close.get("reason", ""))
            data.closed_by_client = side is Side.CLIENT
            data.timestamp_end = exchange.ended_ns / NS_PER_S
    return data


def _fields(headers: Headers) -> Any:
    from mitmproxy.http import Headers as Fields

    return Fields(
        [
            (name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
            for name, value in headers
        ]
    )


def _scene(flow: "HTTPFlow") -> Scene:
    request, response = flow.request, flow.response
    began_ns = int(request.timestamp_start * NS_PER_S)
    head = RequestHead(request.method, request.path, _pairs(request.headers.fields))
    scene = Scene(began_ns, head, origin=f"{request.scheme}://{request.pretty_host}:{request.port}")
    if flow.websocket is None and (body := _content(request)):
        scene.frames.append((began_ns, Frame(Side.CLIENT, Kind.BODY, body)))
    if response is not None:
        headers = _pairs(response.headers.fields)
        if flow.websocket is None:
            headers = tuple(p for p in headers if p[0].lower() != "content-encoding")
        scene.response = ResponseHead(response.status_code, headers)
        scene.answered_ns = int((response.timestamp_start or request.timestamp_start) * NS_PER_S)
        if flow.websocket is None and (body := _content(response)):
            end_ns = int((response.timestamp_end or response.timestamp_start) * NS_PER_S)
            scene.frames.append((end_ns, Frame(Side.SERVER, Kind.BODY, body)))
    if flow.websocket is not None:
        for message in flow.websocket.messages:
            kind = Kind.WS_TEXT if message.is_text else Kind.WS_BINARY
            side = Side.CLIENT if message.from_client else Side.SERVER
            frame = Frame(side, kind, message.content)
            scene.frames.append((int(message.timestamp * NS_PER_S), frame))
        if flow.websocket.close_code is not None:
            side = Side.CLIENT if flow.websocket.closed_by_client else Side.SERVER
            scene.close = (side, flow.websocket.close_code, flow.websocket.close_reason or "")
    scene.is_broken = flow.error is not None
    return scene


def _content(message: Any) -> bytes:
    """Return a body without its content coding; as it came where that cannot be undone."""
    content = message.get_content(strict=False)
    return content or b""


def _pairs(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    return tuple(
        (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
        for name, value in fields
    )
