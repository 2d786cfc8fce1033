"""Play every conversation: the provider, midstream on both hosts before it, all clients."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.peers.history.provider.server import Provider, Talk
from tests.peers.history.rig.install import command_of
from tests.peers.history.rig.judge import verdict
from tests.peers.history.rig.midstream import Door, midstream
from tests.peers.history.rig.modes import MODES, VIAS, Cell
from tests.peers.history.rig.places import REPOSITORY, WORK, tail

CLIENT_SECONDS = 240.0
CLIENTS_AT_ONCE = 2
BODIES = WORK / "bodies"

type Held = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """What came of one conversation."""

    cell: Cell
    word: str
    """Of `judge.verdict`: what the provider got, against the normal loop without a proxy."""
    lines: list[str]
    held: Held
    """What the client had in the end: `texts`, `paths` it was asked to read, `error`."""


@dataclass
class Found:
    rows: dict[Cell, Row] = field(default_factory=dict)
    counted: dict[str, dict[str, float]] = field(default_factory=dict)
    """What midstream counted, by host."""
    seconds: float = 0.0


async def play(cells: Sequence[Cell]) -> Found:
    """Play these conversations; the normal ones without a proxy must be among them.

    Raises: RuntimeError if midstream does not come up, or a client ends badly or too late.
    """
    began = time.monotonic()
    shutil.rmtree(BODIES, ignore_errors=True)
    found = Found()
    provider = Provider()
    for cell in cells:
        provider.talks[cell.key] = Talk(MODES[cell.mode], cell.token, BODIES / cell.key)
    async with doors(provider) as opened:
        clients = asyncio.Semaphore(CLIENTS_AT_ONCE)

        async def one_client(client: str) -> dict[str, Held]:
            jobs = [cell.job(opened[cell.via].base) for cell in cells if cell.client == client]
            async with clients:
                return await held_by(command_of(client), jobs, WORK / f"{client}.log")

        async with asyncio.TaskGroup() as group:
            names = {cell.client for cell in cells}
            running = [group.create_task(one_client(name)) for name in sorted(names)]
        held = {key: row for task in running for key, row in task.result().items()}
        for via in VIAS[1:]:
            found.counted[via] = await opened[via].counted()
    for cell in cells:
        found.rows[cell] = judged(cell, provider, held)
    found.seconds = time.monotonic() - began
    return found


@asynccontextmanager
async def doors(provider: Provider) -> AsyncIterator[dict[str, Door]]:
    """Every way to the provider."""
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(provider.serving())
        opened = {"direct": Door(base, "")}
        for via in VIAS[1:]:
            opened[via] = await stack.enter_async_context(midstream(via, base))
        yield opened


async def held_by(
    command: Sequence[str | Path], jobs: list[dict[str, object]], log: Path
) -> dict[str, Held]:
    """Run a client program on these jobs; what it complained of is in `log`.

    Raises: RuntimeError if it takes too long, or fails.
    """
    with log.open("wb") as complaints:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=REPOSITORY,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
        )
        try:
            printed, _ = await asyncio.wait_for(
                process.communicate(json.dumps(jobs).encode()), CLIENT_SECONDS
            )
        except BaseException as error:
            if process.returncode is None:
                process.kill()
                await process.wait()
            if isinstance(error, TimeoutError):
                raise RuntimeError(f"{log.stem} took over {CLIENT_SECONDS} s") from error
            raise
    if process.returncode:
        raise RuntimeError(f"{log.stem} ended with {process.returncode}\n{tail(log)}")
    return {row["key"]: row for row in map(json.loads, printed.splitlines())}


def judged(cell: Cell, provider: Provider, held: dict[str, Held]) -> Row:
    normal = Cell(cell.client, cell.mode, "plain", "direct")
    wanted, got = (
        [came.without(each.token) for came in provider.talks[each.key].got]
        for each in (normal, cell)
    )
    word, lines = verdict(MODES[cell.mode], wanted, got)
    return Row(cell, word, lines, held[cell.key])
