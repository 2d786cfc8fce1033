"""The agent under test for A2A 0.3: the steps of `steps.py` on a2a-sdk 0.3.

    python -m tests.peers.a2a.tck.sut03 PORT PUBLIC_URL

JSON-RPC is at `/`, HTTP+JSON at `/rest`. PUBLIC_URL is what the agent card says.
"""

# the SDK is in an environment of its own
# mypy: disable-error-code="import-not-found"

import asyncio
import base64
import json
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    Part,
    TaskNotCancelableError,
    TaskState,
    TextPart,
)
from a2a.utils import new_agent_text_message, new_task
from a2a.utils.errors import ServerError
from starlette.applications import Starlette
from starlette.routing import Mount
from tests.peers.a2a.tck.steps import SLOWLY, Artifact, Reply, Status, Wait, steps_for

ENDED = (TaskState.completed, TaskState.canceled, TaskState.failed, TaskState.rejected)


def part(artifact: Artifact) -> Part:
    """Return the one part of an artifact."""
    file = {"name": "output.txt", "mime_type": "text/plain"}
    match artifact.kind:
        case "text":
            return Part(root=TextPart(text=artifact.content))
        case "raw":
            coded = base64.b64encode(artifact.content.encode()).decode()
            return Part(root=FilePart(file=FileWithBytes(bytes=coded, **file)))
        case "url":
            return Part(root=FilePart(file=FileWithUri(uri=artifact.content, **file)))
        case "data":
            return Part(root=DataPart(data=json.loads(artifact.content)))


class Scripted(AgentExecutor):  # type: ignore[misc]  # of a class that mypy does not know
    """Plays the steps that the message asks for."""

    def __init__(self) -> None:
        self.running: set[str] = set()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Play them into the queue, until the task is cancelled."""
        steps = steps_for(context.message.message_id, SLOWLY)
        if isinstance(steps[0], Reply):
            reply = new_agent_text_message(steps[0].text, context.context_id)
            await event_queue.enqueue_event(reply)
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        if task.status.state in ENDED:
            return
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        self.running.add(task.id)
        for step in steps:
            if task.id in self.running:
                await self.play(step, updater)
        self.running.discard(task.id)

    async def play(self, step: object, updater: TaskUpdater) -> None:
        """Play one step."""
        match step:
            case Status(name, text):
                said = updater.new_agent_message([part(Artifact(text))]) if text else None
                # an interrupted task is not final for 0.3, but the stream ends there
                final = TaskState(name) in (*ENDED, TaskState.input_required)
                await updater.update_status(TaskState(name), said, final=final)
            case Artifact(append=append, last=last):
                await updater.add_artifact([part(step)], "a1", append=append, last_chunk=last)
            case Wait(seconds):
                await asyncio.sleep(seconds)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task, where it has not ended yet."""
        task = context.current_task
        if task is None or task.status.state in ENDED:
            raise ServerError(TaskNotCancelableError())
        self.running.discard(task.id)
        await TaskUpdater(event_queue, task.id, task.context_id).cancel()


def application(public_url: str) -> Starlette:
    """Return the server."""
    interfaces = {"JSONRPC": f"{public_url}/", "HTTP+JSON": f"{public_url}/rest"}
    card = AgentCard(
        name="Scripted agent",
        description="Plays scripts.",
        version="1",
        url=interfaces["JSONRPC"],
        preferred_transport="JSONRPC",
        additional_interfaces=[
            AgentInterface(url=url, transport=transport) for transport, url in interfaces.items()
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text", "file", "data"],
        default_output_modes=["text"],
        skills=[AgentSkill(id="script", name="Script", description="A script.", tags=["test"])],
    )
    # configurations of notifications are kept, and nothing is sent: this SDK would send anywhere
    handler = DefaultRequestHandler(
        Scripted(), InMemoryTaskStore(), push_config_store=InMemoryPushNotificationConfigStore()
    )
    rest = A2ARESTFastAPIApplication(card, handler).build()
    app = A2AStarletteApplication(card, handler).build()
    app.routes.append(Mount("/rest", rest))
    return app


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]))
