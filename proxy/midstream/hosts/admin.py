"""The admin port: metrics, health, and the live inspector page.

It listens apart from the traffic, on loopback unless told otherwise, and shows no payload, target,
header or address.
"""

import os
from collections.abc import Callable

import msgspec
from aiohttp import web

from midstream.adapters.metrics_prometheus import Exposition
from midstream.config.values import Address
from midstream.core.errors import ConfigError
from midstream.core.metrics import Counts
from midstream.hosts.gateway_call import Streams
from midstream.hosts.inspector import Ring, page, snapshot

PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "connect-src 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
}


def reason(error: OSError) -> str:
    """Return in a few words, in lower case, why the system refused."""
    text = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return (text or str(error)).lower()


class Admin:
    """Serves the admin port of a gateway."""

    def __init__(
        self,
        counts: Counts,
        streams: Streams,
        ring: Ring,
        readiness: Callable[[], tuple[int, str]],
    ) -> None:
        self._exposition = Exposition(counts)
        self._streams = streams
        self._ring = ring
        self._readiness = readiness
        self._runner: web.AppRunner | None = None

    async def listen(self, address: Address) -> int:
        """Open the port and return its number. Raises ConfigError."""
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/streams.json", self._snapshot)
        app.router.add_get("/", self._page)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, address.host, address.port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError(f"admin: cannot listen on {address}: {reason(error)}") from error
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = self._exposition.render(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _livez(self, _request: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        status, text = self._readiness()
        return web.Response(status=status, text=f"{text}\n")

    async def _snapshot(self, _request: web.Request) -> web.Response:
        body = msgspec.json.encode(snapshot(self._streams, self._ring))
        headers = PAGE_HEADERS | {"Content-Type": "application/json"}
        return web.Response(body=body, headers=headers)

    async def _page(self, _request: web.Request) -> web.Response:
        headers = PAGE_HEADERS | {"Content-Type": "text/html; charset=utf-8"}
        return web.Response(body=page(), headers=headers)
