"""Carries out `Fetch` inside mitmproxy: a GET at the upstream of the flow, with its credentials.

It goes past mitmproxy's own connections, because an addon cannot send a request on them. One client
session for each fetch: fetches are rare (one for a reconnect), and nothing is left to close.
"""

import logging
import ssl

import aiohttp
from mitmproxy import http, options
from yarl import URL

from midstream.core.addon import Answer

logger = logging.getLogger(__name__)

MAX_SECONDS = 10
MAX_BODY_BYTES = 16 << 20
FORWARDED = ("cookie", "authorization", "x-api-key", "user-agent")


def origin(request: http.Request) -> str:
    """Return `scheme://host:port` of where mitmproxy sends this request."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    return f"{request.scheme}://{host}:{request.port}"


async def fetch(request: http.Request, target: str, opts: options.Options) -> Answer:
    """Return what a GET of `target` brings: at most 16 MiB in at most 10 s, else status 0."""
    headers = {name: request.headers[name] for name in FORWARDED if name in request.headers}
    if host := request.host_header:
        headers["host"] = host
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=MAX_SECONDS)) as client,
            client.get(
                URL(origin(request) + target, encoded=True),    # the target goes up as it came
                headers=headers,
                ssl=verification(opts),
                allow_redirects=False,                          # credentials stay at this upstream
            ) as response,
        ):  # fmt: skip
            body = await _bounded(response)
            return Answer() if body is None else Answer(response.status, body)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        logger.warning("a fetch failed: %s", type(error).__name__)
        return Answer()


async def _bounded(response: aiohttp.ClientResponse) -> bytes | None:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            logger.warning("a fetch was given up: over %d bytes", MAX_BODY_BYTES)
            return None
    return bytes(body)


def verification(opts: options.Options) -> ssl.SSLContext | bool:
    """Verify as mitmproxy was told to."""
    if opts.ssl_insecure:
        return False
    if opts.ssl_verify_upstream_trusted_ca:
        return ssl.create_default_context(cafile=opts.ssl_verify_upstream_trusted_ca)
    return True
