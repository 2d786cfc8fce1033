"""Agents on a2a-sdk 0.3: one scripted executor behind JSON-RPC and HTTP+JSON.

python -m tests.peers.a2a.servers.sdk03_server --port PORT
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found, misc, no-any-return"

from a2a import types as a2a
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from starlette.applications import Starlette
from starlette.routing import Mount
from tests.peers.a2a.scenarios import Art, Final, Status, Step
from tests.peers.a2a.servers.play import play
from tests.peers.a2a.servers.serve import arguments, serve

AGENTS = {"rpc03": "JSONRPC", "restown03": "HTTP+JSON"}
ENDS = ("completed", "input-required")


def parts(*texts: str) -> list[a2a.Part]:
    return [a2a.Part(root=a2a.TextPart(text=text)) for text in texts]


class Events:
    """The steps of a scenario as events of one task."""

    def __init__(self, context: RequestContext) -> None:
        self.ids = {"task_id": context.task_id, "context_id": context.context_id}

    def message(self, texts: tuple[str, ...], message_id: str) -> a2a.Message:
        return a2a.Message(
            role=a2a.Role.agent, message_id=message_id, parts=parts(*texts), **self.ids
        )

    def event(self, step: Step) -> object:
        match step:
            case Art(text, append, last, artifact_id):
                artifact = a2a.Artifact(artifact_id=artifact_id, parts=parts(text))
                return a2a.TaskArtifactUpdateEvent(
                    artifact=artifact, append=append, last_chunk=last, **self.ids
                )
            case Status(name, texts, message_id):
                said = self.message(texts, message_id) if texts else None
                status = a2a.TaskStatus(state=a2a.TaskState(name), message=said)
                return a2a.TaskStatusUpdateEvent(status=status, final=name in ENDS, **self.ids)
            case Final(artifacts, history):
                return a2a.Task(
                    id=self.ids["task_id"],
                    context_id=self.ids["context_id"],
                    status=a2a.TaskStatus(state=a2a.TaskState.completed),
                    artifacts=[
                        a2a.Artifact(artifact_id=name, parts=parts(text))
                        for name, text in artifacts
                    ],
                    history=[self.message((text,), "m-history") for text in history],
                )
        raise ValueError(f"a step of {type(step)}")


class Scripted(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        events = Events(context)
        submitted = a2a.TaskStatus(state=a2a.TaskState.submitted)
        await event_queue.enqueue_event(
            a2a.Task(id=context.task_id, context_id=context.context_id, status=submitted)
        )
        await event_queue.enqueue_event(events.event(Status("working")))
        async for step in play(context.get_user_input()):
            await event_queue.enqueue_event(events.event(step))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def agent(url: str, binding: str) -> object:
    if binding == "JSONRPC":
        url += "/"  # its route; without the slash it would be a redirect
    card = a2a.AgentCard(
        name="scripted",
        description="plays scenarios",
        version="1.0.0",
        url=url,
        preferred_transport=binding,
        capabilities=a2a.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[a2a.AgentSkill(id="play", name="play", description="play", tags=["test"])],
    )
    handler = DefaultRequestHandler(Scripted(), InMemoryTaskStore())
    kind = A2AStarletteApplication if binding == "JSONRPC" else A2ARESTFastAPIApplication
    return kind(card, handler).build()


def app(base: str) -> Starlette:
    return Starlette(
        routes=[
            Mount(f"/{path}", app=agent(f"{base}/{path}", binding))
            for path, binding in AGENTS.items()
        ]
    )


if __name__ == "__main__":
    options = arguments()
    serve(app(options.base), options.port)
