"""The client of a2a-sdk 0.3: what its own task manager holds, and its raw events.

python -m tests.peers.a2a.clients.sdk03_client LABEL URL SCENARIO,SCENARIO
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found"

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any
from uuid import uuid4

import httpx
from a2a import types as a2a
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from tests.peers.a2a.clients import views
from tests.peers.a2a.clients.report import card_row, noted, row, rows_of, run, said, same_place
from tests.peers.a2a.scenarios import FAST, SCENARIOS

READ_SECONDS = 20.0
BINDINGS = ["JSONRPC", "HTTP+JSON"]
DROP_AFTER_UPDATES = 2


def text_of(parts: Iterable[a2a.Part]) -> str:
    return "".join(part.root.text for part in parts if isinstance(part.root, a2a.TextPart))


def message_text(message: a2a.Message | None) -> str:
    return text_of(message.parts) if message else ""


def task_event(task: a2a.Task) -> views.Task:
    artifacts = {found.artifact_id: text_of(found.parts) for found in task.artifacts or []}
    return views.Task(task.status.state.value, artifacts, message_text(task.status.message))


def neutral(found: object) -> views.Event:
    match found:
        case a2a.TaskArtifactUpdateEvent():
            text = text_of(found.artifact.parts)
            return views.Update(found.artifact.artifact_id, text, bool(found.append))
        case a2a.TaskStatusUpdateEvent():
            return views.Status(found.status.state.value, message_text(found.status.message))
        case a2a.Task():
            return task_event(found)
        case a2a.Message():
            return views.Status("completed", message_text(found))
    raise ValueError(f"an event of {type(found)}")


class Seen:
    """What came of one scenario so far."""

    def __init__(self) -> None:
        self.events: list[views.Event] = []
        self.task: a2a.Task | None = None
        self.message = ""
        self.error = ""
        self.wire_error = ""
        """What the transport raised: an application without the task manager would see this one."""
        self.updates = 0

    def tap(self, client: Client, method: str) -> None:
        """Note the events before the client's own task manager sees them."""
        real = getattr(client._transport, method)

        async def tapped(*args: object, **kwargs: object) -> AsyncIterator[object]:
            try:
                async for found in real(*args, **kwargs):
                    self.events.append(neutral(found))
                    yield found
            except Exception as error:
                self.wire_error = said(error)
                raise

        setattr(client._transport, method, tapped)

    async def follow(self, stream: AsyncGenerator[Any], most_updates: int = 0) -> None:
        """Read to the end, or to the given number of artifact updates."""
        with noted() as errors:
            async for found in stream:
                if isinstance(found, a2a.Message):
                    self.message = message_text(found)
                    continue
                self.task, update = found
                self.updates += isinstance(update, a2a.TaskArtifactUpdateEvent)
                if most_updates and self.updates >= most_updates:
                    break
        self.error = " ".join(errors)
        await stream.aclose()

    def manager_row(self, scenario: str) -> None:
        task = task_event(self.task) if self.task else views.Task("")
        row(scenario, "manager", task.artifacts, self.message, self.error)


async def card_of(base: str, http: httpx.AsyncClient) -> a2a.AgentCard:
    return await A2ACardResolver(http, base).get_agent_card()


def here(card: a2a.AgentCard, base: str) -> a2a.AgentCard:
    """The card as if it led to where it was fetched from, so that no request goes past a proxy."""
    for found in [card, *(card.additional_interfaces or [])]:
        if not same_place(found.url, base):
            path = found.url.partition("://")[2].partition("/")[2]
            found.url = "/".join([*base.split("/")[:3], path])
    return card


def request(text: str) -> a2a.Message:
    part = a2a.Part(root=a2a.TextPart(text=text))
    return a2a.Message(role=a2a.Role.user, message_id=str(uuid4()), parts=[part])


async def play(base: str, scenario: str) -> None:
    async with httpx.AsyncClient(timeout=READ_SECONDS, verify=False) as http:
        card = here(await card_of(base, http), base)
        config = ClientConfig(httpx_client=http, supported_transports=BINDINGS)
        await stream(ClientFactory(config).create(card), scenario)
        if scenario not in SCENARIOS or SCENARIOS[scenario].kind not in ("cut", "lost"):
            config.streaming = False
            await unary(ClientFactory(config).create(card), scenario)


async def stream(client: Client, scenario: str) -> None:
    seen = Seen()
    seen.tap(client, "send_message_streaming")
    seen.tap(client, "resubscribe")
    lost = scenario in SCENARIOS and SCENARIOS[scenario].kind == "lost"
    sending = client.send_message(request(scenario))
    await seen.follow(sending, DROP_AFTER_UPDATES if lost else 0)
    task_id = seen.task.id if seen.task else ""
    if lost:
        await seen.follow(client.resubscribe(a2a.TaskIdParams(id=task_id)))
        rows_of(scenario, seen.events, seen.wire_error, "app")
    else:
        rows_of(scenario, seen.events, seen.wire_error, "app", "appender")
    seen.manager_row(scenario)
    if task_id and not (scenario in SCENARIOS and SCENARIOS[scenario].kind == "cut"):
        await stored(client, scenario, task_id)


async def stored(client: Client, scenario: str, task_id: str) -> None:
    task = views.Task("")
    with noted() as errors:
        task = task_event(await client.get_task(a2a.TaskQueryParams(id=task_id)))
    row(scenario, "stored", task.artifacts, task.text, " ".join(errors))


async def unary(client: Client, scenario: str) -> None:
    shown = views.App()
    with noted() as errors:
        async for found in client.send_message(request(scenario + FAST)):
            shown.feed(neutral(found[0] if isinstance(found, tuple) else found))
    row(scenario, "unary", shown.lanes, shown.message, " ".join(errors))


async def first(base: str) -> None:
    async with httpx.AsyncClient(timeout=READ_SECONDS, verify=False) as http:
        card = await card_of(base, http)
        card_row(card.url, base)


if __name__ == "__main__":
    run(play, first)
