"""Serves the server's side of a capture, so that a client can be debugged against old traffic.

- A request is answered by the recorded exchange with its method and target, else with its method
  and path. The same request gets them in their order, and the last one again and again.
- On a WebSocket causality is kept: a frame that the server sent after it had heard from the client
  waits until this client has said as much. Ids in frames are sent as they were recorded.
- Times are those of the capture, divided by `speed`; 0 leaves them out.
"""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from midstream.adapters.capture_exchanges import Gathered, Moment
from midstream.config.values import Address
from midstream.core.errors import ConfigError
from midstream.core.frames import Kind, Side
from midstream.hosts.admin import reason

MAX_WAIT_SECONDS = 3600.0
MAX_LISTED = 50
NS_PER_S = 1_000_000_000
NOT_SENT = frozenset({
    "connection", "content-encoding", "content-length", "date", "keep-alive",
    "sec-websocket-accept", "sec-websocket-extensions", "transfer-encoding", "upgrade",
})  # fmt: skip
"""What belongs to the connection at hand, not to the one that was recorded."""


class Step(msgspec.Struct, frozen=True):
    """A frame of the server: when it is due, and how much the client must have said before."""

    after_s: float
    heard: int
    moment: Moment


class Stage:
    """The recorded exchanges, by what asks for them."""

    def __init__(self, exchanges: Iterable[Gathered]) -> None:
        self.exchanges = sorted(exchanges, key=lambda exchange: exchange.number)
        self._played: dict[tuple[str, str], int] = {}

    def find(self, method: str, target: str, *, is_websocket: bool) -> Gathered | None:
        """Return the exchange that answers a request, the next of its kind each time."""
        fitting = [
            exchange
            for exchange in self.exchanges
            if exchange.head.method == method and exchange.head.is_websocket is is_websocket
        ]
        exact = [exchange for exchange in fitting if exchange.head.target == target]
        path = target.partition("?")[0]
        found = exact or [exchange for exchange in fitting if exchange.head.path == path]
        if not found:
            return None
        place = (method, target if exact else path)
        number = self._played.get(place, 0)
        self._played[place] = number + 1
        return found[min(number, len(found) - 1)]


def steps(exchange: Gathered) -> list[Step]:
    """Return what the server sent, each with its place in time and behind the client's frames."""
    heard, began_ns, found = 0, exchange.began_ns, []
    for moment in exchange.frames:
        if moment.frame.sender is Side.CLIENT:
            heard += 1
            began_ns = moment.wall_ns
        else:
            after_s = min(max(moment.wall_ns - began_ns, 0) / NS_PER_S, MAX_WAIT_SECONDS)
            found.append(Step(after_s, heard, moment))
    return found


class ReplayServer:
    """Serves a stage. `speed` 1 is the original timing, 10 is ten times as fast, 0 is at once."""

    def __init__(self, exchanges: Sequence[Gathered], speed: float = 1.0) -> None:
        self.stage = Stage(exchanges)
        self._speed = speed
        self._runner: web.AppRunner | None = None

    async def listen(self, address: Address) -> int:
        """Open the port and return its number. Raises ConfigError."""
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, address.host, address.port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError(f"--serve: cannot listen on {address}: {reason(error)}") from error
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        is_websocket = request.headers.get("upgrade", "").lower() == "websocket"
        target = request.raw_path
        exchange = self.stage.find(request.method, target, is_websocket=is_websocket)
        if exchange is None:
            return web.Response(status=404, text=self._missing(request.method, target))
        await request.read()
        if is_websocket:
            return await self._socket(request, exchange)
        if exchange.response is None:
            return web.Response(status=502, text="the recorded exchange was never answered\n")
        if exchange.response.is_event_stream:
            return await self._stream(request, exchange)
        await self._until_answered(exchange)
        return web.Response(
            status=exchange.response.status,
            headers=_headers(exchange),
            body=exchange.body(Side.SERVER),
        )

    async def _stream(self, request: web.Request, exchange: Gathered) -> web.StreamResponse:
        response = web.StreamResponse(
            status=exchange.response.status if exchange.response else 200,
            headers=_headers(exchange),
        )
        await self._until_answered(exchange)
        await response.prepare(request)
        async for moment in self._paced(steps(exchange)):
            await response.write(moment.frame.wire)
        if exchange.ending == "aborted" and request.transport is not None:
            request.transport.abort()
            return response
        await response.write_eof()
        return response

    async def _socket(self, request: web.Request, exchange: Gathered) -> web.StreamResponse:
        wanted = [
            part.strip()
            for value in request.headers.getall("sec-websocket-protocol", [])
            for part in value.split(",")
        ]
        socket = web.WebSocketResponse(protocols=wanted, max_msg_size=0, compress=False)
        await socket.prepare(request)
        said = _Said()
        loop = asyncio.get_running_loop()
        listening = loop.create_task(_listen(socket, said))
        try:
            due_s, since = 0.0, loop.time()
            for step in steps(exchange):
                if not await said.has(step.heard):
                    return socket
                if step.heard and said.at > since:
                    since, due_s = said.at, 0.0
                due_s = max(due_s, step.after_s)
                await self._wait(since + self._scaled(due_s) - loop.time())
                frame = step.moment.frame
                send = socket.send_str if frame.kind is Kind.WS_TEXT else socket.send_bytes
                await send(frame.wire.decode() if frame.kind is Kind.WS_TEXT else frame.wire)  # type: ignore[arg-type]
            code = exchange.closes.get(Side.SERVER.value, {}).get("code")
            if isinstance(code, int) and code not in (1005, 1006):
                await socket.close(code=code)
            else:  # the client was the one that ended it
                await listening
        except ConnectionError:
            pass
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            if not socket.closed:
                await socket.close(code=WSCloseCode.GOING_AWAY)
        return socket

    async def _paced(self, due: list[Step]) -> AsyncIterator[Moment]:
        first = due[0].after_s if due else 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        for step in due:
            await self._wait(began + self._scaled(step.after_s - first) - loop.time())
            yield step.moment

    async def _until_answered(self, exchange: Gathered) -> None:
        waited_s = max(exchange.answered_ns - exchange.began_ns, 0) / NS_PER_S
        await self._wait(self._scaled(min(waited_s, MAX_WAIT_SECONDS)))

    async def _wait(self, seconds: float) -> None:
        if self._speed and seconds > 0:
            await asyncio.sleep(seconds)

    def _scaled(self, seconds: float) -> float:
        return seconds / self._speed if self._speed else 0.0

    def _missing(self, method: str, target: str) -> str:
        kinds = {
            f"{'WebSocket' if e.head.is_websocket else e.head.method} {e.head.path}"
            for e in self.stage.exchanges
        }
        listed = "\n".join(f"  {kind}" for kind in sorted(kinds)[:MAX_LISTED])
        return f"the capture has no {method} {target}; it has\n{listed}\n"


class _Said:
    """How much a client has said so far, and when it said the last."""

    def __init__(self) -> None:
        self.count = 0
        self.at = 0.0
        self.is_over = False
        self._changed = asyncio.Event()

    def note(self, *, is_over: bool = False) -> None:
        self.count += not is_over
        self.at = asyncio.get_running_loop().time()
        self.is_over = self.is_over or is_over
        self._changed.set()

    async def has(self, count: int) -> bool:
        """Wait until so much was said; False where the client left before."""
        while self.count < count and not self.is_over:
            self._changed.clear()
            await self._changed.wait()
        return self.count >= count


async def _listen(socket: web.WebSocketResponse, said: _Said) -> None:
    async for message in socket:
        if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            said.note()
    said.note(is_over=True)


def _headers(exchange: Gathered) -> list[tuple[str, str]]:
    headers = exchange.response.headers if exchange.response is not None else ()
    return [(name, value) for name, value in headers if name.lower() not in NOT_SENT]


async def serve(exchanges: Sequence[Gathered], address: Address, speed: float) -> int:
    """Serve until a signal comes, and return the exit code. Raises ConfigError."""
    server = ReplayServer(exchanges, speed)
    port = await server.listen(address)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    sys.stderr.write(
        f"midstream serves {len(exchanges)} recorded exchanges on "
        f"http://{Address(address.host, port)}\n"
    )
    sys.stderr.flush()
    try:
        await stop.wait()
    finally:
        await server.close()
    return 0
