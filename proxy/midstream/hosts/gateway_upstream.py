"""Requests to upstreams, by aiohttp's client: the exact head, one attempt, errors in two words.

Rules of this file:
- The request target and the headers leave as they are given. aiohttp would drop an empty query and
  merge headers of one name in different case, so both are set after it has built its request.
- Nothing is sent twice. aiohttp repeats an idempotent request on a broken connection; it does not
  where the error is not one of its own, and so errors are translated right at the attempt.
- Connections are kept for less than the 5 s after which Node and uvicorn close an idle one, so that
  a request seldom meets a connection that is about to end.
"""

import asyncio
import copy
import ssl
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from multidict import CIMultiDict
from yarl import URL

from midstream.core.addon import Answer
from midstream.core.errors import ConfigError, UpstreamError
from midstream.core.exchange import Headers

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 4.0
FETCH_SECONDS = 10.0
MAX_FETCH_BYTES = 16 << 20
MAX_HEAD_BYTES = 64 << 10

type Body = bytes | AsyncIterator[bytes] | None


class UpstreamFailure(UpstreamError):
    """An upstream that did not answer: `reason` for the metric, `status` for the client."""

    def __init__(self, message: str, reason: str, status: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status


class Refused(UpstreamError):
    """The upstream answered an upgrade with something else; the response is still to be read."""

    def __init__(self, response: ClientResponse) -> None:
        super().__init__(f"upgrade refused with status {response.status}")
        self.response = response


class UpstreamSocket(aiohttp.ClientWebSocketResponse):
    """The upstream's end of a WebSocket. Its owner ends it: `close` here never sends anything."""

    def __init__(
        self,
        reader: Any,
        writer: Any,
        protocol: str | None,
        response: ClientResponse,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(reader, writer, protocol, response, *args, **kwargs)
        self.handshake = response
        self.lost = asyncio.Event()
        connection = response.connection
        protocol_of = None if connection is None else connection.protocol
        closed = None if protocol_of is None else protocol_of.closed
        if closed is None:
            self.lost.set()
        else:
            closed.add_done_callback(self._note_loss)

    def _note_loss(self, closed: "asyncio.Future[None]") -> None:
        closed.exception()  # how it ended is no news: the reader has been told
        self.lost.set()

    async def close(self, *, code: int = 1000, message: bytes = b"") -> bool:
        """Do nothing: aiohttp calls this on errors, and would answer with codes of its own."""
        return False


def exact_url(upstream: str, target: str) -> URL:
    """Return a URL whose request target is `target` to the byte."""
    origin = URL(upstream)
    authority = origin.host_port_subcomponent or ""
    # a copy: yarl gives every request to one upstream the same object, and with it the same target
    url = copy.copy(URL.build(scheme=origin.scheme, authority=authority, encoded=True))
    # yarl has no empty query and takes fragments apart; what it sends is this cached property.
    url._cache["raw_path_qs"] = target
    return url


def _failure(error: Exception, url: URL) -> UpstreamFailure:
    at = f"upstream {url.scheme}://{url.host_port_subcomponent}"
    if isinstance(error, TimeoutError):
        message = f"{at} did not accept a connection within {CONNECT_SECONDS:g} s"
        return UpstreamFailure(message, "timeout", 504)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return UpstreamFailure(f"{at} has a name that does not resolve", "connect", 502)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return UpstreamFailure(f"{at} has a certificate that is not trusted", "connect", 502)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return UpstreamFailure(f"{at} does not speak TLS", "connect", 502)
    if isinstance(error, aiohttp.ClientConnectorError):
        return UpstreamFailure(f"{at} refused the connection", "connect", 502)
    if isinstance(error, aiohttp.ClientResponseError):
        return UpstreamFailure(f"{at} answered with something that is not HTTP", "broken", 502)
    return UpstreamFailure(f"{at} closed the connection before it answered", "broken", 502)


class _Exactly:
    """A middleware: sends one request with exactly these headers, and translates its errors."""

    def __init__(self, headers: Headers, *, upgrade: bool = False) -> None:
        self._headers = headers
        self._upgrade = upgrade

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        names = {name.lower() for name, _ in self._headers}
        own = [pair for pair in request.headers.items() if pair[0].lower() not in names]
        request.headers = CIMultiDict([*own[:1], *self._headers, *own[1:]])  # Host comes first
        try:
            response = await handler(request)
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error, request.url) from error
        if self._upgrade and response.status != 101:
            raise Refused(response)
        return response


class Upstreams:
    """The connections to all upstreams of a process. Needs a running event loop."""

    def __init__(self, ca_file: str = "") -> None:
        try:
            context = ssl.create_default_context(cafile=ca_file or None)
        except OSError as error:
            raise ConfigError(f'tls.upstream_ca: cannot read "{ca_file}": {error}') from error
        self._connector = aiohttp.TCPConnector(
            limit=0, ssl=context, keepalive_timeout=IDLE_SECONDS, ttl_dns_cache=10
        )
        self._session = self._new_session()

    async def close(self) -> None:
        await self._session.close()
        await self._connector.close()

    async def request(
        self, upstream: str, method: str, target: str, headers: Headers, body: Body = None
    ) -> ClientResponse:
        """Send a request and return the response with its body unread. Raises UpstreamFailure.

        A `Content-Length` among the headers must be true of the body; without one a body that is
        an iterator is sent in chunks.
        """
        length = [pair for pair in headers if pair[0].lower() == "content-length"]
        return await self._session.request(
            method,
            exact_url(upstream, target),
            data=body,
            headers=length,
            allow_redirects=False,
            middlewares=(_Exactly(headers),),
        )

    async def upgrade(
        self, upstream: str, target: str, headers: Headers, *, deflate: bool, max_bytes: int
    ) -> UpstreamSocket:
        """Open a WebSocket. Raises Refused or UpstreamFailure.

        A message over `max_bytes` is an error of the socket.
        """
        session = self._new_session(_Exactly(headers, upgrade=True))
        try:
            socket = await session.ws_connect(
                exact_url(upstream, target),
                autoclose=False,
                autoping=False,
                compress=15 if deflate else 0,
                max_msg_size=max_bytes + 1,  # aiohttp refuses a message of exactly this size
                decode_text=False,
            )
        except aiohttp.ClientError as error:
            raise _failure(error, URL(upstream)) from error
        finally:
            session.detach()
        return cast("UpstreamSocket", socket)

    async def fetch(self, upstream: str, target: str, headers: Headers) -> Answer:
        """GET `target` for an addon, within bounds of time and size; status 0 where that fails."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                response = await self.request(upstream, "GET", target, headers)
                async with response:
                    body = await response.content.read(MAX_FETCH_BYTES + 1)
                    return Answer(response.status, body)
        except (UpstreamError, aiohttp.ClientError, OSError):
            return Answer()

    def _new_session(self, *middlewares: _Exactly) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            max_line_size=MAX_HEAD_BYTES,
            max_field_size=MAX_HEAD_BYTES,
            middlewares=middlewares,
            ws_response_class=UpstreamSocket,
        )
