"""Agents on strands-agents: default and compliant streaming, with a scripted model.

python -m tests.peers.a2a.servers.strands_server --port PORT
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found, misc, no-any-return"

from collections.abc import AsyncIterable
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount
from strands import Agent
from strands.models import Model
from strands.multiagent.a2a import A2AServer
from tests.peers.a2a.servers.scripts import written
from tests.peers.a2a.servers.serve import arguments, serve

AGENTS = {"default": False, "compliant": True}


class Scripted(Model):
    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {"model_id": "scripted"}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterable[Any]:
        asked = [block["text"] for block in messages[-1]["content"] if "text" in block]
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        async for chunk in written(asked[-1]):
            yield {"contentBlockDelta": {"delta": {"text": chunk}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def agent(url: str, is_compliant: bool) -> Starlette:
    def scripted(_context_id: str) -> Agent:
        return Agent(
            name="scripted", description="plays scripts", model=Scripted(), callback_handler=None
        )

    server = A2AServer(
        agent_factory=scripted,
        http_url=url,
        serve_at_root=True,
        enable_a2a_compliant_streaming=is_compliant,
    )
    return server.to_starlette_app()


if __name__ == "__main__":
    options = arguments()
    mounts = [
        Mount(f"/{path}", app=agent(f"{options.base}/{path}", is_compliant))
        for path, is_compliant in AGENTS.items()
    ]
    serve(Starlette(routes=mounts), options.port)
