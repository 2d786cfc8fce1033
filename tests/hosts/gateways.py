"""Runs a gateway for a test: one route to an upstream, with fake addons or none."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager

from tests.support import FakeAddon, FakeDialect

from midstream.config.schema import Config, LimitsTable, RouteTable, SecurityTable, TlsTable
from midstream.core.addon import Mode
from midstream.core.engine import Engine, Limits, Route
from midstream.core.metrics import Counts
from midstream.core.ports import Sink, Store
from midstream.hosts.gateway import start
from midstream.hosts.gateway_service import Gateway, Health
from midstream.hosts.inspector import Ring


class Running:
    """A gateway at work, with what a test wants to look at."""

    def __init__(self, gateway: Gateway, engine: Engine) -> None:
        self.gateway = gateway
        self.engine = engine
        self.counts: Counts = engine.counts
        self.port = gateway.port
        self.admin_port = gateway.admin_port

    async def streams_closed(self) -> None:
        """Wait until no stream is open any more."""
        await until(lambda: not self.gateway.streams.open)


@asynccontextmanager
async def gateway(
    url: str,
    *addons: FakeAddon,
    path: str = "/*",
    mode: Mode = Mode.REPAIR,
    limits: LimitsTable | None = None,
    security: SecurityTable | None = None,
    tls: TlsTable | None = None,
    sink: Sink | None = None,
    ring: Ring | None = None,
    health: Mapping[str, Health] | None = None,
    store: Store | None = None,
) -> AsyncIterator[Running]:
    limits = limits or LimitsTable(max_frame_bytes=1 << 20)
    config = Config(
        listen="127.0.0.1:0",
        admin="127.0.0.1:0",
        routes=(RouteTable(name="chat", path=path, upstream=url),),
        limits=limits,
        security=security or SecurityTable(),
        tls=tls or TlsTable(),
    )
    route = Route("chat", path, url, tuple((addon, mode) for addon in addons))
    engine = Engine(
        [route],
        [FakeDialect()],
        secret=b"secret",
        sink=sink or ring,
        limits=Limits(max_frame_bytes=limits.max_frame_bytes),
    )
    running = await start(engine, config, ring=ring, health=health, store=store)
    try:
        yield Running(running, engine)
    finally:
        await running.close()


async def until(is_so: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until a condition holds, for a bounded time."""
    async with asyncio.timeout(seconds):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.005)


def begin[T](work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    """Start work that goes on while the test does; the test awaits it in the end."""
    return asyncio.get_running_loop().create_task(work)
