"""Serves the server's side of a capture, so that a client can be debugged against old traffic.

- A request is answered by the recorded exchange with its method and target, else with its method
  and path. The same request gets them in their order, and the last one again and again; `is_once`
  serves each one time, and is over when all were served.
- On a WebSocket causality is kept: a frame that the server sent after it had heard from the client
  waits until this client has said as much. What the client says is counted, not read.
- Nothing is substituted: ids, dates and cookies are those of the capture, so a client that insists
  on ids of its own making in the answers will not know them.
- Times are those of the capture, divided by `speed`; 0 leaves them out.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence

from aiohttp import WSCloseCode, WSMsgType, web

from midstream.adapters.capture_exchanges import Gathered, Moment
from midstream.config.values import Address
from midstream.core.errors import ConfigError
from midstream.core.exchange import header
from midstream.core.frames import Kind, Side
from midstream.hosts.admin import reason
from midstream.hosts.replay_stage import Stage, Step, answer_s, is_broken, steps

MAX_LISTED = 50
MAX_REQUEST_BYTES = 1 << 30
SHUTDOWN_SECONDS = 1.0
SWITCHING = 101
NOT_SENT = frozenset({
    "connection", "content-length", "date", "keep-alive", "sec-websocket-accept",
    "sec-websocket-extensions", "sec-websocket-protocol", "transfer-encoding", "upgrade",
})  # fmt: skip
"""What belongs to the connection at hand, not to the one that was recorded."""
SENDABLE = range(1000, 5000)
NEVER_SENT = (1005, 1006, 1015)
"""Codes for what happened without a close frame (RFC 6455, section 7.4.1)."""


class ReplayServer:
    """Serves a stage. `speed` 1 is the original timing, 10 is ten times as fast, 0 is at once.

    `tell` gets a line for each request; `is_over` is set when, with `is_once`, all were served.
    """

    def __init__(
        self,
        exchanges: Sequence[Gathered],
        speed: float = 1.0,
        *,
        is_once: bool = False,
        tell: Callable[[str], object] = lambda _line: None,
    ) -> None:
        self.stage = Stage(exchanges, is_once=is_once)
        self.is_over = asyncio.Event()
        self._left = len(self.stage.exchanges) if is_once else -1
        self._speed = speed
        self._tell = tell
        self._runner: web.AppRunner | None = None

    async def listen(self, address: Address) -> int:
        """Open the port and return its number. Raises ConfigError."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
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
        what = f"{'WebSocket' if is_websocket else request.method} {target.partition('?')[0]}"
        exchange = self.stage.find(request.method, target, is_websocket=is_websocket)
        if exchange is None:
            self._tell(f"{what}: not in the capture")
            return web.Response(status=404, text=self._missing(what))
        self._tell(f"{what}: exchange {exchange.number}")
        try:
            return await self._answer(request, exchange)
        finally:
            self._left -= 1
            if not self._left:
                self.is_over.set()

    async def _answer(self, request: web.Request, exchange: Gathered) -> web.StreamResponse:
        await request.read()
        response = exchange.response
        if exchange.head.is_websocket and (response is None or response.status == SWITCHING):
            return await self._socket(request, exchange)
        if response is None:
            return web.Response(status=502, text="the recorded exchange was never answered\n")
        await self._wait_until(self._now() + self._scaled(answer_s(exchange)))
        pieces = [moment for moment in exchange.frames if moment.frame.sender is Side.SERVER]
        if response.is_event_stream or len(pieces) > 1 or is_broken(exchange):
            return await self._stream(request, exchange)
        body = exchange.body(Side.SERVER)
        return web.Response(status=response.status, headers=_headers(exchange), body=body)

    async def _stream(self, request: web.Request, exchange: Gathered) -> web.StreamResponse:
        status = exchange.response.status if exchange.response else 200
        response = web.StreamResponse(status=status, headers=_headers(exchange))
        await response.prepare(request)
        async for moment in self._paced(steps(exchange)):
            await response.write(moment.frame.wire)
        if is_broken(exchange) and request.transport is not None:
            request.transport.close()  # what was written goes out before, the end of the body not
            return response
        await response.write_eof()
        return response

    async def _paced(self, due: list[Step]) -> AsyncIterator[Moment]:
        first, began = (due[0].after_s if due else 0.0), self._now()
        for step in due:
            await self._wait_until(began + self._scaled(step.after_s - first))
            if step.moment is not None:
                yield step.moment

    async def _socket(self, request: web.Request, exchange: Gathered) -> web.StreamResponse:
        chosen = exchange.response and header(exchange.response.headers, "sec-websocket-protocol")
        socket = web.WebSocketResponse(
            protocols=[chosen] if chosen else [], max_msg_size=0, compress=False
        )
        socket.headers.extend(_headers(exchange))
        await socket.prepare(request)
        said = _Said()
        listening = asyncio.get_running_loop().create_task(_listen(socket, said))
        try:
            await self._play(socket, exchange, said)
            if is_broken(exchange):
                if request.transport is not None:
                    request.transport.close()
            else:  # it is over when the client says so, or has answered the close
                await listening
        except ConnectionError:
            pass
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            if not socket.closed:
                await socket.close(code=WSCloseCode.GOING_AWAY)
        return socket

    async def _play(self, socket: web.WebSocketResponse, exchange: Gathered, said: "_Said") -> None:
        """Send what the server sent, until it closed or this client has left."""
        due_s, since = 0.0, self._now()
        for step in steps(exchange):
            if not await said.has(step.heard):
                return
            if step.heard and said.at > since:
                since, due_s = said.at, 0.0
            due_s = max(due_s, step.after_s)
            await self._wait_until(since + self._scaled(due_s))
            if step.moment is None:
                await _close(socket, exchange.closes[Side.SERVER.value])
            elif step.moment.frame.kind is Kind.WS_TEXT:
                await socket.send_str(step.moment.frame.wire.decode("utf-8", "replace"))
            else:
                await socket.send_bytes(step.moment.frame.wire)

    async def _wait_until(self, when: float) -> None:
        """Wait until a time of the event loop's clock; not at all at speed 0."""
        seconds = when - self._now()
        if self._speed and seconds > 0:
            await asyncio.sleep(seconds)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _scaled(self, seconds: float) -> float:
        return seconds / self._speed if self._speed else 0.0

    def _missing(self, what: str) -> str:
        kinds = {
            f"{'WebSocket' if e.head.is_websocket else e.head.method} {e.head.path}"
            for e in self.stage.exchanges
        }
        again = " once more" if what in kinds else ""
        listed = "\n".join(f"  {kind}" for kind in sorted(kinds)[:MAX_LISTED])
        return f"the capture has no {what}{again}; it has\n{listed}\n"


async def _close(socket: web.WebSocketResponse, told: dict[str, object]) -> None:
    """Close as the server did; a close without a code, which cannot be sent, becomes 1000."""
    code = told.get("code")
    if not isinstance(code, int) or code not in SENDABLE or code in NEVER_SENT:
        code = WSCloseCode.OK
    message = str(told.get("reason") or "").encode()
    await socket.close(code=code, message=message, drain=True)


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
    """Return the recorded headers that hold for this answer: without a coding it has no longer."""
    headers = exchange.response.headers if exchange.response is not None else ()
    gone = NOT_SENT if exchange.coding(Side.SERVER) else NOT_SENT | {"content-encoding"}
    return [(name, value) for name, value in headers if name.lower() not in gone]


async def serve(
    exchanges: Sequence[Gathered], address: Address, speed: float, *, is_once: bool = False
) -> int:
    """Serve until a signal comes, or all were served, and return the exit code.

    Raises ConfigError.
    """
    server = ReplayServer(exchanges, speed, is_once=is_once, tell=_tell)
    port = await server.listen(address)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, server.is_over.set)
    _tell(
        f"midstream serves {len(exchanges)} recorded exchanges on "
        f"http://{Address(address.host, port)}"
    )
    try:
        await server.is_over.wait()
    finally:
        await server.close()
    return 0


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
