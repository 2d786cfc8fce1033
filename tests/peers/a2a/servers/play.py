"""The steps of the scenario that a request names, in its own time. Standard library only."""

import asyncio
from collections.abc import AsyncIterator

from tests.peers.a2a.scenarios import Pause, Step, asked


async def play(text: str) -> AsyncIterator[Step]:
    scenario, step_s = asked(text)
    for step in scenario.steps:
        if isinstance(step, Pause):
            await asyncio.sleep(step.ms / 1000 if step_s else 0)
            continue
        await asyncio.sleep(step_s)
        yield step
