"""A million frames through a gateway with every addon: nothing grows and nothing is left."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.hosts.upstreams import Visit, open_socket, upstream

pytestmark = pytest.mark.soak

SOCKETS = 20
ROUNDS = 10
FRAMES = 5_000
"""Frames for each socket in each round: a million in all, half of them in each direction."""
BATCH = 100
PART = json.dumps({"type": "text-delta", "id": "t", "delta": "the quick brown fox "})
RESPONSE = json.dumps(
    {"type": "cf_agent_use_chat_response", "id": "r", "body": PART, "done": False}
).encode()
MAX_GROWTH = 0.20


class Soaked:
    """The gateway under load, asked about itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def told(self) -> dict[str, int]:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            line = await self.process.stdout.readline()
        facts: dict[str, int] = json.loads(line)
        return facts

    async def ask(self) -> dict[str, int]:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        return await self.told()

    async def settled(self, idle: dict[str, int]) -> dict[str, int]:
        """Ask until nothing but memory is left of the sockets of a round."""
        async with asyncio.timeout(60):
            while True:
                facts = await self.ask()
                if all(facts[name] <= idle[name] for name in ("streams", "connections", "tasks")):
                    return facts
                await asyncio.sleep(0.2)


@asynccontextmanager
async def soaked(url: str, *folder: str) -> AsyncIterator[Soaked]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", Path(__file__).with_name("soak_gateway.py"), url, *folder,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    try:
        yield Soaked(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def talkative(visit: Visit) -> None:
    """Send a batch of frames for each batch received."""
    await visit.accept()
    batch = b"".join(b"\x81\x7e%s%s" % (len(RESPONSE).to_bytes(2), RESPONSE) for _ in range(BATCH))
    for _ in range(FRAMES // 2 // BATCH):
        for _ in range(BATCH):
            await visit.frame()
        await visit.send(batch)
    await visit.send_close(*await visit.close_code())


async def talk(port: int, number: int) -> int:
    """Exchange the frames of one socket and return how many came."""
    client, head = await open_socket(port, f"/agents/chat/soak-{number}?_pk={number}")
    assert head.status == 101
    got = 0
    async with client:
        for _ in range(FRAMES // 2 // BATCH):
            for index in range(BATCH):
                await client.send_text(f'{{"type":"ping","n":{index}}}')
            for _ in range(BATCH):
                await client.text()
                got += 1
        await client.send_close(1000)
        assert await client.close_code() == (1000, "")
    return got


@pytest.mark.parametrize("captures", [False, True], ids=["without", "with a capture"])
async def test_a_million_frames_leave_no_task_and_no_memory_behind(captures: bool, tmp_path: Path):
    folder = [str(tmp_path / "captures")] if captures else []
    async with upstream(talkative) as up, soaked(up.url, *folder) as gateway:
        port = (await gateway.told())["port"]
        idle = await gateway.ask()
        resident: list[int] = []
        for _ in range(ROUNDS):
            async with asyncio.TaskGroup() as group:
                sockets = [group.create_task(talk(port, number)) for number in range(SOCKETS)]
            assert [task.result() for task in sockets] == [FRAMES // 2] * SOCKETS
            resident.append((await gateway.settled(idle))["rss"])
        print("resident bytes after each round:", resident)
        assert resident[-1] < resident[0] * (1 + MAX_GROWTH), resident
        if captures:
            facts = await gateway.ask()
            assert facts["captured"] + facts["dropped"] >= ROUNDS * SOCKETS * FRAMES * 0.99
            assert facts["dropped"] == 0
        assert gateway.process.stdin is not None
        gateway.process.stdin.close()
        assert (await gateway.told())["tasks"] == 1
        async with asyncio.timeout(60):
            assert await gateway.process.wait() == 0
            assert gateway.process.stderr is not None
            assert await gateway.process.stderr.read() == b""
