"""The agent under test for A2A 1.0: the steps of `steps.py` on a2a-sdk 1.x.

    python -m tests.peers.a2a.tck.sut10 PORT PUBLIC_URL

JSON-RPC is at `/`, HTTP+JSON at `/rest`. PUBLIC_URL is what the agent card says.
"""

# the SDK is in an environment of its own
# mypy: disable-error-code="import-not-found"

import asyncio
import json
import sys
from urllib.parse import urlsplit

import httpx
import uvicorn
from a2a.helpers import new_raw_part, new_task_from_user_message, new_text_message, new_url_part
from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState
from starlette.applications import Starlette
from tests.peers.a2a.tck.steps import Artifact, Reply, Status, Wait, steps_for

FILE = {"filename": "output.txt", "media_type": "text/plain"}


def part(artifact: Artifact) -> Part:
    """Return the one part of an artifact."""
    match artifact.kind:
        case "text":
            return new_text_part(artifact.content)
        case "raw":
            return new_raw_part(artifact.content.encode(), **FILE)
        case "url":
            return new_url_part(artifact.content, **FILE)
        case "data":
            return new_data_part(json.loads(artifact.content))


def state(name: str) -> TaskState:
    """Return the state of this 0.3 name."""
    return TaskState.Value("TASK_STATE_" + name.upper().replace("-", "_"))


class Scripted(AgentExecutor):  # type: ignore[misc]  # of a class that mypy does not know
    """Plays the steps that the message asks for."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Play them into the queue."""
        task = context.current_task
        # a message that goes on with a task need not name its context
        context_id = task.context_id if task else context.context_id
        updater = TaskUpdater(event_queue, context.task_id, context_id)
        steps = steps_for(context.message.message_id)
        if task is None and not isinstance(steps[0], Reply):
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        for step in steps:
            match step:
                case Reply(text):
                    reply = new_text_message(text, context_id=context_id)
                    await event_queue.enqueue_event(reply)
                case Status(name, text):
                    said = updater.new_agent_message([new_text_part(text)]) if text else None
                    await updater.update_status(state(name), said)
                case Artifact(append=append, last=last):
                    await updater.add_artifact([part(step)], "a1", append=append, last_chunk=last)
                case Wait(seconds):
                    await asyncio.sleep(seconds)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def on_this_machine(url: str) -> bool:
    """Tell whether a notification may go there: the kit also names hosts out in the world."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1")


def application(public_url: str) -> Starlette:
    """Return the server."""
    card = AgentCard(
        name="Scripted agent",
        description="Plays scripts.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=public_url, protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(
                url=f"{public_url}/rest", protocol_binding="HTTP+JSON", protocol_version="1.0"
            ),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="script", name="Script", description="A script.", tags=["test"])],
    )
    configs = InMemoryPushNotificationConfigStore()
    sender = BasePushNotificationSender(
        httpx.AsyncClient(), configs, push_url_validator=on_this_machine
    )
    handler = DefaultRequestHandler(
        Scripted(),
        InMemoryTaskStore(),
        agent_card=card,
        push_config_store=configs,
        push_sender=sender,
    )
    return Starlette(
        routes=[
            *create_agent_card_routes(card, cache_control="max-age=60"),
            *create_jsonrpc_routes(handler, "/"),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
    )


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]))
