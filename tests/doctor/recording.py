"""Records the faults of the demo as captures, through a gateway on loopback."""

import asyncio
from pathlib import Path

from aiohttp import web

from midstream import wiring
from midstream.adapters.capture_format import HEADER, StoredRecord, encode, segment_name
from midstream.config import load
from midstream.core.ports import Record
from midstream.demo.fault import Fault
from midstream.hosts import gateway

EPOCH_NS = 1_800_000_000_000_000_000
PLAY_SECONDS = 30


class Tape:
    """A sink that keeps records as a capture holds them; monotonic time stands for wall time."""

    def __init__(self) -> None:
        self.records: list[StoredRecord] = []

    def write(self, record: Record) -> None:
        self.records.append(StoredRecord.of(record, EPOCH_NS + record.mono_ns, "default"))


def write_capture(directory: Path, name: str, records: list[StoredRecord]) -> Path:
    """Write records as one segment, and return its path."""
    path = directory / segment_name(name, 1)
    path.write_bytes(HEADER + b"".join(encode(record) for record in records))
    return path


async def record(fault: Fault, directory: Path, *, observe: bool = False) -> Path:
    """Play one fault of the demo through a gateway, and return the capture of it."""
    tape, scene = Tape(), fault.scene()
    runner = web.AppRunner(scene.app(), shutdown_timeout=1)
    await runner.setup()
    try:
        async with asyncio.timeout(PLAY_SECONDS):
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            upstream = f"http://127.0.0.1:{runner.addresses[0][1]}"
            flags = {"upstream": upstream, "listen": "127.0.0.1:0", "admin": "127.0.0.1:0"}
            config = load(flags=flags, environ={})
            engine = wiring.engine(config, sink=tape, observe=observe)
            proxy = await gateway.start(engine, config)
            try:
                await scene.play(f"http://127.0.0.1:{proxy.port}")
            finally:
                await proxy.close()
    finally:
        await runner.cleanup()
    return write_capture(directory, fault.addon, tape.records)
