"""What the properties share: chats to begin with, pages that come back, and what a page shows."""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from tests.addons.replay_overlap.clients import Chunk, Message, Page
from tests.addons.replay_overlap.documents import clone
from tests.addons.replay_overlap.streams import Piece, built
from tests.addons.replay_overlap.world import World, folded

CASES = int(os.environ.get("MIDSTREAM_CASES", "0"))
"""How many cases a property is tried with, at random; CI tries 2,000. 0: 500, always the same."""

EVERY_MS = 5
CALL = "call_client"
OUTPUT = {"city": "Oslo"}
USER: Message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "where?"}]}

type Shown = list[tuple[str, list[dict[str, Any]]]]


def many(share: float = 1.0) -> Callable[..., Any]:
    """Return the settings of a property; `share` of the cases, where it is tried in several."""
    return settings(
        max_examples=max(1, int((CASES or 500) * share)),
        deadline=None,
        database=None,
        derandomize=not CASES,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def asked(before: list[Piece]) -> list[Message]:
    """Return the messages of a chat whose assistant has asked the page for a tool."""
    ask = {"type": "tool-input-available", "toolCallId": CALL, "toolName": "place", "input": {}}
    parts = folded([], [{"type": "start-step"}, *built(before, "b"), ask])
    return [USER, {"id": "A", "role": "assistant", "parts": parts}]


def answered(messages: list[Message]) -> list[dict[str, Any]]:
    """Return the parts of that assistant once the tool is answered."""
    parts: list[dict[str, Any]] = clone(messages[-1]["parts"])
    parts[-1].update(state="output-available", output=OUTPUT)
    return parts


def settled(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts without a last step in which nothing came: the AI SDK does not write it."""
    while parts and parts[-1]["type"] == "step-start":
        parts = parts[:-1]
    return [{**part, "text": paired(part["text"])} if "text" in part else part for part in parts]


def paired(text: str) -> str:
    """Return a text in which two halves of one character that met are one, as in JavaScript."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def shown(page: Page) -> Shown:
    """Return id and parts of every assistant message on a page that shows something."""
    assistants = (message for message in page.messages if message["role"] == "assistant")
    found = [(message["id"], settled(message["parts"])) for message in assistants]
    return [message for message in found if message[1]]


def wanted(identifier: str, parts: list[dict[str, Any]]) -> Shown:
    """Return what a page shows of one message."""
    return [(identifier, settled(parts))] if settled(parts) else []


def reopened(world: World, page: Page, state: str) -> tuple[Page, str]:
    """Return the page that comes back, and its `_pk`."""
    if state == "kept":
        return page, "pk"
    if state == "refreshed":
        return page, f"pk{world.now}"
    if state == "hydrated":
        world.hydrate()
    messages = [] if state == "bare" else world.server.messages
    fresh = Page(
        page.kind,
        messages,
        resumes=page.resumes,
        shields=page.shields,
        has_ledger=page.ledger is not None,
    )
    return fresh, f"pk{world.now}"


def emit(world: World, chunks: list[Chunk]) -> None:
    for chunk in chunks:
        world.server.emit(chunk)
        world.run(EVERY_MS)


def continued(world: World, page: Page, first: Chunk, *, has_attached: bool = True) -> int:
    """Open a page, answer its tool, and let the server start the continuation `R`."""
    world.hydrate()
    number = world.connect(page)
    world.run(300)
    page.answer_tool(CALL, OUTPUT)
    world.flush(number)
    world.run(300)
    world.server.start("R", is_continuation=True)
    world.server.emit(first)
    world.run(300 if has_attached else 10)
    return number


def declared(kind: str, is_declared: bool) -> str:
    """Return the client that the product is told of."""
    return {"r4": "r3"}.get(kind, kind) if is_declared else "unknown"
