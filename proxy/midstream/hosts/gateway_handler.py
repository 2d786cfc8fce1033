"""Decides what becomes of a request: refused here, or relayed by its transport.

- The request target goes upstream as it came; targets that are no path are refused.
- One Host of any name is served. Origins are checked only where some are allowed.
- What the gateway answers itself is a short text that names the upstream and what happened.
"""

import logging

import msgspec
from aiohttp import web
from aiohttp.http import HttpVersion11

from midstream.core import metrics
from midstream.core.engine import Engine
from midstream.core.exchange import Headers, RequestHead, header
from midstream.hosts import gateway_heads as heads
from midstream.hosts import gateway_http, gateway_ws, origins
from midstream.hosts.gateway_call import Call, Refusal, Streams
from midstream.hosts.gateway_server import BadBody, Request
from midstream.hosts.gateway_upstream import UpstreamFailure, Upstreams
from midstream.hosts.keeper import Keeper

logger = logging.getLogger(__name__)

NOT_FORWARDED = frozenset({"expect", "host"})
RETRY_SECONDS = 1
MAX_SHOWN = 100


class Rules(msgspec.Struct, frozen=True):
    """Whom the gateway serves."""

    allowed_origins: frozenset[str] = frozenset()
    trusted_proxies: tuple[heads.Network, ...] = ()
    scheme: str = "http"


class Handler:
    """Handles every request of a gateway."""

    def __init__(
        self,
        engine: Engine,
        upstreams: Upstreams,
        streams: Streams,
        rules: Rules,
        keeper: Keeper | None = None,
    ) -> None:
        self._engine = engine
        self._counts = engine.counts
        self._upstreams = upstreams
        self._streams = streams
        self.rules = rules
        self._keeper = keeper

    async def __call__(self, request: Request) -> web.StreamResponse:
        """Answer one request."""
        connection = request.connection
        connection.begin(request)
        try:
            return await self._handle(request)
        except Refusal as refusal:
            return self._refused(refusal)
        finally:
            connection.finish()
            if self._streams.is_draining:
                connection.close()

    async def _handle(self, request: Request) -> web.StreamResponse:
        raw = heads.decoded(request.raw_headers)
        head = RequestHead(request.method, request.raw_path, raw)
        self._check(request, head)
        route = self._engine.route(head)
        if route is None:
            raise Refusal(404, "no_route", f"no route matches the path {_shown(head.path)}")
        if self._keeper is not None:
            await self._keeper.recall(head, route)
        is_trusted = heads.is_trusted(request.peer, self.rules.trusted_proxies)
        call = Call(
            request, head, route, self._engine, self._upstreams, self._streams,
            self._forwarded(request, raw, is_trusted), self._origin(request, raw, is_trusted),
        )  # fmt: skip
        async with call.drive:
            try:
                return await self._relay(call)
            except Refusal as refusal:
                call.answered(refusal.status)
                raise
            except BadBody:
                return self._bad_body(call)
            except UpstreamFailure as failure:
                return self._bad_body(call) if call.is_body_bad else self._failed(call, failure)
            finally:
                call.drive.abort()

    async def _relay(self, call: Call) -> web.StreamResponse:
        if call.head.is_websocket:
            return await gateway_ws.relay(call, self._engine.limits.max_frame_bytes)
        return await gateway_http.relay(call)

    def _check(self, request: Request, head: RequestHead) -> None:
        if request.connection.is_surplus:
            told = (("Retry-After", str(RETRY_SECONDS)),)
            raise Refusal(503, "connections", "too many connections", told, close=True)
        if self._streams.is_draining:
            raise Refusal(503, "draining", "the proxy is about to stop", close=True)
        if head.method == "CONNECT":
            raise Refusal(405, "bad_target", "CONNECT is not served", close=True)
        if not head.target.startswith("/"):
            raise Refusal(400, "bad_target", "the request target must be a path", close=True)
        hosts = sum(name.lower() == "host" for name, _ in head.headers)
        if hosts > 1 or (hosts == 0 and request.version >= HttpVersion11):
            raise Refusal(400, "bad_host", f"found {hosts} Host headers, expected 1", close=True)
        origin = header(head.headers, "origin")
        allowed = self.rules.allowed_origins
        if allowed and origin is not None and origin.lower() not in allowed:
            raise Refusal(403, "origin", f"the origin {_shown(origin)} is not allowed")

    def _forwarded(self, request: Request, raw: Headers, is_trusted: bool) -> Headers:
        headers = heads.forwarded(raw, request.peer, self.rules.scheme, trusted=is_trusted)
        return heads.end_to_end(headers, NOT_FORWARDED)

    def _origin(self, request: Request, raw: Headers, is_trusted: bool) -> str:
        scheme = self.rules.scheme
        if is_trusted:
            return origins.claimed(raw, scheme, request.forwarded)
        return origins.origin(scheme, header(raw, "host"))

    def _refused(self, refusal: Refusal) -> web.Response:
        if refusal.reason:
            self._counts.add(metrics.REJECTED, (refusal.reason,))
        return _text(refusal.status, str(refusal), refusal.headers, close=refusal.close)

    def _bad_body(self, call: Call) -> web.Response:
        call.reject("bad_request")
        call.answered(400)
        return _text(400, "the request body is not what its head says", close=True)

    def _failed(self, call: Call, failure: UpstreamFailure) -> web.Response:
        call.failed(failure.reason)
        call.answered(failure.status)
        logger.warning("%s", failure)
        return _text(failure.status, str(failure))


def _shown(text: str) -> str:
    """Return what a client sent, cut and escaped, for an error text."""
    return ascii(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}...")


def _text(status: int, text: str, headers: Headers = (), *, close: bool = False) -> web.Response:
    response = web.Response(status=status, text=f"{text}\n", headers=headers)
    if close:
        response.force_close()
    return response
