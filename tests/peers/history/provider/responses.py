"""The event stream of the OpenAI Responses API.

Source: the API reference, "Streaming events" of Responses; the order and the fields are those that
`openai` 3.57 and `@ai-sdk/openai` 4.0 read. Item ids that change in every event: the fixture
github-copilot-id-rotation of vercel/ai.
"""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.peers.history.provider.turns import Place, Turn, pieces
from tests.peers.history.rig.modes import Mode

type Item = dict[str, Any]
type Event = dict[str, Any]

CREATED = 1_780_000_000
MODEL = "gpt-5.5"


def events(place: Place, turn: Turn, mode: Mode) -> Iterator[Event]:
    """Yield the events of one answer."""
    for sequence, event in enumerate(_Answer(place, mode).events(turn)):
        yield {**event, "sequence_number": sequence}


def messages_said(place: Place, turn: Turn, mode: Mode) -> dict[str, Item]:
    """Return every id that an answer gave its message, and the message written out."""
    said = {}
    written = {"role": "assistant", "content": turn.text, "phase": turn.phase}
    for event in events(place, turn, mode):
        named = [event.get("item_id", ""), event.get("item", {}).get("id", "")]
        named += [item["id"] for item in event.get("response", {}).get("output", ())]
        said.update({name: written for name in named if name.startswith("msg_")})
    return said


class _Answer:
    def __init__(self, place: Place, mode: Mode) -> None:
        self.place = place
        self.mode = mode
        self.turns_of_ids = count(1)

    def events(self, turn: Turn) -> Iterator[Event]:
        yield {"type": "response.created", "response": self.response("in_progress", [])}
        yield {"type": "response.in_progress", "response": self.response("in_progress", [])}
        index = 0
        if self.mode.reasoning:
            yield from self.reasoning(index, turn)
            index += 1
        yield from self.message(index, turn)
        for path in turn.calls:
            index += 1
            yield from self.call(index, path)
        yield {
            "type": "response.completed",
            "response": self.response("completed", self.items(turn)),
        }

    def reasoning(self, index: int, turn: Turn) -> Iterator[Event]:
        at = {"output_index": index, "summary_index": 0}
        yield self.item("added", index, self.reasoning_item(index, ""))
        part = {"type": "summary_text", "text": ""}
        yield self.on("reasoning_summary_part.added", "rs", at, part=part)
        for piece in pieces(turn.thought):
            yield self.on("reasoning_summary_text.delta", "rs", at, delta=piece)
        yield self.on("reasoning_summary_text.done", "rs", at, text=turn.thought)
        part = {"type": "summary_text", "text": turn.thought}
        yield self.on("reasoning_summary_part.done", "rs", at, part=part)
        yield self.item("done", index, self.reasoning_item(index, turn.thought))

    def message(self, index: int, turn: Turn) -> Iterator[Event]:
        at = {"output_index": index, "content_index": 0}
        yield self.item("added", index, self.message_item(index, turn, done=False))
        yield self.on("content_part.added", "msg", at, part=_text(""))
        for piece in pieces(turn.text):
            yield self.on("output_text.delta", "msg", at, delta=piece, logprobs=[])
        yield self.on("output_text.done", "msg", at, text=turn.text, logprobs=[])
        yield self.on("content_part.done", "msg", at, part=_text(turn.text))
        yield self.item("done", index, self.message_item(index, turn, done=True))

    def call(self, index: int, path: str) -> Iterator[Event]:
        at = {"output_index": index}
        item = self.call_item(index, path)
        arguments = item["arguments"]
        yield self.item("added", index, {**item, "arguments": "", "status": "in_progress"})
        for piece in pieces(arguments):
            yield self.on("function_call_arguments.delta", "fc", at, delta=piece)
        yield self.on(
            "function_call_arguments.done", "fc", at, name=item["name"], arguments=arguments
        )
        yield self.item("done", index, self.call_item(index, path))

    def items(self, turn: Turn) -> list[Item]:
        made = [self.reasoning_item(0, turn.thought)] if self.mode.reasoning else []
        made.append(self.message_item(len(made), turn, done=True))
        for path in turn.calls:
            made.append(self.call_item(len(made), path))
        return made

    def reasoning_item(self, index: int, thought: str) -> Item:
        summary = [{"type": "summary_text", "text": thought}] if thought else []
        item: Item = {"id": self.id("rs", index), "type": "reasoning", "summary": summary}
        if not self.mode.store:
            item["encrypted_content"] = self.place.id("gAAAAABo", index) if thought else ""
        return item

    def message_item(self, index: int, turn: Turn, *, done: bool) -> Item:
        return {
            "id": self.id("msg", index),
            "type": "message",
            "status": "completed" if done else "in_progress",
            "role": "assistant",
            "content": [_text(turn.text)] if done else [],
            "phase": turn.phase,
        }

    def call_item(self, index: int, path: str) -> Item:
        return {
            "id": self.id("fc", index),
            "type": "function_call",
            "status": "completed",
            "call_id": self.place.id("call", index),
            "name": "Read",
            "arguments": json.dumps({"path": path}),
        }

    def item(self, what: str, index: int, item: Item) -> Event:
        return {"type": f"response.output_item.{what}", "output_index": index, "item": item}

    def on(self, name: str, kind: str, at: Event, /, **more: object) -> Event:
        return {
            "type": f"response.{name}",
            "item_id": self.id(kind, at["output_index"]),
            **at,
            **more,
        }

    def id(self, kind: str, index: int) -> str:
        fixed = self.place.id(kind, index)
        return f"{fixed}_{next(self.turns_of_ids)}" if self.mode.rotating else fixed

    def response(self, status: str, output: list[Item]) -> Item:
        return {
            "id": self.place.id("resp", 0),
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": MODEL,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "store": self.mode.store,
            "usage": _usage() if status == "completed" else None,
        }


def _text(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage() -> Item:
    return {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
