"""The hosts under test, each with an engine whose sessions are watched."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.conformance.clock import Clock
from tests.conformance.conductor import Conductor
from tests.conformance.upstream import Upstream
from tests.conformance.watch import Watch, WatchedEngine
from tests.hosts.mitm_master import mitmproxy

from midstream import registry, wiring
from midstream.config import Config, RouteTable
from midstream.core.engine import Engine
from midstream.hosts import gateway

type Host = Callable[
    [Upstream, Clock, random.Random, Watch, bool], AbstractAsyncContextManager[Conductor]
]


def configuration(upstream: str, *, repairs: bool) -> Config:
    """Return the default configuration, with every addon or with none."""
    route = RouteTable(upstream=upstream, addons=None if repairs else ())
    return Config(listen="127.0.0.1:0", admin="127.0.0.1:0", routes=(route,))


def engine(*, repairs: bool, upstream: str = "http://upstream.test") -> Engine:
    return wiring.engine(configuration(upstream, repairs=repairs))


@asynccontextmanager
async def through_the_gateway(
    upstream: Upstream, clock: Clock, rng: random.Random, watch: Watch, repairs: bool
) -> AsyncIterator[Conductor]:
    config = configuration(f"http://127.0.0.1:{upstream.port}", repairs=repairs)
    served = WatchedEngine(wiring.engine(config), registry.dialects(), watch)
    running = await gateway.start(served, config)
    try:
        yield Conductor(running.port, upstream, clock, rng, watch)
    finally:
        await running.close()


@asynccontextmanager
async def through_mitmproxy(
    upstream: Upstream, clock: Clock, rng: random.Random, watch: Watch, repairs: bool
) -> AsyncIterator[Conductor]:
    served = WatchedEngine(engine(repairs=repairs), registry.dialects(), watch)
    async with mitmproxy(upstream.port, served) as proxy:
        yield Conductor(proxy.port, upstream, clock, rng, watch, wakes_http=False)


HOSTS: dict[str, Host] = {"gateway": through_the_gateway, "mitmproxy": through_mitmproxy}
