"""The gateway as a process: a reverse proxy for HTTP/1.1, event streams and WebSockets.

It serves until SIGTERM or SIGINT, drains, and exits; a second signal exits at once.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import uvloop

from midstream import wiring
from midstream.adapters.capture_writer import Recorder
from midstream.config.schema import Config
from midstream.config.values import Address, parse_address
from midstream.core.engine import Engine
from midstream.core.metrics import Counts
from midstream.core.ports import Record, Sink, Store
from midstream.hosts import keeping
from midstream.hosts.gateway_service import Gateway, Health
from midstream.hosts.inspector import Ring

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Fan:
    """A sink that hands every record to several."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def write(self, record: Record) -> None:
        for sink in self._sinks:
            sink.write(record)


async def start(
    engine: Engine,
    config: Config,
    *,
    ring: Ring | None = None,
    health: Mapping[str, Health] | None = None,
    store: Store | None = None,
) -> Gateway:
    """Start a gateway in the running loop; its owner closes it. Raises ConfigError.

    `ring` is a sink of the engine, which the inspector shows; `health` is what `/readyz` names;
    `store` keeps conversations, and is closed with the gateway.
    """
    gateway = Gateway(engine, config, ring or Ring(), health or {}, store)
    try:
        await gateway.listen()
    except BaseException:
        await gateway.close()
        raise
    return gateway


def serve(config: Config, *, observe: bool = False) -> int:
    """Serve until a signal comes, and return the exit code. Raises ConfigError."""
    counts, ring = Counts(), Ring()
    recorder = _recorder(config, counts)
    sinks: tuple[Sink, ...] = (ring,) if recorder is None else (ring, recorder)
    store, secret = keeping.opened(config)
    engine = wiring.engine(config, counts=counts, sink=Fan(*sinks), observe=observe, secret=secret)
    if recorder is None:
        return uvloop.run(_serve(engine, config, ring, {}, store))
    recorder.start()
    try:
        return uvloop.run(_serve(engine, config, ring, {"capture": recorder}, store))
    finally:
        recorder.stop()


async def _serve(
    engine: Engine,
    config: Config,
    ring: Ring,
    health: Mapping[str, Health],
    store: Store | None,
) -> int:
    gateway = await start(engine, config, ring=ring, health=health, store=store)
    try:
        stop = _stop_on_signals()
        sys.stderr.write(f"{_listening(config, gateway)}\n")
        sys.stderr.flush()
        await stop.wait()
        await gateway.drain()
    finally:
        await gateway.close()
    return 0


def _recorder(config: Config, counts: Counts) -> Recorder | None:
    if not config.capture.dir:
        return None
    return Recorder(Path(config.capture.dir), "gateway", counts, redact=config.capture.redact)


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


def _listening(config: Config, gateway: Gateway) -> str:
    scheme = "https" if config.tls.cert else "http"
    listen = Address(parse_address(config.listen).host, gateway.port)
    admin = Address(parse_address(config.admin).host, gateway.admin_port)
    upstreams = ", ".join(dict.fromkeys(route.upstream for route in config.routes))
    return f"midstream listening on {scheme}://{listen} -> {upstreams}, admin http://{admin}"
