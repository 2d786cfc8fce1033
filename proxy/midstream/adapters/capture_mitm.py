"""A capture as mitmproxy flows, and mitmproxy flows as a capture.

mitmproxy's own reader and writer do the work, so that its files stay readable whatever version
wrote them. Imported lazily: mitmproxy is an extra.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from midstream.adapters.capture_exchanges import Gathered
from midstream.adapters.capture_format import Damage
from midstream.adapters.capture_har import url_of
from midstream.adapters.capture_script import Scene, ns_of
from midstream.core.errors import CaptureError
from midstream.core.exchange import Headers, RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

NS_PER_S: Final = 1_000_000_000
UNREADABLE: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""What mitmproxy raises for states that are not of its making."""
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


def read_flows(path: Path) -> tuple[list[Scene], Damage | None]:
    """Return the HTTP flows of a file, and where it is damaged.

    mitmproxy writes a flow when it ends, so a file that was cut short has every flow before the
    cut. Raises CaptureError for a file of which mitmproxy can read nothing.
    """
    try:
        from mitmproxy.exceptions import FlowReadException
        from mitmproxy.http import HTTPFlow
        from mitmproxy.io import FlowReader
    except ImportError:
        raise CaptureError(f"{path}: {NEEDS}") from None
    scenes: list[Scene] = []
    with path.open("rb") as file:
        flows = iter(FlowReader(cast("BinaryIO", _Bounded(file, path.stat().st_size))).stream())
        while True:
            start = file.tell()
            try:
                flow = next(flows, None)
                if flow is None:
                    return scenes, None
                if isinstance(flow, HTTPFlow):
                    scenes.append(_scene(flow))
            except (FlowReadException, *UNREADABLE) as error:
                if start == 0:
                    raise CaptureError(f"{path}: mitmproxy cannot read it: {error}") from None
                return scenes, Damage(
                    start, f"mitmproxy cannot read it: {error}", path, len(scenes)
                )


class _Bounded:
    """A file that is never asked for more than it holds: a broken length costs no memory."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self.seek, self.tell = file.seek, file.tell

    def read(self, count: int = -1) -> bytes:
        rest = self._size - self._file.tell()
        return self._file.read(rest if count < 0 else min(count, rest))


def _flow(exchange: Gathered) -> "HTTPFlow":
    from mitmproxy import connection, http
    from mitmproxy import flow as flows
    from mitmproxy.net.http.url import parse_authority

    scheme, _, rest = url_of(exchange).partition("://")
    is_secure = scheme in ("https", "wss")
    try:
        host, port = parse_authority(rest.partition("/")[0], check=False)
    except ValueError:
        host, port = "unknown", None
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
        head.target.encode("utf-8", "surrogateescape"), b"HTTP/1.1",
        _fields(_told(exchange, Side.CLIENT, head.headers)),
        b"" if head.is_websocket else exchange.body(Side.CLIENT), None, began, began,
    )  # fmt: skip
    response = exchange.response
    if response is not None:
        answered = exchange.answered_ns / NS_PER_S
        found.response = http.Response(
            b"HTTP/1.1", response.status, b"",
            _fields(_told(exchange, Side.SERVER, response.headers)),
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


def _told(exchange: Gathered, side: Side, headers: Headers) -> Headers:
    """Return the headers that fit the body at hand: without a coding that it has no longer."""
    if exchange.coding(side) or exchange.head.is_websocket or not exchange.body(side):
        return headers
    return _uncoded(headers)


def _uncoded(headers: Headers) -> Headers:
    return tuple(pair for pair in headers if pair[0].lower() != "content-encoding")


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
    request, response, websocket = flow.request, flow.response, flow.websocket
    began_ns = ns_of(request.timestamp_start)
    origin = f"{request.scheme}://{request.pretty_host}:{request.port}"
    scene = Scene(began_ns, RequestHead(request.method, request.path, ()), origin=origin)
    body, headers = _content(request)
    scene.head = RequestHead(request.method, request.path, headers)
    if websocket is None and body:
        scene.frames.append((began_ns, Frame(Side.CLIENT, Kind.BODY, body)))
    if response is not None:
        body, headers = _content(response)
        scene.response = ResponseHead(response.status_code, headers)
        answered = response.timestamp_start or request.timestamp_start
        scene.answered_ns = ns_of(answered)
        if websocket is None and body:
            ended_ns = ns_of(response.timestamp_end or answered)
            scene.frames.append((ended_ns, Frame(Side.SERVER, Kind.BODY, body)))
    if websocket is not None:
        for message in websocket.messages:
            kind = Kind.WS_TEXT if message.is_text else Kind.WS_BINARY
            side = Side.CLIENT if message.from_client else Side.SERVER
            scene.frames.append((ns_of(message.timestamp), Frame(side, kind, message.content)))
        if websocket.close_code is not None:
            side = Side.CLIENT if websocket.closed_by_client else Side.SERVER
            scene.close = (side, websocket.close_code, websocket.close_reason or "")
    scene.is_broken = flow.error is not None
    return scene


def _content(message: Any) -> tuple[bytes, Headers]:
    """Return a body without its content coding, and the headers that fit it.

    A body whose coding mitmproxy cannot undo stays as it came.
    """
    headers = _pairs(message.headers.fields)
    raw = message.raw_content or b""
    try:
        body = message.get_content(strict=True) or b""
    except ValueError:
        return raw, headers
    return body, headers if body == raw else _uncoded(headers)


def _pairs(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    return tuple(
        (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
        for name, value in fields
    )
