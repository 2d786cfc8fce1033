"""google-adk's RemoteA2aAgent under a Runner: what its session keeps.

python -m tests.peers.a2a.clients.adk_client LABEL URL SCENARIO,SCENARIO
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found"

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types as genai
from tests.peers.a2a.clients.report import noted, row, run
from tests.peers.a2a.clients.sdk1_client import READ_SECONDS, here


async def play(base: str, scenario: str) -> None:
    async with httpx.AsyncClient(timeout=READ_SECONDS) as http:
        card = here(await A2ACardResolver(http, base).get_agent_card(), base)
        factory = ClientFactory(ClientConfig(httpx_client=http, streaming=True))
        for view, use_legacy in (("session", True), ("newsession", False)):
            agent = RemoteA2aAgent(
                "remote", card, a2a_client_factory=factory, use_legacy=use_legacy
            )
            await one_turn(agent, scenario, view)


async def one_turn(agent: RemoteA2aAgent, scenario: str, view: str) -> None:
    runner = InMemoryRunner(agent=agent, app_name="peers")
    session = await runner.session_service.create_session(app_name="peers", user_id="noor")
    asked = genai.Content(role="user", parts=[genai.Part(text=scenario)])
    kept = ""
    with noted() as errors:
        async for event in runner.run_async(
            user_id="noor",
            session_id=session.id,
            new_message=asked,
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        ):
            if event.error_message:
                errors.append(event.error_message)
            if event.partial or not event.content:
                continue
            parts = event.content.parts or []
            kept += "".join(part.text or "" for part in parts if not part.thought)
    row(scenario, view, {"": kept}, error=" ".join(errors))


if __name__ == "__main__":
    run(play)
