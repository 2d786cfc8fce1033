"""The chunks of the OpenAI Chat Completions API.

Source: the API reference, "The chat completion chunk object".
"""

import json
from collections.abc import Iterator
from typing import Any

from tests.peers.history.provider.turns import Place, Turn, pieces

type Event = dict[str, Any]

CREATED = 1_780_000_000
MODEL = "gpt-4.1"


def events(place: Place, turn: Turn) -> Iterator[Event]:
    """Yield the chunks of one answer."""
    yield _chunk(place, {"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(turn.text):
        yield _chunk(place, {"content": piece})
    for index, path in enumerate(turn.calls):
        about = {"name": "Read", "arguments": ""}
        begun = {"id": place.id("call", index), "type": "function", "function": about}
        yield _chunk(place, {"tool_calls": [{"index": index, **begun}]})
        for piece in pieces(json.dumps({"path": path})):
            more = {"index": index, "function": {"arguments": piece}}
            yield _chunk(place, {"tool_calls": [more]})
    yield _chunk(place, {}, "tool_calls" if turn.calls else "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield {**_chunk(place, {}), "choices": [], "usage": usage}


def _chunk(place: Place, delta: Event, finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": place.id("chatcmpl", 0),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": MODEL,
        "choices": [choice],
        "usage": None,
    }
