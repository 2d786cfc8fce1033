"""strands' A2AAgent, as an agent of strands uses another one.

python -m tests.peers.a2a.clients.strands_client LABEL URL SCENARIO,SCENARIO
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found"

import httpx
from a2a.client import A2ACardResolver
from strands.agent.a2a_agent import A2AAgent
from tests.peers.a2a.clients.report import noted, row, run
from tests.peers.a2a.clients.sdk03_client import READ_SECONDS, here


async def play(base: str, scenario: str) -> None:
    async with httpx.AsyncClient(timeout=READ_SECONDS, verify=False) as http:
        card = await A2ACardResolver(http, base).get_agent_card()
    agent = A2AAgent(base, timeout=int(READ_SECONDS))
    agent._agent_card = here(card, base)
    text = ""
    with noted() as errors:
        result = await agent.invoke_async(scenario)
        text = "".join(block.get("text", "") for block in result.message["content"])
    row(scenario, "result", {"": text}, error=" ".join(errors))


if __name__ == "__main__":
    run(play)
