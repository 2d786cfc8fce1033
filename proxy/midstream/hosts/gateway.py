"""The gateway as a process: a reverse proxy for HTTP/1.1, event streams and WebSockets.

It serves until SIGTERM or SIGINT, drains, and exits; a second signal exits at once.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping

import uvloop

from midstream import wiring
from midstream.adapters.capture_recorder import Recorder
from midstream.adapters.capture_recorder import recorder as recorder_of
from midstream.config.schema import Config
from midstream.config.values import Address, parse_address
from midstream.core.engine import Engine
from midstream.core.errors import ConfigError
from midstream.core.metrics import Counts
from midstream.core.ports import Record, Sink, Store
from midstream.hosts import keeping
from midstream.hosts.capture_signal import write_on_signal
from midstream.hosts.gateway_reload import Reload
from midstream.hosts.gateway_service import Gateway, Health
from midstream.hosts.inspector import Ring
from midstream.hosts.inspector_routes import Writer

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Fan:
    """A sink that hands every record to several."""

    def __init__(self, *sinks: Sink) -> None:
        self._writes = tuple(sink.write for sink in sinks)

    def write(self, record: Record) -> None:
        for write in self._writes:
            write(record)


async def start(
    engine: Engine,
    config: Config,
    *,
    ring: Ring | None = None,
    health: Mapping[str, Health] | None = None,
    store: Store | None = None,
    on_write: Writer | None = None,
) -> Gateway:
    """Start a gateway in the running loop; its owner closes it. Raises ConfigError.

    `ring` is a sink of the engine, which the inspector shows; `health` is what `/readyz` names;
    `store` keeps conversations, and is closed with the gateway; `on_write` is what
    `POST /capture/write` calls, and returns how many records it wrote.
    """
    gateway = Gateway(engine, config, ring or Ring(), health or {}, store, on_write)
    try:
        await gateway.listen()
    except BaseException:
        await gateway.close()
        raise
    return gateway


def serve(
    config: Config, *, observe: bool = False, load: Callable[[], Config] | None = None
) -> int:
    """Serve until a signal comes, and return the exit code. Raises ConfigError.

    `load` reads the configuration anew when SIGHUP comes.
    """
    counts, ring = Counts(), Ring()
    recorder = recorder_of(config.capture, "run", counts)
    sinks: tuple[Sink, ...] = (ring,) if recorder is None else (ring, recorder)
    store, secret = keeping.opened(config)
    engine = wiring.engine(config, counts=counts, sink=Fan(*sinks), observe=observe, secret=secret)
    if recorder is None:
        return uvloop.run(_serve(engine, config, ring, None, store, load))
    recorder.start()
    try:
        return uvloop.run(_serve(engine, config, ring, recorder, store, load))
    finally:
        recorder.stop()


async def _serve(
    engine: Engine,
    config: Config,
    ring: Ring,
    recorder: Recorder | None,
    store: Store | None,
    load: Callable[[], Config] | None,
) -> int:
    health: dict[str, Health] = {} if recorder is None else {"capture": recorder}
    on_write = None if recorder is None else recorder.write_ring
    gateway = await start(engine, config, ring=ring, health=health, store=store, on_write=on_write)
    try:
        stop = _stop_on_signals()
        if load is not None:
            _reload_on_signal(Reload(gateway, engine, load))
        write_on_signal(recorder)
        sys.stderr.write(f"{_listening(config, gateway)}\n")
        sys.stderr.flush()
        await stop.wait()
        await gateway.drain()
    finally:
        await gateway.close()
    return 0


def _stop_on_signals() -> asyncio.Event:
    """Return an event that the first signal sets; the second ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    return stop


def _reload_on_signal(reload: Reload) -> None:
    def on_signal() -> None:
        with contextlib.suppress(ConfigError):  # it is in the log
            reload()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_signal)


def _listening(config: Config, gateway: Gateway) -> str:
    scheme = "https" if config.tls.cert else "http"
    listen = Address(parse_address(config.listen).host, gateway.port)
    admin = Address(parse_address(config.admin).host, gateway.admin_port)
    upstreams = ", ".join(dict.fromkeys(route.upstream for route in config.routes))
    return f"midstream listening on {scheme}://{listen} -> {upstreams}, admin http://{admin}"
