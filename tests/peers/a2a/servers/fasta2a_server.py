"""An agent on fasta2a with its pydantic-ai bridge, and a scripted model.

python -m tests.peers.a2a.servers.fasta2a_server --port PORT
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found, misc, no-any-return"

from collections.abc import AsyncIterator

from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.peers.a2a.servers.scripts import chunks, written
from tests.peers.a2a.servers.serve import arguments, serve


def asked(messages: list[ModelMessage]) -> str:
    content = messages[-1].parts[-1].content
    return content if isinstance(content, str) else content[-1]


def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("".join(chunks(asked(messages))))])


async def stream(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
    async for chunk in written(asked(messages)):
        yield chunk


if __name__ == "__main__":
    options = arguments()
    scripted = Agent(FunctionModel(answer, stream_function=stream))
    serve(agent_to_a2a(scripted, name="scripted", url=f"{options.base}/"), options.port)
