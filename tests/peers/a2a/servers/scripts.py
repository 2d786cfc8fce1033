"""What a scripted model writes: the chunks of the script that the last user message names."""

import asyncio
from collections.abc import AsyncIterator

from tests.peers.a2a.scenarios import FAST, SCRIPTS, STEP_MS


def chunks(text: str) -> tuple[str, ...]:
    return SCRIPTS[text.strip().removesuffix(FAST)]


async def written(text: str) -> AsyncIterator[str]:
    step_s = 0 if text.strip().endswith(FAST) else STEP_MS / 1000
    for chunk in chunks(text):
        await asyncio.sleep(step_s)
        yield chunk
