"""Agents on google-adk with a scripted model: both executors, the model streaming and not.

python -m tests.peers.a2a.servers.adk_server --port PORT
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found, misc, no-any-return"

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from a2a.server.agent_execution import RequestContext
from google.adk.a2a.converters.request_converter import convert_a2a_request_to_agent_run_request
from google.adk.a2a.executor.a2a_agent_executor import A2aAgentExecutor
from google.adk.a2a.executor.config import A2aAgentExecutorConfig
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import StreamingMode
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types as genai
from starlette.applications import Starlette
from tests.peers.a2a.servers.scripts import written
from tests.peers.a2a.servers.serve import arguments, serve

# of each path: the executor, and how the model is called
AGENTS = {
    "legacy-sse": (False, StreamingMode.SSE),
    "legacy-none": (False, StreamingMode.NONE),
    "new-sse": (True, StreamingMode.SSE),
    "new-none": (True, StreamingMode.NONE),
}


def response(text: str, *, partial: bool) -> LlmResponse:
    content = genai.Content(role="model", parts=[genai.Part(text=text)])
    return LlmResponse(content=content, partial=partial)


class Scripted(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        asked = [part.text for part in llm_request.contents[-1].parts if part.text]
        whole = ""
        async for chunk in written(asked[-1]):
            whole += chunk
            if stream:
                yield response(chunk, partial=True)
        # as the real models do: the whole text once more, no longer partial
        yield response(whole, partial=False)


def agent(path: str, port: int, is_new: bool, mode: StreamingMode) -> Starlette:
    def with_mode(request: RequestContext, *args: Any) -> Any:
        found = convert_a2a_request_to_agent_run_request(request, *args)
        found.run_config.streaming_mode = mode
        return found

    return to_a2a(
        LlmAgent(name="scripted", description="plays scripts", model=Scripted(model="scripted")),
        host="127.0.0.1",
        port=port,
        rpc_path=path,
        agent_executor_factory=lambda runner: A2aAgentExecutor(
            runner=runner,
            config=A2aAgentExecutorConfig(request_converter=with_mode),
            force_new_version=is_new,
        ),
    )


class ByPath:
    """One application for all of them: `to_a2a` serves its path itself, and needs its lifespan."""

    def __init__(self, apps: dict[str, Starlette]) -> None:
        self.apps = apps
        self.outer = Starlette(lifespan=self.lifespan)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for app in self.apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "").split("/")
        app = self.apps.get(path[1] if len(path) > 1 else "", self.outer)
        await app(scope, receive, send)


if __name__ == "__main__":
    options = arguments()
    apps = {path: agent(path, options.port, *how) for path, how in AGENTS.items()}
    serve(ByPath(apps), options.port)
