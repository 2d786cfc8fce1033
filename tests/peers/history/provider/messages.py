"""The events of the Anthropic Messages API.

Source: the API reference, "Streaming Messages".
"""

import json
from collections.abc import Iterator
from typing import Any

from tests.peers.history.provider.turns import Place, Turn, pieces

type Event = dict[str, Any]

MODEL = "claude-sonnet-4-5"


def events(place: Place, turn: Turn, *, thinking: bool) -> Iterator[Event]:
    """Yield the events of one answer."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": place.id("msg", 0), "type": "message", "role": "assistant", "model": MODEL}
    rest: Event = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": {**message, **rest}}
    yield {"type": "ping"}
    index = 0
    if thinking:
        yield from _thinking(index, place, turn)
        index += 1
    yield from _block(
        index,
        {"type": "text", "text": ""},
        [{"type": "text_delta", "text": piece} for piece in pieces(turn.text)],
    )
    for path in turn.calls:
        index += 1
        yield from _block(
            index,
            {"type": "tool_use", "id": place.id("toolu", index), "name": "Read", "input": {}},
            [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in pieces(json.dumps({"path": path}))
            ],
        )
    reason = "tool_use" if turn.calls else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 5},
    }
    yield {"type": "message_stop"}


def _thinking(index: int, place: Place, turn: Turn) -> Iterator[Event]:
    deltas: list[Event] = [
        {"type": "thinking_delta", "thinking": piece} for piece in pieces(turn.thought)
    ]
    deltas.append({"type": "signature_delta", "signature": place.id("c2lnbmF0dXJl", index)})
    yield from _block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)


def _block(index: int, start: Event, deltas: list[Event]) -> Iterator[Event]:
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
