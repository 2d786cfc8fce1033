"""Agents on a2a-sdk 1.x: one scripted executor behind four wire formats.

python -m tests.peers.a2a.servers.sdk1_server --port PORT
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found, misc, no-any-return"

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import a2a_pb2 as pb
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount
from tests.peers.a2a.scenarios import Art, Final, Status, Step
from tests.peers.a2a.servers.play import play
from tests.peers.a2a.servers.serve import arguments, serve

# the wire format of each path: binding and protocol version
AGENTS = {
    "rpc1": ("JSONRPC", "1.0"),
    "rest1": ("HTTP+JSON", "1.0"),
    "compat03": ("JSONRPC", "0.3"),
    "rest03": ("HTTP+JSON", "0.3"),
}


def state(name: str) -> int:
    return pb.TaskState.Value("TASK_STATE_" + name.upper().replace("-", "_"))


class Events:
    """The steps of a scenario as events of one task."""

    def __init__(self, context: RequestContext) -> None:
        self.ids = {"task_id": context.task_id, "context_id": context.context_id}

    def message(self, texts: tuple[str, ...], message_id: str) -> pb.Message:
        parts = [pb.Part(text=text) for text in texts]
        return pb.Message(role=pb.ROLE_AGENT, message_id=message_id, parts=parts, **self.ids)

    def event(self, step: Step) -> object:
        match step:
            case Art(text, append, last, artifact_id):
                artifact = pb.Artifact(artifact_id=artifact_id, parts=[pb.Part(text=text)])
                return pb.TaskArtifactUpdateEvent(
                    artifact=artifact, append=bool(append), last_chunk=bool(last), **self.ids
                )
            case Status(name, texts, message_id):
                status = pb.TaskStatus(state=state(name))
                if texts:
                    status.message.CopyFrom(self.message(texts, message_id))
                return pb.TaskStatusUpdateEvent(status=status, **self.ids)
            case Final(artifacts, history):
                return pb.Task(
                    id=self.ids["task_id"],
                    context_id=self.ids["context_id"],
                    status=pb.TaskStatus(state=state("completed")),
                    artifacts=[
                        pb.Artifact(artifact_id=name, parts=[pb.Part(text=text)])
                        for name, text in artifacts
                    ],
                    history=[self.message((text,), "m-history") for text in history],
                )
        raise ValueError(f"a step of {type(step)}")


class Scripted(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        events = Events(context)
        submitted = pb.TaskStatus(state=state("submitted"))
        await event_queue.enqueue_event(
            pb.Task(id=context.task_id, context_id=context.context_id, status=submitted)
        )
        await event_queue.enqueue_event(events.event(Status("working")))
        async for step in play(context.get_user_input()):
            await event_queue.enqueue_event(events.event(step))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def agent(url: str, binding: str, version: str) -> list[BaseRoute]:
    if binding == "JSONRPC":
        url += "/"  # its route; without the slash it would be a redirect
    card = pb.AgentCard(
        name="scripted",
        description="plays scenarios",
        version="1.0.0",
        supported_interfaces=[
            pb.AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
        ],
        capabilities=pb.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[pb.AgentSkill(id="play", name="play", description="play", tags=["test"])],
    )
    handler = DefaultRequestHandler(Scripted(), InMemoryTaskStore(), card)
    compat = version == "0.3"
    if binding == "JSONRPC":
        routes = create_jsonrpc_routes(handler, "/", enable_v0_3_compat=compat)
    else:
        routes = create_rest_routes(handler, enable_v0_3_compat=compat)
    # the card first: the REST routes end in one that takes every path for a tenant's
    return [*create_agent_card_routes(card), *routes]


def app(base: str) -> Starlette:
    mounts = [
        Mount(f"/{path}", routes=agent(f"{base}/{path}", *wire)) for path, wire in AGENTS.items()
    ]
    return Starlette(routes=mounts)


if __name__ == "__main__":
    options = arguments()
    serve(app(options.base), options.port)
