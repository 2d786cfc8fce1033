"""A gateway in a process of its own that tells about itself: one line out for each line in.

Started with the URL of an upstream, and the folder of a capture or nothing. Says its port, then
after each line on stdin its resident memory and how many tasks it has; at the end of stdin it
closes and says so once more.
"""

import asyncio
import json
import sys

import psutil
import uvloop

from midstream import wiring
from midstream.adapters.capture_recorder import recorder as recorder_of
from midstream.config.schema import CaptureTable, Config, RouteTable
from midstream.core import metrics
from midstream.core.metrics import Counts
from midstream.hosts.gateway import Fan, start
from midstream.hosts.inspector import Ring


def tell(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


async def main(url: str, folder: str = "") -> None:
    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    route = RouteTable(upstream=url)
    config = Config(listen="127.0.0.1:0", admin="127.0.0.1:0", routes=(route,))
    ring, counts = Ring(), Counts()
    recorder = recorder_of(CaptureTable(dir=folder), "run", counts)
    sink = ring if recorder is None else Fan(ring, recorder)
    if recorder is not None:
        recorder.start()
    engine = wiring.engine(config, counts=counts, sink=sink)
    gateway = await start(engine, config, ring=ring)
    tell(port=gateway.port)
    process = psutil.Process()
    while await stdin.readline():
        tell(
            rss=process.memory_info().rss,
            tasks=len(asyncio.all_tasks()),
            streams=len(gateway.streams.open),
            connections=len(process.net_connections()),
            conversations=len(engine.conversations),
            captured=int(counts.get(metrics.CAPTURE_RECORDS, ("frame",))),
            dropped=int(sum(value for _, value in counts.samples(metrics.CAPTURE_DROPPED))),
        )
    await gateway.close()
    if recorder is not None:
        recorder.stop()
    pipe.close()
    tell(tasks=len(asyncio.all_tasks()))


uvloop.run(main(*sys.argv[1:]))
