"""How long a client waits for the first word of an answer, directly and through each host.

    uv run python -m tests.peers.history.bench

Prints the best and the median of the last requests of each size in milliseconds, and for the best
how often the direct one it is. A conversation grows by one answer a request; the ways take turns,
so that a busy machine slows all of them. It is no test: a shared machine decides the numbers.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from itertools import batched
from statistics import median
from typing import Any

import aiohttp
from tests.peers.history.provider.responses import events
from tests.peers.history.provider.server import HEADER, Provider, Talk
from tests.peers.history.provider.turns import TURNS, Place
from tests.peers.history.rig.judge import PLAIN_TOKEN
from tests.peers.history.rig.modes import MODES, ORDERS, VIAS
from tests.peers.history.rig.play import doors

MODE = MODES["nostore-reasoning"]
ANSWERS = 150
ROWS = 3
LAST = 15
RESULT = "x" * 2_000
FIRST_WORD = b"response.output_text.delta"
REQUEST_SECONDS = 30

type Item = dict[str, Any]


def requests(order: str) -> Iterator[bytes]:
    """Yield the bodies of one conversation, each with one answer more."""
    said: list[Item] = []
    for number in range(1, ANSWERS + 1):
        texts = [item for item in said if item["type"] == "message"]
        rest = [item for item in said if item["type"] != "message"]
        history = said if order == "plain" else [*rest, *texts]
        asked = {"role": "user", "content": "Read all files."}
        body = {"model": "gpt-5.5", "store": False, "stream": True, "input": [asked, *history]}
        yield json.dumps(body).encode()
        *_, completed = events(Place(PLAIN_TOKEN, number), TURNS[0], MODE)
        said += completed["response"]["output"]
        result = {"type": "function_call_output", "call_id": said[-1]["call_id"], "output": RESULT}
        said.append(result)


async def first_word_ms(session: aiohttp.ClientSession, base: str, key: str, body: bytes) -> float:
    """Return the wait in milliseconds, and read the answer to its end."""
    headers = {"authorization": f"Bearer {key}", HEADER: key, "content-type": "application/json"}
    began = time.perf_counter()
    heard = 0.0
    async with session.post(f"{base}/v1/responses", data=body, headers=headers) as answer:
        answer.raise_for_status()
        async for line in answer.content:
            if not heard and FIRST_WORD in line:
                heard = time.perf_counter() - began
    return heard * 1_000


async def main() -> None:
    provider = Provider()
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    async with doors(provider) as opened, aiohttp.ClientSession(timeout=timeout) as session:
        print(f"{'history':9}{'KiB':>4}{'direct':>13}{'gateway':>23}{'mitm':>23}")
        for order in ORDERS:
            keys = {via: f"bench.{order}.{via}" for via in VIAS}
            provider.talks.update({key: Talk(MODE, PLAIN_TOKEN) for key in keys.values()})
            for bodies in batched(requests(order), ANSWERS // ROWS, strict=True):
                waits: dict[str, list[float]] = {via: [] for via in VIAS}
                for body in bodies:
                    for via, key in keys.items():
                        waits[via].append(await first_word_ms(session, opened[via].base, key, body))
                print(line(order, len(bodies[-1]), waits))


def line(order: str, size: int, waits: dict[str, list[float]]) -> str:
    last = {via: waits[via][-LAST:] for via in VIAS}
    direct = min(last["direct"])
    told = f"{order:9}{size // 1024:4}{direct:6.1f}/{median(last['direct']):6.1f}"
    for via in VIAS[1:]:
        best, middle = min(last[via]), median(last[via])
        told += f"{best:8.1f}/{middle:6.1f} x{best / direct:5.1f}"
    return told


if __name__ == "__main__":
    asyncio.run(main())
