"""A running gateway: what listens, what serves, and how both end.

Draining turns `/readyz` to 503, stops accepting, lets finite responses finish, ends WebSockets and
endless event streams some seconds before its time is over, and leaves the rest to `close`.
"""

import asyncio
import logging
import platform
import ssl
from collections.abc import Mapping
from typing import Protocol

from midstream import __version__
from midstream.adapters.capture_redact import redactor
from midstream.config.schema import Config
from midstream.config.values import parse_address
from midstream.core import metrics
from midstream.core.engine import Engine
from midstream.core.errors import ConfigError
from midstream.core.ports import Store
from midstream.hosts import gateway_heads as heads
from midstream.hosts.admin import Admin, reason
from midstream.hosts.gateway_call import Streams
from midstream.hosts.gateway_handler import Handler, Rules
from midstream.hosts.gateway_server import Server
from midstream.hosts.gateway_upstream import Upstreams
from midstream.hosts.gateway_watch import Watch
from midstream.hosts.gateway_wire import write_header_bytes_as_they_came
from midstream.hosts.inspector import Ring
from midstream.hosts.inspector_access import admin_token
from midstream.hosts.inspector_routes import Writer
from midstream.hosts.keeping import keeper

logger = logging.getLogger(__name__)

BACKLOG = 2048
END_SECONDS = 5.0
"""How long before the end of a drain the endless streams are ended."""
POLL_SECONDS = 0.05


class Health(Protocol):
    """Something the gateway works with, that may fail while streams go on."""

    @property
    def healthy(self) -> bool: ...


class Gateway:
    """A running gateway. `start` makes one."""

    def __init__(
        self,
        engine: Engine,
        config: Config,
        ring: Ring,
        health: Mapping[str, Health],
        store: Store | None = None,
        on_write: Writer | None = None,
    ) -> None:
        write_header_bytes_as_they_came()
        token = admin_token(config)  # before anything is opened
        self.started_with = self._config = config
        self._counts = engine.counts
        self._health = dict(health)
        self._upstreams = Upstreams(config.tls.upstream_ca)
        self.streams = Streams(engine)
        self.keeper = None if store is None else keeper(engine, self.streams, store, config)
        if self.keeper is not None:
            self._health["store"] = self.keeper
        self._handler = Handler(engine, self._upstreams, self.streams, _rules(config), self.keeper)
        self._server = Server(
            self._handler,
            engine.counts,
            head_seconds=config.limits.max_header_seconds,
            max_connections=config.limits.max_connections,
        )
        self.watch = Watch(engine.counts, self.streams)
        self._admin = Admin(
            engine.counts,
            self.streams,
            ring,
            self.readiness,
            token=token,
            redactor=redactor(config.capture),
            on_write=on_write,
        )
        self._listener: asyncio.Server | None = None
        self.port = 0
        self.admin_port = 0
        engine.counts.set(metrics.BUILD_INFO, (__version__, platform.python_version()), 1)
        engine.counts.set(metrics.RELOADED, (), 1)

    async def listen(self) -> None:
        """Open both ports. Raises ConfigError."""
        self.admin_port = await self._admin.listen(parse_address(self._config.admin))
        address = parse_address(self._config.listen)
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._server, address.host, address.port, ssl=self._tls(), backlog=BACKLOG
            )
        except OSError as error:
            raise ConfigError(f"listen: cannot listen on {address}: {reason(error)}") from error
        self.port = self._listener.sockets[0].getsockname()[1]
        self.watch.start()
        if self.keeper is not None:
            self.keeper.start()

    def take(self, config: Config) -> None:
        """Take another configuration, as far as a running gateway can, for new exchanges."""
        self._config = config
        self._handler.rules = _rules(config)
        self._server.allow(config.limits.max_header_seconds, config.limits.max_connections)

    def readiness(self) -> tuple[int, str]:
        """Return status and text of `/readyz`."""
        if self.streams.is_draining:
            return 503, "draining"
        failing = [name for name, part in self._health.items() if not part.healthy]
        return (200, f"degraded: {', '.join(failing)}") if failing else (200, "ready")

    async def drain(self) -> None:
        """End everything in good order, within `limits.drain_seconds`."""
        loop = asyncio.get_running_loop()
        drain_s = self._config.limits.drain_seconds
        over_at = loop.time() + drain_s
        self.streams.is_draining = True
        self._counts.set(metrics.DRAINING, (), 1)
        self._stop_listening()
        for client in self._server.clients:
            if not client.is_busy:
                client.force_close()
        await self._until(loop.time() + max(drain_s - END_SECONDS, 0))
        self.streams.end()
        await self._until(over_at)

    async def close(self) -> None:
        """Stop at once, and return when nothing is left running."""
        self.streams.is_draining = True
        self._stop_listening()
        for client in self._server.clients:
            client.cut()
        await self._until(asyncio.get_running_loop().time() + END_SECONDS)
        self.watch.stop()
        if self.keeper is not None:
            await self.keeper.stop()
        await self._upstreams.close()
        await self._admin.close()

    async def _until(self, deadline: float) -> None:
        """Wait until all clients are gone, or a moment on the loop's clock has come."""
        loop = asyncio.get_running_loop()
        while True:
            left_s = deadline - loop.time()
            if left_s <= 0 or not self._server.connections:
                return
            await asyncio.sleep(min(POLL_SECONDS, left_s))

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()

    def _tls(self) -> ssl.SSLContext | None:
        tls = self._config.tls
        if not tls.cert:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(tls.cert, tls.key or None)
        except OSError as error:
            raise ConfigError(f"tls.cert: cannot use {tls.cert!r}: {reason(error)}") from error
        return context


def _rules(config: Config) -> Rules:
    return Rules(
        frozenset(origin.lower() for origin in config.security.allowed_origins),
        heads.parse_networks(config.security.trusted_proxies),
        "https" if config.tls.cert else "http",
    )
