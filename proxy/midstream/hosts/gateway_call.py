"""One exchange on its way through the gateway, and what the transports share about it."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import msgspec

from midstream.core import metrics
from midstream.core.addon import Answer
from midstream.core.engine import Engine, Route
from midstream.core.exchange import Headers, RequestHead, Transport, header
from midstream.core.frames import Side
from midstream.core.session import Session
from midstream.hosts import gateway_heads as heads
from midstream.hosts.gateway_drive import NS_PER_S, Drive
from midstream.hosts.gateway_server import Request
from midstream.hosts.gateway_upstream import Upstreams

NOT_ASKED = heads.HANDSHAKE | {
    "accept-encoding", "content-encoding", "content-length", "content-type", "expect", "host",
    "last-event-id", "sec-websocket-protocol",
}  # fmt: skip
"""What a fetch for an addon does not take over from the request of its exchange."""


class Refusal(Exception):
    """A request the gateway answers itself. `reason` is a metric label; empty counts nothing."""

    def __init__(
        self, status: int, reason: str, text: str, headers: Headers = (), *, close: bool = False
    ) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.headers = headers
        self.close = close


class Stream(msgspec.Struct):
    """An open WebSocket or event stream."""

    route: str
    transport: Transport
    session: Session
    drive: Drive
    opened_ns: int
    drain: Callable[[], None] = lambda: None

    @property
    def frames_in(self) -> dict[Side, int]:
        return self.drive.received

    @property
    def frames_out(self) -> dict[Side, int]:
        return {side: lane.sent for side, lane in self.drive.lanes.items()}


class Streams:
    """The streams that are open now, by exchange number."""

    def __init__(self, engine: Engine) -> None:
        self._counts = engine.counts
        self.open: dict[int, Stream] = {}
        self.is_draining = False
        self._is_ending = False

    @property
    def sessions(self) -> Iterable[Session]:
        return [stream.session for stream in self.open.values()]

    def end(self) -> None:
        """Ask every stream to end in good order, those that open from now on too."""
        self.is_draining = self._is_ending = True
        for stream in tuple(self.open.values()):
            stream.drain()

    @contextmanager
    def opened(self, call: "Call", drain: Callable[[], None]) -> Iterator[None]:
        """Count a stream while it is open. `drain` asks it to end."""
        session, now_ns = call.session, time.monotonic_ns()
        route, transport = session.exchange.route, session.transport
        labels = (route, transport.value)
        number = session.exchange.number
        self.open[number] = Stream(route, transport, session, call.drive, now_ns, drain)
        self._counts.add(metrics.STREAMS_OPENED, labels)
        self._counts.add(metrics.STREAMS_ACTIVE, labels)
        if self._is_ending:
            drain()
        try:
            yield
        except asyncio.CancelledError:
            call.outcome = "drained" if self.is_draining else "client_gone"
            raise
        finally:
            del self.open[number]
            seconds = (time.monotonic_ns() - now_ns) / NS_PER_S
            self._counts.add(metrics.STREAMS_ACTIVE, labels, -1)
            self._counts.add(metrics.STREAMS_CLOSED, (*labels, call.outcome))
            self._counts.observe(metrics.STREAM_DURATION, labels, seconds)


class Call:
    """What the gateway knows of one exchange.

    `headers` are the end-to-end headers that go upstream, `origin` is that of `Exchange`, `outcome`
    is a metric label of a stream.
    """

    def __init__(
        self,
        request: Request,
        head: RequestHead,
        route: Route,
        engine: Engine,
        upstreams: Upstreams,
        streams: Streams,
        headers: Headers,
        origin: str,
    ) -> None:
        self.request = request
        self.head = head
        self.route = route
        self.upstreams = upstreams
        self.streams = streams
        self.headers = headers
        self.session = engine.open(head, route, origin=origin)
        self.drive = Drive(self.session, engine.counts, self._fetch)
        self.outcome = "proxy_error"
        self.is_body_bad = False
        self._counts = engine.counts
        self._is_answered = False

    def answered(self, status: int) -> None:
        """Count the request, once, when it is known how it is answered."""
        if self._is_answered:
            return
        self._is_answered = True
        code_class = f"{min(max(status // 100, 1), 5)}xx"
        labels = (self.route.name, self.session.transport.value, code_class)
        self._counts.add(metrics.REQUESTS, labels)

    def reject(self, reason: str) -> None:
        self._counts.add(metrics.REJECTED, (reason,))

    def failed(self, reason: str) -> None:
        """Count a failure of the upstream."""
        self._counts.add(metrics.UPSTREAM_ERRORS, (self.route.name, reason))

    async def _fetch(self, target: str) -> Answer:
        headers = tuple(pair for pair in self.headers if pair[0].lower() not in NOT_ASKED)
        headers = (*headers, ("Accept-Encoding", "identity"))
        return await self.upstreams.fetch(self.route.upstream, target, headers)


def expects_continue(head: RequestHead) -> bool:
    return (header(head.headers, "expect") or "").strip().lower() == "100-continue"
