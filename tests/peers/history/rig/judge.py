"""What reached the provider, against what the normal loop sends it directly: one word.

bytes    the same bytes at the same address, but for the eight letters in the provider's ids
             that name the conversation
value    the same JSON, written differently
order    the same, but for the form in which a client quotes a message of the provider: as a
         reference, with its id, or as its bare text
differs  otherwise
"""

import json
from collections.abc import Sequence
from typing import Any

from tests.peers.history.provider.responses import Item, messages_said
from tests.peers.history.provider.server import Got
from tests.peers.history.provider.turns import TURNS, Place
from tests.peers.history.rig.modes import Mode

WORDS = ("bytes", "value", "order", "differs")


PLAIN_TOKEN = "0" * 8
"""What stands in ids once the conversation's own token is taken out."""


def verdict(mode: Mode, wanted: Sequence[Got], got: Sequence[Got]) -> tuple[str, list[str]]:
    """Return the worst word of all requests, and what differs, a line for each request."""
    if not len(got) == len(wanted) == len(TURNS):
        return "differs", [f"{len(got)} requests, expected {len(wanted)} and {len(TURNS)}"]
    words, lines = ["bytes"], []
    for number, (due, came) in enumerate(zip(wanted, got, strict=True), 1):
        word = _word(mode, due, came)
        words.append(word)
        if word != "bytes":
            lines.append(f"request {number}: {word}: {outline(came)}; expected {outline(due)}")
    return max(words, key=WORDS.index), lines


def _word(mode: Mode, due: Got, came: Got) -> str:
    if (due.target, due.content_type) != (came.target, came.content_type):
        return "differs"
    if due.body == came.body:
        return "bytes"
    wanted, found = json.loads(due.body), json.loads(came.body)
    if wanted == found:
        return "value"
    return "order" if _written_out(mode, wanted) == _written_out(mode, found) else "differs"


def _written_out(mode: Mode, body: dict[str, Any]) -> dict[str, Any]:
    """Put each message of the provider in one form: no id, its text as a string."""
    said = {}
    for number, turn in enumerate(TURNS, 1):
        said.update(messages_said(Place(PLAIN_TOKEN, number), turn, mode))
    items = [said.get(_reference(item), item) for item in body.get("input", ())]
    return {**body, "input": [_plain(item) for item in items]}


def _reference(item: Item) -> str:
    return str(item.get("id")) if item.get("type") == "item_reference" else ""


def _plain(item: Item) -> Item:
    if item.get("role") != "assistant":
        return item
    rest = {name: value for name, value in item.items() if name not in ("id", "content")}
    content = item["content"]
    if isinstance(content, list):
        content = "".join(block["text"] for block in content)
    return {**rest, "content": content}


def outline(got: Got) -> str:
    """The history of a request in letters: User, Thought, Said, Call, Output, Reference."""
    body = json.loads(got.body)
    return " ".join(_letters(item) for item in body.get("input", body.get("messages", [])))


LETTERS = {
    "reasoning": "T",
    "thinking": "T",
    "message": "S",
    "text": "S",
    "output_text": "S",
    "function_call": "C",
    "tool_use": "C",
    "function_call_output": "O",
    "tool_result": "O",
    "item_reference": "R",
}


def _letters(item: dict[str, Any]) -> str:
    """Blocks of one message stand together: `SCC` is a message of a text and two calls."""
    kind, role, content = item.get("type", ""), item.get("role"), item.get("content")
    if kind in LETTERS:
        return LETTERS[kind]
    if role == "tool":
        return "O"
    calls = "C" * len(item.get("tool_calls", ()))
    if isinstance(content, list):
        letters = "".join(LETTERS.get(block["type"], "?") for block in content)
        return letters if role == "assistant" or "O" in letters else "U"
    return "U" if role == "user" else ("S" if content else "") + calls
