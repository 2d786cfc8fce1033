"""Peers of the gateway on raw sockets, so that tests see and send exact bytes.

`Upstream` is a server whose behaviour is a coroutine over one `Conversation`; `Client` connects to
a port. Both speak HTTP by hand and WebSocket frames by hand.
"""

import asyncio
import base64
import hashlib
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self, cast

WS_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PATIENCE_S = 10.0


class Gone(Exception):
    """The peer ended the connection without a close frame."""


class Head:
    """A request or status line with its headers, as received."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        lines = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
        self.line = lines[0].decode("latin-1")
        self.headers = [
            (name.decode("latin-1"), value.strip().decode("latin-1"))
            for name, _, value in (line.partition(b":") for line in lines[1:])
        ]

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    @property
    def status(self) -> int:
        return int(self.line.split(" ")[1])

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)


class Wire:
    """One connection, read and written by hand."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, masks: bool = False
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._masks = masks

    # --- HTTP -------------------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> Head:
        async with asyncio.timeout(PATIENCE_S):
            return Head(await self.reader.readuntil(b"\r\n\r\n"))

    async def chunk(self) -> bytes:
        """Read one chunk of a chunked body; empty at its end. Raises IncompleteReadError."""
        async with asyncio.timeout(PATIENCE_S):
            size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def body(self, head: Head) -> bytes:
        """Read a body by its head: chunked, by length, or none."""
        if "chunked" in (head.get("transfer-encoding") or ""):
            body = b""
            while piece := await self.chunk():
                body += piece
            return body
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readexactly(int(head.get("content-length") or 0))

    async def rest(self) -> bytes:
        """Read until the connection ends, however it does."""
        data = b""
        async with asyncio.timeout(PATIENCE_S):
            try:
                while piece := await self.reader.read(1 << 16):
                    data += piece
            except ConnectionError:
                pass
        return data

    # --- WebSocket --------------------------------------------------------------------------------

    async def send_frame(
        self, opcode: int, payload: bytes = b"", *, fin: bool = True, rsv1: bool = False
    ) -> None:
        first = (0x80 if fin else 0) | (0x40 if rsv1 else 0) | opcode
        mask_bit = 0x80 if self._masks else 0
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", first, mask_bit | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", first, mask_bit | 126, size)
        else:
            head = struct.pack("!BBQ", first, mask_bit | 127, size)
        if self._masks:
            mask = os.urandom(4)
            repeated = mask * (size // 4 + 1)
            payload = mask + bytes(a ^ b for a, b in zip(payload, repeated, strict=False))
        await self.send(head + payload)

    async def send_text(self, text: str) -> None:
        await self.send_frame(TEXT, text.encode())

    async def send_close(self, code: int, reason: str = "") -> None:
        await self.send_frame(CLOSE, struct.pack("!H", code) + reason.encode())

    async def frame(self) -> tuple[int, bytes]:
        """Read one frame: opcode (with RSV1 as 0x40) and payload. Raises Gone."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                first, second = await self.reader.readexactly(2)
                size = second & 0x7F
                if size == 126:
                    (size,) = struct.unpack("!H", await self.reader.readexactly(2))
                elif size == 127:
                    (size,) = struct.unpack("!Q", await self.reader.readexactly(8))
                mask = await self.reader.readexactly(4) if second & 0x80 else b""
                payload = await self.reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                raise Gone from error
        if mask:
            repeated = mask * (size // 4 + 1)
            payload = bytes(a ^ b for a, b in zip(payload, repeated, strict=False))
        return first & 0x4F, payload

    async def text(self) -> str:
        opcode, payload = await self.frame()
        assert opcode == TEXT, (opcode, payload)
        return payload.decode()

    async def close_code(self) -> tuple[int, str]:
        """Read a close frame; code 0 is one without a code."""
        opcode, payload = await self.frame()
        assert opcode == CLOSE, (opcode, payload)
        if not payload:
            return 0, ""
        return struct.unpack("!H", payload[:2])[0], payload[2:].decode()

    async def is_gone(self) -> bool:
        """Tell whether the connection ends next, without a close frame."""
        try:
            await self.frame()
        except Gone:
            return True
        return False

    # --- reading ----------------------------------------------------------------------------------

    def stop_reading(self) -> None:
        """Leave what arrives in the system's buffers."""
        cast("asyncio.Transport", self.writer.transport).pause_reading()

    def go_on_reading(self) -> None:
        cast("asyncio.Transport", self.writer.transport).resume_reading()

    # --- the end ----------------------------------------------------------------------------------

    def abort(self) -> None:
        """End the connection with a reset."""
        self.writer.transport.abort()

    async def aclose(self) -> None:
        self.writer.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.writer.wait_closed()
        except (ConnectionError, TimeoutError):
            self.writer.transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


class Visit(Wire):
    """One request at an upstream."""

    request: Head
    payload: bytes

    async def respond(
        self,
        status: str = "200 OK",
        headers: list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> None:
        """Send a response with a Content-Length, unless the headers say otherwise."""
        pairs = list(headers or [])
        names = {name.lower() for name, _ in pairs}
        if not names & {"content-length", "transfer-encoding"}:
            pairs.append(("Content-Length", str(len(body))))
        await self.begin(status, pairs)
        await self.send(body)

    async def begin(self, status: str, headers: list[tuple[str, str]]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        await self.send(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1"))

    async def begin_chunks(self, content_type: str = "text/event-stream") -> None:
        await self.begin(
            "200 OK", [("Content-Type", content_type), ("Transfer-Encoding", "chunked")]
        )

    async def send_chunk(self, data: bytes) -> None:
        """Send one chunk; an empty one ends the body."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def accept(self, *headers: tuple[str, str]) -> None:
        """Answer a WebSocket handshake."""
        key = (self.request.get("sec-websocket-key") or "").encode()
        accept = base64.b64encode(hashlib.sha1(key + WS_MAGIC).digest()).decode()
        await self.begin(
            "101 Switching Protocols",
            [
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                ("Sec-WebSocket-Accept", accept),
                *headers,
            ],
        )


type Behaviour = Callable[[Visit], Awaitable[None]]


class Upstream:
    """A server that does what its behaviour says for each request it gets."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()
        self.requests: list[Head] = []
        self.connections = 0
        self.errors: list[Exception] = []

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._visits:
            task.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        task.add_done_callback(self._visits.discard)
        self.connections += 1
        visit = Visit(reader, writer)
        try:
            while True:
                visit.request = Head(await reader.readuntil(b"\r\n\r\n"))
                self.requests.append(visit.request)
                await self._behaviour(visit)
        except (asyncio.IncompleteReadError, ConnectionError, Gone):
            pass
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - a test looks at it
            self.errors.append(error)
        finally:
            writer.close()


@asynccontextmanager
async def upstream(behaviour: Behaviour) -> AsyncIterator[Upstream]:
    """Run an upstream; what went wrong in it fails the test."""
    server = Upstream(behaviour)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
    if server.errors:
        raise server.errors[0]


async def connect(port: int) -> Wire:
    """Connect a client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    return Wire(reader, writer, masks=True)


async def open_socket(
    port: int, target: str = "/ws", *headers: tuple[str, str]
) -> tuple[Wire, Head]:
    """Send a WebSocket handshake and return the connection with the head of the answer."""
    client = await connect(port)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    await client.send(
        f"GET {target} HTTP/1.1\r\nHost: chat.test\r\nUpgrade: websocket\r\n"
        "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{lines}\r\n".encode("latin-1")
    )
    return client, await client.head()
