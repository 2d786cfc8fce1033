"""The admin port: metrics, health, and the live inspector page.

It listens apart from the traffic, on loopback unless told otherwise. Metrics and health are open to
whoever reaches the port and hold no content; who may see the inspector, `inspector_access.py` says.
"""

import os
from collections.abc import Callable

from aiohttp import web

from midstream.adapters.capture_redact import Redactor
from midstream.adapters.capture_redact import redactor as redactor_of
from midstream.adapters.metrics_prometheus import Exposition
from midstream.config.schema import CaptureTable
from midstream.config.values import Address
from midstream.core.errors import ConfigError
from midstream.core.metrics import Counts
from midstream.hosts.gateway_call import Streams
from midstream.hosts.inspector import Ring
from midstream.hosts.inspector_access import Access
from midstream.hosts.inspector_routes import Routes, Writer
from midstream.hosts.inspector_view import View

MAX_REQUEST_BYTES = 16_384


def reason(error: OSError) -> str:
    """Return in a few words, in lower case, why the system refused."""
    text = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return (text or str(error)).lower()


class Admin:
    """Serves the admin port of a gateway, or of mitmproxy.

    `token` opens the inspector where it is not empty, `redactor` hides what it must not show, and
    `on_write` writes out what a capture keeps in memory, and returns how many records.
    """

    def __init__(
        self,
        counts: Counts,
        streams: Streams,
        ring: Ring,
        readiness: Callable[[], tuple[int, str]],
        *,
        token: str = "",
        redactor: Redactor | None = None,
        on_write: Writer | None = None,
    ) -> None:
        self._exposition = Exposition(counts)
        self._streams = streams
        self._view = View(ring, redactor or redactor_of(CaptureTable()))
        self._readiness = readiness
        self._token = token
        self._on_write = on_write
        self._runner: web.AppRunner | None = None

    async def listen(self, address: Address) -> int:
        """Open the port and return its number. Raises ConfigError."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        access = Access(address.host, self._token)
        Routes(access, self._view, self._streams, self._on_write).add_to(app)
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
