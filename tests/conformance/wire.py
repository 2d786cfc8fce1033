"""One end of a connection, played by hand: HTTP with h11, WebSocket messages with wsproto.

Everything sent is cut at random places: bodies into TCP chunks, messages into fragments.
"""

import asyncio
import base64
import contextlib
import random
from collections.abc import Callable
from itertools import pairwise

import h11
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import generate_accept_token

from midstream.core.exchange import Headers
from midstream.core.frames import Kind

EXCHANGE_HEADER = "x-exchange"
MAX_PIECES = 4
READ_BYTES = 65536

type Received = tuple[Kind, bytes]


class Wire:
    """A client's or an upstream's end of one connection, which carries one exchange.

    `frames` are the messages received, `body` the bytes of the body received.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_client: bool,
        rng: random.Random,
    ) -> None:
        self.on_request: Callable[[Wire], None] = lambda _wire: None
        self.request: h11.Request | None = None
        self.response: h11.Response | h11.InformationalResponse | None = None
        self.frames: list[Received] = []
        self.body = bytearray()
        self.is_complete = False
        self.is_gone = False
        self.close_code: int | None = None
        self.is_websocket = False
        self._reader = reader
        self._writer = writer
        self._rng = rng
        self._type = ConnectionType.CLIENT if is_client else ConnectionType.SERVER
        self._http = h11.Connection(h11.CLIENT if is_client else h11.SERVER)
        self._ws = Connection(self._type)
        self._partial: list[str | bytes] = []

    async def pump(self) -> None:
        """Take what arrives until the other end is gone."""
        with contextlib.suppress(ConnectionError):
            while data := await self._reader.read(READ_BYTES):
                if self.is_websocket:
                    self._take_messages(data)
                else:
                    self._take_http(data)
        self.is_gone = True

    # --- sending --------------------------------------------------------------------------------

    def send_request(self, method: str, target: str, headers: Headers) -> None:
        self._write(h11.Request(method=method, target=target.encode(), headers=_encoded(headers)))

    def send_response(self, status: int, headers: Headers) -> None:
        framing = (("Transfer-Encoding", "chunked"), ("Connection", "close"))
        self._write(h11.Response(status_code=status, headers=_encoded((*headers, *framing))))

    def accept(self) -> None:
        """Answer the request with an upgrade to a WebSocket."""
        assert self.request is not None
        key = dict(self.request.headers)[b"sec-websocket-key"]
        headers = (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", generate_accept_token(key).decode()),
        )
        self._write(h11.InformationalResponse(status_code=101, headers=_encoded(headers)))
        self._switch()

    def respond_at_once(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole response."""
        self.send_response(status, headers)
        self._write(h11.Data(data=body))
        self.complete()

    async def send_body(self, data: bytes) -> None:
        for start, end in pairwise(self._edges(len(data))):
            self._write(h11.Data(data=data[start:end]))
            await _pause()

    def complete(self) -> None:
        self._write(h11.EndOfMessage())

    async def send_message(self, kind: Kind, data: bytes) -> None:
        """Send a message in fragments; a text is cut between characters."""
        edges = self._edges(len(data.decode() if kind is Kind.WS_TEXT else data))
        for start, end in pairwise(edges):
            part: TextMessage | BytesMessage
            if kind is Kind.WS_TEXT:
                part = TextMessage(data.decode()[start:end], message_finished=end == edges[-1])
            else:
                part = BytesMessage(data[start:end], message_finished=end == edges[-1])
            self._writer.write(self._ws.send(part))
            await _pause()

    def send_close(self, code: int, reason: str) -> None:
        if self._ws.state is ConnectionState.OPEN:
            self._writer.write(self._ws.send(CloseConnection(code, reason)))

    def abort(self) -> None:
        self._writer.transport.abort()

    async def shut(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    # --- receiving ------------------------------------------------------------------------------

    def _take_http(self, data: bytes) -> None:
        self._http.receive_data(data)
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                self.request = event
                self.on_request(self)
            elif isinstance(event, h11.Response | h11.InformationalResponse):
                self.response = event
                if event.status_code == 101:
                    self._switch()
                    return
            elif isinstance(event, h11.Data):
                self.body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self.is_complete = True
            else:
                return

    def _switch(self) -> None:
        self.is_websocket = True
        early, _ = self._http.trailing_data
        if early:
            self._take_messages(early)

    def _take_messages(self, data: bytes) -> None:
        self._ws.receive_data(data)
        for event in self._ws.events():
            if isinstance(event, TextMessage | BytesMessage):
                self._take_part(event)
            elif isinstance(event, CloseConnection):
                self.close_code = int(event.code)
                if self._ws.state is ConnectionState.REMOTE_CLOSING:
                    self._writer.write(self._ws.send(event.response()))
            elif isinstance(event, Ping):
                self._writer.write(self._ws.send(event.response()))

    def _take_part(self, part: TextMessage | BytesMessage) -> None:
        self._partial.append(part.data if isinstance(part.data, str) else bytes(part.data))
        if not part.message_finished:
            return
        kind = Kind.WS_TEXT if isinstance(part, TextMessage) else Kind.WS_BINARY
        octets = (p.encode() if isinstance(p, str) else p for p in self._partial)
        self.frames.append((kind, b"".join(octets)))
        self._partial = []

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)

    def _edges(self, size: int) -> list[int]:
        """Return where to cut; no piece is empty, unless all is."""
        cuts = {
            self._rng.randrange(1, size) for _ in range(self._rng.randrange(MAX_PIECES)) if size > 1
        }
        return [0, *sorted(cuts), size]


async def connect(port: int, rng: random.Random) -> Wire:
    """Return the client's end of a new connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    return Wire(reader, writer, is_client=True, rng=rng)


def websocket_key(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(16)).decode()


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
        for name, value in headers
    ]


async def _pause() -> None:
    """Give the pieces a chance to travel alone."""
    for _ in range(2):
        await asyncio.sleep(0)
