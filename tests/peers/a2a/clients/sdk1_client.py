"""The client of a2a-sdk 1.x: its raw events, and its own text helper.

python -m tests.peers.a2a.clients.sdk1_client LABEL URL SCENARIO,SCENARIO
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found"

from collections.abc import AsyncGenerator, Iterable
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers import get_stream_response_text
from a2a.types import a2a_pb2 as pb
from tests.peers.a2a.clients import views
from tests.peers.a2a.clients.report import card_row, noted, row, rows_of, run, same_place
from tests.peers.a2a.scenarios import FAST, SCENARIOS

READ_SECONDS = 20.0
BINDINGS = ["JSONRPC", "HTTP+JSON"]
DROP_AFTER_UPDATES = 2


def text_of(parts: Iterable[pb.Part]) -> str:
    return "".join(part.text for part in parts)


def state_of(status: pb.TaskStatus) -> str:
    return views.state_word(pb.TaskState.Name(status.state))


def task_event(task: pb.Task) -> views.Task:
    artifacts = {found.artifact_id: text_of(found.parts) for found in task.artifacts}
    return views.Task(state_of(task.status), artifacts, text_of(task.status.message.parts))


def neutral(found: pb.StreamResponse) -> views.Event:
    match found.WhichOneof("payload"):
        case "artifact_update":
            update = found.artifact_update
            name, text = update.artifact.artifact_id, text_of(update.artifact.parts)
            return views.Update(name, text, update.append)
        case "status_update":
            status = found.status_update.status
            return views.Status(state_of(status), text_of(status.message.parts))
        case "task":
            return task_event(found.task)
    return views.Status("completed", text_of(found.message.parts))


class Seen:
    """What came of one scenario so far."""

    def __init__(self) -> None:
        self.events: list[views.Event] = []
        self.helper = ""
        self.task_id = ""
        self.error = ""
        self.updates = 0

    async def follow(
        self, stream: AsyncGenerator[pb.StreamResponse], most_updates: int = 0
    ) -> None:
        """Read to the end, or to the given number of artifact updates."""
        with noted() as errors:
            async for found in stream:
                self.add(found)
                if most_updates and self.updates >= most_updates:
                    break
        self.error = " ".join(errors)
        await stream.aclose()

    def add(self, found: pb.StreamResponse) -> None:
        self.events.append(neutral(found))
        self.helper += get_stream_response_text(found, "")
        self.updates += found.HasField("artifact_update")
        for name in ("artifact_update", "status_update"):
            if found.HasField(name):
                self.task_id = getattr(found, name).task_id
        if found.HasField("task"):
            self.task_id = found.task.id


async def card_of(base: str, http: httpx.AsyncClient) -> pb.AgentCard:
    return await A2ACardResolver(http, base).get_agent_card()


def here(card: pb.AgentCard, base: str) -> pb.AgentCard:
    """The card as if it led to where it was fetched from, so that no request goes past a proxy."""
    for interface in card.supported_interfaces:
        if not same_place(interface.url, base):
            _scheme, _, rest = interface.url.partition("://")
            path = rest.partition("/")[2]
            interface.url = "/".join([*base.split("/")[:3], path])
    return card


def request(text: str) -> pb.SendMessageRequest:
    part = pb.Part(text=text)
    message = pb.Message(role=pb.ROLE_USER, message_id=str(uuid4()), parts=[part])
    return pb.SendMessageRequest(message=message)


async def play(base: str, scenario: str) -> None:
    async with httpx.AsyncClient(timeout=READ_SECONDS, verify=False) as http:
        card = here(await card_of(base, http), base)
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=BINDINGS)
        client = ClientFactory(config).create(card)
        await stream(client, scenario)
        if scenario not in SCENARIOS or SCENARIOS[scenario].kind not in ("cut", "lost"):
            config.streaming = False
            await unary(ClientFactory(config).create(card), scenario)


async def stream(client: Client, scenario: str) -> None:
    seen = Seen()
    lost = scenario in SCENARIOS and SCENARIOS[scenario].kind == "lost"
    sending = client.send_message(request(scenario))
    await seen.follow(sending, DROP_AFTER_UPDATES if lost else 0)
    if lost:
        await seen.follow(client.subscribe(pb.SubscribeToTaskRequest(id=seen.task_id)))
        rows_of(scenario, seen.events, seen.error, "app")
    else:
        rows_of(scenario, seen.events, seen.error, "app", "appender")
        row(scenario, "helper", {"": seen.helper}, error=seen.error)
    if seen.task_id and not (scenario in SCENARIOS and SCENARIOS[scenario].kind == "cut"):
        await stored(client, scenario, seen.task_id)


async def stored(client: Client, scenario: str, task_id: str) -> None:
    task = views.Task("")
    with noted() as errors:
        task = task_event(await client.get_task(pb.GetTaskRequest(id=task_id)))
    row(scenario, "stored", task.artifacts, task.text, " ".join(errors))


async def unary(client: Client, scenario: str) -> None:
    shown = views.App()
    with noted() as errors:
        async for found in client.send_message(request(scenario + FAST)):
            shown.feed(neutral(found))
    row(scenario, "unary", shown.lanes, shown.message, " ".join(errors))


async def first(base: str) -> None:
    async with httpx.AsyncClient(timeout=READ_SECONDS, verify=False) as http:
        card = await card_of(base, http)
        card_row(card.supported_interfaces[0].url, base)


if __name__ == "__main__":
    run(play, first)
