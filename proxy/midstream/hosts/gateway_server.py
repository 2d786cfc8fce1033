"""The client's side of the gateway: aiohttp's HTTP server with limits it does not have.

- A request head must be complete within `max_header_seconds`, counted from the opening of the
  connection or from the first byte after the last response.
- Over `max_connections` a connection gets one 503; far over it, it is cut.
- Requests that are no HTTP get a plain 400, and no log of what was in them.
- Responses carry the upstream's `Server`, `Date` and `Content-Type`, not aiohttp's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage

from midstream.core import metrics
from midstream.core.exchange import Headers, header
from midstream.core.metrics import Counts

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75.0
LINGER_SECONDS = 5.0
MAX_HEAD_BYTES = 64 << 10
MAX_REFUSED_CONNECTIONS = 256
"""How many connections over the limit are told so; those beyond them are cut."""
LATE_HEAD = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)  # fmt: skip

type Handler = Callable[["Request"], Awaitable[web.StreamResponse]]


class BadBody(Exception):
    """A request body is not what its head says."""


class Relayed(web.StreamResponse):
    """A response that says what the upstream said and nothing else."""

    def __init__(self, status: int, reason: str | None, headers: Headers) -> None:
        super().__init__(status=status, reason=reason)
        self.headers.extend(headers)
        self._said = headers

    def take_back(self) -> None:
        """Remove what aiohttp adds and the upstream did not say. `Date` may be added: RFC 9110."""
        for name in ("Server", "Content-Type"):
            if header(self._said, name.lower()) is None:
                self.headers.popall(name, None)


class Request(web.BaseRequest):
    """A request whose responses do not advertise aiohttp."""

    @property
    def connection(self) -> "Connection":
        return cast("Connection", self.protocol)  # the server makes no other

    @property
    def peer(self) -> str:
        """The address of the client, without its port; empty for a Unix socket."""
        peer = self.connection.peername
        return peer[0] if isinstance(peer, tuple) else ""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        if isinstance(response, Relayed):
            response.take_back()
        else:
            response.headers.popall("Server", None)


class Connection(web.RequestHandler):
    """One client connection."""

    __slots__ = ("_counts", "_head_seconds", "_head_timer", "_request", "is_surplus", "lost")

    def __init__(
        self, server: "Server", counts: Counts, head_seconds: float, **kwargs: Any
    ) -> None:
        super().__init__(server, **kwargs)
        self._counts = counts
        self._head_seconds = head_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._request: Request | None = None
        self.is_surplus = False
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._head_is_there()
        self.lost.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.is_busy and self._head_timer is None:
            self._await_head()
        super().data_received(data)
        if self._request is not None and self._messages:
            self._check_body(self._request.content)

    @property
    def is_busy(self) -> bool:
        """Tell whether a request is being handled."""
        return self._request is not None

    def begin(self, request: Request) -> None:
        """Note that a request head is complete and its handler at work."""
        self._request = request
        self._head_is_there()

    def finish(self) -> None:
        self._request = None

    def _check_body(self, body: StreamReader) -> None:
        """Break off a body that turned out to be malformed.

        aiohttp queues the error as the answer to a next request, and would leave the handler of
        this one waiting for the rest of its body.
        """
        if not isinstance(self._messages[-1][0], RawRequestMessage) and not body.is_eof():
            body.set_exception(BadBody("a request body is malformed"))

    def cut(self) -> None:
        """End the connection at once, with whatever is still to be sent."""
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what cannot be handled: log a fault of ours, count a fault of the client."""
        self._head_is_there()
        if isinstance(exc, ConnectionError):
            raise exc  # the client is gone, there is nothing to answer and nothing wrong
        if status < 500:
            self._counts.add(metrics.REJECTED, ("bad_request",))
            text = "bad request: it cannot be read as HTTP/1.1\n"
        else:
            logger.error("a request could not be handled", exc_info=exc)
            text = "internal error of the proxy\n"
        if request.writer.output_size > 0:
            raise ConnectionError("a response is under way, it can only be cut")
        response = web.Response(status=status, text=text)
        response.force_close()
        return response

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(self._head_seconds, self._head_is_late)

    def _head_is_there(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.transport is None or self.is_busy:
            return
        self._counts.add(metrics.REJECTED, ("header_timeout",))
        self.transport.write(LATE_HEAD)
        self.force_close()


class Server(web.Server):
    """Makes a `Connection` for each client that connects. Needs a running event loop."""

    def __init__(
        self, handler: Handler, counts: Counts, *, head_seconds: float, max_connections: int
    ) -> None:
        super().__init__(
            handler,  # type: ignore[arg-type]  # the factory below makes every request a Request
            request_factory=self._request,
            handler_cancellation=True,
        )
        self._running = asyncio.get_running_loop()
        self._counts = counts
        self.allow(head_seconds, max_connections)

    def allow(self, head_seconds: float, max_connections: int) -> None:
        """Set the limits for connections that are made from now on."""
        self._head_seconds = head_seconds
        self._max_connections = max_connections
        self._counts.set(metrics.CONNECTION_LIMIT, (), max_connections)

    def __call__(self) -> Connection:
        return Connection(
            self,
            self._counts,
            self._head_seconds,
            loop=self._running,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            max_line_size=MAX_HEAD_BYTES,
            max_field_size=MAX_HEAD_BYTES,
        )

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._counts.set(metrics.CONNECTIONS, (), len(self._connections))
        surplus = len(self._connections) - self._max_connections
        cast("Connection", handler).is_surplus = surplus > 0
        if surplus > MAX_REFUSED_CONNECTIONS:
            self._counts.add(metrics.REJECTED, ("connections",))
            transport.abort()

    def connection_lost(
        self, handler: web.RequestHandler, error: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, error)
        self._counts.set(metrics.CONNECTIONS, (), len(self._connections))

    @property
    def clients(self) -> list[Connection]:
        return [client for client in self.connections if isinstance(client, Connection)]

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> Request:
        return Request(message, payload, protocol, writer, task, self._running)
