"""mitmproxy inside the test process, with real sockets on both of its sides."""

import asyncio
import atexit
import base64
import contextlib
import functools
import hashlib
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from mitmproxy import options
from mitmproxy.tools.dump import DumpMaster
from tests.support import FakeAddon, FakeDialect

from midstream.core.addon import Mode
from midstream.core.engine import Engine, Limits, Route
from midstream.core.frames import Frame
from midstream.core.ports import Sink
from midstream.hosts.mitm import Midstream
from midstream.hosts.mitm_notes import Notes

SECONDS = 10
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

type Handler = Callable[["Peer"], Awaitable[None]]


def engine(
    *addons: FakeAddon,
    mode: Mode = Mode.REPAIR,
    max_frame_bytes: int = 1 << 20,
    sink: Sink | None = None,
) -> Engine:
    """Return an engine whose one route leads wherever mitmproxy sends a flow."""
    route = Route("chat", "/*", "", tuple((addon, mode) for addon in addons))
    limits = Limits(max_frame_bytes=max_frame_bytes)
    return Engine([route], [FakeDialect()], secret=b"s" * 32, limits=limits, sink=sink)


@functools.cache
def confdir() -> str:
    """Return a folder of mitmproxy's own files: making its CA takes a second."""
    folder = tempfile.TemporaryDirectory(prefix="mitmproxy-")
    atexit.register(folder.cleanup)
    return folder.name


class Proxy(msgspec.Struct):
    """A running mitmproxy."""

    port: int
    addon: Midstream
    engine: Engine


@contextlib.asynccontextmanager
async def mitmproxy(
    upstream_port: int,
    served: Engine,
    *others: object,
    before: object = None,
    notes: Notes | None = None,
    mode: str = "",
    **opts: object,
) -> AsyncIterator[Proxy]:
    """Run mitmproxy in front of an upstream; `others` run behind midstream, `before` in front."""
    mode = mode or f"reverse:http://127.0.0.1:{upstream_port}"
    given = options.Options(mode=[mode], listen_host="127.0.0.1", listen_port=0, confdir=confdir())
    master = DumpMaster(given, with_termlog=False, with_dumper=False)
    addon = Midstream(served, notes)
    master.addons.add(*(() if before is None else (before,)), addon, *others)
    given.update(**opts)
    running = asyncio.get_running_loop().create_task(master.run())
    servers = master.addons.get("proxyserver")
    try:
        assert await comes_true(lambda: servers.is_running and servers.listen_addrs())
        yield Proxy(servers.listen_addrs()[0][1], addon, served)
    finally:
        master.shutdown()
        await running
        await servers.servers.update([])  # the listener outlives run()
        await asyncio.sleep(0)


class Peer:
    """One end of a connection, byte by byte: an upstream's, or a client's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read_head(self) -> bytes:
        async with asyncio.timeout(SECONDS):
            self.head = await self.reader.readuntil(b"\r\n\r\n")
        return self.head

    async def read(self, count: int) -> bytes:
        async with asyncio.timeout(SECONDS):
            return await self.reader.readexactly(count)

    async def until(self, end: bytes) -> bytes:
        async with asyncio.timeout(SECONDS):
            return await self.reader.readuntil(end)

    async def rest(self) -> bytes:
        """Read to the end of the connection."""
        async with asyncio.timeout(SECONDS):
            return await self.reader.read()

    async def chunk(self) -> bytes:
        """Read one chunk of a chunked body; empty at its end."""
        size = int(await self.until(b"\r\n"), 16)
        return (await self.read(size + 2))[:-2]

    async def chunks(self) -> bytes:
        """Read a chunked body to its end."""
        body = b""
        while piece := await self.chunk():
            body += piece
        return body

    async def send_chunks(self, *pieces: bytes, end: bool = True) -> None:
        for piece in pieces:
            await self.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            await asyncio.sleep(0.01)  # one read each, as far as that can be
        if end:
            await self.send(b"0\r\n\r\n")

    async def respond(self, body: bytes = b"", *headers: str, status: int = 200) -> None:
        """Answer with a head and a body; without a length header the body is chunked later."""
        lines = [f"HTTP/1.1 {status} OK", *headers]
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)

    # --- WebSocket ------------------------------------------------------------------------------

    async def upgrade(self) -> None:
        """Take a WebSocket handshake, and answer it."""
        await self.accept(await self.read_head())

    async def accept(self, head: bytes) -> None:
        """Answer a WebSocket handshake."""
        lines = (line.partition(": ") for line in head.decode().split("\r\n"))
        key = next(value for name, _, value in lines if name.lower() == "sec-websocket-key")
        digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
        accept = base64.b64encode(digest).decode()
        await self.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )

    async def frame(self) -> tuple[int, bool, bytes]:
        """Read one WebSocket frame: opcode, whether it is the last of its message, payload."""
        first, second = await self.read(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", await self.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", await self.read(8))
        mask = await self.read(4) if second & 0x80 else bytes(4)
        payload = await self.read(size)
        return (
            first & 0x0F,
            bool(first & 0x80),
            bytes(b ^ mask[i % 4] for i, b in enumerate(payload)),
        )

    async def texts(self, count: int) -> list[str]:
        """Read as many unfragmented text messages."""
        frames = [await self.frame() for _ in range(count)]
        assert all(opcode == TEXT and last for opcode, last, _ in frames), frames
        return [payload.decode() for _, _, payload in frames]

    async def closed(self) -> int | None:
        """Read up to the end: the close code, or None where no close frame came."""
        try:
            opcode, _, payload = await self.frame()
        except asyncio.IncompleteReadError:
            return None
        assert opcode == CLOSE, (opcode, payload)
        return int(struct.unpack(">H", payload[:2])[0]) if payload else 1005


def frame(
    payload: str | bytes, opcode: int = TEXT, *, last: bool = True, masked: bool = False
) -> bytes:
    """Return one WebSocket frame; a client's are masked."""
    data = payload.encode() if isinstance(payload, str) else payload
    bit = 0x80 if masked else 0
    head = bytes([(0x80 if last else 0) | opcode])
    if len(data) < 126:
        head += bytes([bit | len(data)])
    elif len(data) < 65_536:
        head += bytes([bit | 126]) + struct.pack(">H", len(data))
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", len(data))
    return head + (bytes(4) if masked else b"") + data  # a mask of zeros changes nothing


def close_frame(code: int, reason: str = "", *, masked: bool = False) -> bytes:
    return frame(struct.pack(">H", code) + reason.encode(), CLOSE, masked=masked)


@contextlib.asynccontextmanager
async def upstream(handler: Handler) -> AsyncIterator[int]:
    """Serve connections with a handler; what it raises, the test raises at the end."""
    handlers: list[asyncio.Task[None]] = []

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.append(task)
        try:
            await handler(Peer(reader, writer))
        finally:
            writer.close()

    server = await asyncio.start_server(run, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in handlers:
            if not task.done():
                task.cancel()
        done = await asyncio.gather(*handlers, return_exceptions=True)
        for error in done:
            if isinstance(error, AssertionError):
                raise error


@contextlib.asynccontextmanager
async def client(port: int) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def socket_to(port: int, target: str = "/chat", *headers: str) -> AsyncIterator[Peer]:
    """Open a WebSocket as a client."""
    async with client(port) as peer:
        lines = [
            f"GET {target} HTTP/1.1",
            "Host: proxy",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            *headers,
        ]
        await peer.send("\r\n".join([*lines, "", ""]).encode())
        assert (await peer.read_head()).startswith(b"HTTP/1.1 101")
        yield peer


async def comes_true(condition: Callable[[], object]) -> bool:
    """Wait until a condition holds, and tell whether it does."""
    for _ in range(SECONDS * 200):
        if condition():
            return True
        await asyncio.sleep(0.005)
    return False


async def settled(proxy: Proxy) -> bool:
    """Wait until no flow is under way; tell whether that came to pass."""
    return await comes_true(lambda: not proxy.addon.underway)


def frames(addon: FakeAddon) -> list[Frame]:
    """Return the frames an addon was shown."""
    return [frame for frame in addon.called("frame") if isinstance(frame, Frame)]
