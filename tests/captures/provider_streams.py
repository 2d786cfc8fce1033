"""What the scripted provider of the history recordings streamed, and what its client sent inverted.

Three turns: [reasoning,] a text and a call of Read, the same again, a last text. The ids follow the
rule of the recordings (`msg_00N_i`, `call_00N_i`, `toolu_00N_i`; N the turn, i the output index).
"""

import json
from collections.abc import Iterator
from typing import Any

TEXTS = ("I will read package.json first.", "Now the README.", "Both files are read.")
FILES = ("package.json", "README.md")

type Fields = dict[str, Any]


def response(path: str, turn: int, reasons: bool) -> bytes:
    """Return the stream of one turn, as the API of that path frames it."""
    if path.endswith("/responses"):
        return b"".join(_event(e, e["type"]) for e in _responses(turn, reasons))
    if path.endswith("/messages"):
        return b"".join(_event(e, e["type"]) for e in _messages(turn, reasons))
    return b"".join(_event(e) for e in _chat(turn)) + b"data: [DONE]\n\n"


def invert(body: Fields) -> Fields:
    """Move the text of each assistant turn behind the tool results of that turn."""
    key = "input" if "input" in body else "messages"
    moved: list[Fields] = []
    waiting: list[Fields] = []
    for item in body[key]:
        kept, text = _split(item)
        moved += kept
        waiting += text
        if _is_result(item):
            moved += waiting
            waiting = []
    return {**body, key: moved + waiting}


def _split(item: Fields) -> tuple[list[Fields], list[Fields]]:
    """Return an item without its text, and its text as an item of its own."""
    if item.get("type") == "item_reference":
        return ([], [item]) if item["id"].startswith("msg_") else ([item], [])
    if item.get("role") != "assistant":
        return [item], []
    content = item["content"]
    if isinstance(content, str):
        kept = [{**item, "content": None}] if "tool_calls" in item else []
        return kept, [{key: value for key, value in item.items() if key != "tool_calls"}]
    texts = [block for block in content if block["type"] == "text"]
    others = [block for block in content if block["type"] != "text"]
    return [{**item, "content": others}], [{**item, "content": texts}]


def _is_result(item: Fields) -> bool:
    if item.get("type") == "function_call_output" or item.get("role") == "tool":
        return True
    content = item.get("content")
    return isinstance(content, list) and any(b.get("type") == "tool_result" for b in content)


def _event(data: Fields, name: str = "") -> bytes:
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _arguments(turn: int) -> str | None:
    return json.dumps({"path": FILES[turn - 1]}, separators=(",", ":")) if turn < 3 else None


def _responses(turn: int, reasons: bool) -> Iterator[Fields]:
    head = {"id": f"resp_{turn:03d}", "object": "response", "model": "gpt-5.5"}
    yield {"type": "response.created", "response": {**head, "status": "in_progress"}}
    text = {"type": "output_text", "text": TEXTS[turn - 1], "annotations": []}
    items: list[Fields] = []
    if reasons:
        items.append({"id": f"rs_{turn:03d}_0", "type": "reasoning", "summary": []})
    phase = "commentary" if turn < 3 else "final_answer"
    message = {"type": "message", "role": "assistant", "phase": phase, "content": [text]}
    items.append({"id": f"msg_{turn:03d}_{len(items)}", **message})
    if arguments := _arguments(turn):
        ids = f"{turn:03d}_{len(items)}"
        call = {"type": "function_call", "name": "Read", "arguments": arguments}
        items.append({"id": f"fc_{ids}", "call_id": f"call_{ids}", **call})
    for index, item in enumerate(items):
        at = {"output_index": index}
        empty: Fields = {"content": []} if "content" in item else {}
        yield {"type": "response.output_item.added", **at, "item": {**item, **empty}}
        if item["type"] == "message":
            delta = {"item_id": item["id"], "content_index": 0, "delta": text["text"]}
            yield {"type": "response.output_text.delta", **at, **delta}
        yield {"type": "response.output_item.done", **at, "item": item}
    done = {**head, "status": "completed", "output": items}
    yield {"type": "response.completed", "response": done}


def _chat(turn: int) -> Iterator[Fields]:
    head = {"id": f"chatcmpl_{turn:03d}", "object": "chat.completion.chunk", "model": "gpt-4.1"}
    deltas: list[Fields] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in TEXTS[turn - 1].split()[:-1]]
    deltas.append({"content": TEXTS[turn - 1].split()[-1]})
    if arguments := _arguments(turn):
        call = {"id": f"call_{turn:03d}_1", "type": "function"}
        function = {"name": "Read", "arguments": arguments}
        deltas.append({"tool_calls": [{"index": 0, **call, "function": function}]})
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "tool_calls" if turn < 3 else "stop"
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def _messages(turn: int, reasons: bool) -> Iterator[Fields]:
    message = {"id": f"msg_{turn:03d}", "type": "message", "role": "assistant", "content": []}
    yield {"type": "message_start", "message": {**message, "model": "claude-sonnet-4-5"}}
    blocks: list[tuple[Fields, list[Fields]]] = []
    if reasons:
        signature = {"type": "signature_delta", "signature": f"sig-{turn}-0"}
        thought = {"type": "thinking_delta", "thinking": "think"}
        blocks.append(({"type": "thinking", "thinking": ""}, [thought, signature]))
    blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": TEXTS[turn - 1]}]))
    if arguments := _arguments(turn):
        call = {"type": "tool_use", "id": f"toolu_{turn:03d}_{len(blocks)}", "name": "Read"}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        blocks.append(({**call, "input": {}}, [delta]))
    for index, (block, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if turn < 3 else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}}
    yield {"type": "message_stop"}
