"""An agent on agno's AgentOS with its A2A interface, and a scripted model.

python -m tests.peers.a2a.servers.agno_server --port PORT
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found, misc, no-any-return"

from collections.abc import AsyncIterator, Iterator
from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.os import AgentOS
from agno.os.interfaces.a2a import A2A
from tests.peers.a2a.servers.scripts import chunks, written
from tests.peers.a2a.servers.serve import arguments, serve


def asked(messages: list[Message]) -> str:
    return str([message.content for message in messages if message.role == "user"][-1])


class Scripted(Model):
    def invoke(self, messages: list[Message], **kwargs: Any) -> ModelResponse:
        return ModelResponse(role="assistant", content="".join(chunks(asked(messages))))

    async def ainvoke(self, messages: list[Message], **kwargs: Any) -> ModelResponse:
        return self.invoke(messages)

    def invoke_stream(self, messages: list[Message], **kwargs: Any) -> Iterator[ModelResponse]:
        for chunk in chunks(asked(messages)):
            yield ModelResponse(role="assistant", content=chunk)

    async def ainvoke_stream(
        self, messages: list[Message], **kwargs: Any
    ) -> AsyncIterator[ModelResponse]:
        async for chunk in written(asked(messages)):
            yield ModelResponse(role="assistant", content=chunk)

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        raise NotImplementedError


if __name__ == "__main__":
    options = arguments()
    scripted = Agent(id="scripted", name="scripted", model=Scripted(id="scripted"), telemetry=False)
    system = AgentOS(agents=[scripted], interfaces=[A2A(agents=[scripted])], telemetry=False)
    serve(system.get_app(), options.port)
