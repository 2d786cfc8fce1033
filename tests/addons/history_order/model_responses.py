"""Speaks the Responses API for the model: streams, bodies, and what the API refuses."""

import json
import random
from itertools import zip_longest

from tests.addons.history_order.model import (
    CALL,
    HOSTED,
    RESULT,
    SYSTEM,
    TEXT,
    THINKING,
    USER,
    Fields,
    Said,
    Style,
    Token,
    form,
    names,
    pieces,
)

HEAD = b'{"model":"m","metadata":{"input":"[]"},"stream":true,"input":'
TAIL = b',"tools":[{"type":"function","name":"Read"}]}'
REFERRED = {TEXT, THINKING, HOSTED}


class Responses:
    api = "openai-responses"
    path = "/v1/responses"
    fuses = False

    def events(self, said: list[Said], style: Style, rnd: random.Random) -> list[bytes]:
        name = f"resp_{said[0].name}"
        runs = [self._item_events(one, index, style, rnd) for index, one in enumerate(said)]
        if style.interleaves:
            middle = [e for row in zip_longest(*reversed(runs)) for e in row if e is not None]
        else:
            middle = [event for run in runs for event in run]
        first = {"type": "response.created", "response": {"id": name, "status": "in_progress"}}
        last = {"type": "response.completed", "response": {"id": name, "status": "completed"}}
        return [json.dumps(event).encode() for event in (first, *middle, last)]

    def whole(self, said: list[Said], style: Style) -> bytes:
        for one in said:
            one.ids = [one.name]
        outputs = [_output(one, one.ids[0]) for one in said]
        name = f"resp_{said[0].name}"
        return style.written({"id": name, "status": "completed", "output": outputs})

    def body(self, said: list[Said], style: Style) -> bytes:
        return HEAD + style.array([self._item(one, style) for one in said]) + TAIL

    def tokens(self, body: bytes) -> list[Token]:
        return [
            Token(index, _kind(item), item.get("call_id", ""), form(item))
            for index, item in enumerate(json.loads(body)["input"])
        ]

    def spread(self, said: list[Said]) -> list[Said]:
        return said

    def faults(self, tokens: list[Token]) -> set[tuple[str, str]]:
        found = set()
        calls = {t.call: i for i, t in reversed(list(enumerate(tokens))) if t.kind == CALL}
        results = {t.call: i for i, t in enumerate(tokens) if t.kind == RESULT}
        for call in calls.keys() | results.keys():
            start, end = calls.get(call, len(tokens)), results.get(call, -1)
            if start > end:
                found.add(("unpaired", call))
            if any(t.kind in (TEXT, THINKING, USER, SYSTEM) for t in tokens[start:end]):
                found.add(("torn apart", call))
        for token, after in zip_longest(tokens, tokens[1:]):
            if token.kind == THINKING and (after is None or after.kind in (USER, SYSTEM, RESULT)):
                found.add(("nothing follows", token.form))
        return found

    def _item_events(self, one: Said, index: int, style: Style, rnd: random.Random) -> list[Fields]:
        texts = pieces(one.word, rnd) if one.kind == TEXT else []
        ids = names(one, style, rnd, len(texts) + 2)
        at = {"output_index": index}
        kind = "response.output_text.delta"
        done = _output(one, ids[-1])
        draft = {key: value for key, value in done.items() if key not in ("content", "arguments")}
        draft.pop("encrypted_content", None)
        return [
            {"type": "response.output_item.added", **at, "item": {**draft, "id": ids[0]}},
            *(
                {"type": kind, **at, "item_id": name, "content_index": 0, "delta": text}
                for name, text in zip(ids[1:-1], texts, strict=True)
            ),
            {"type": "response.output_item.done", **at, "item": done},
        ]

    def _item(self, one: Said, style: Style) -> bytes:
        if not one.item:
            one.item = style.written(_quoted(one, style))
        return one.item


def _output(one: Said, name: str) -> Fields:
    """Return an item as the provider says it."""
    if one.kind == TEXT:
        content = [{"type": "output_text", "text": one.word, "annotations": []}]
        return {"type": "message", "role": "assistant", "id": name, "content": content}
    if one.kind == THINKING:
        secret = f"sealed {one.word}"
        return {"type": "reasoning", "id": name, "summary": [], "encrypted_content": secret}
    if one.kind == HOSTED:
        return {"type": "web_search_call", "id": name, "status": "completed"}
    call = {"type": "function_call", "id": name, "call_id": one.word}
    return {**call, "name": "Read", "arguments": '{"at":1.50}'}


def _quoted(one: Said, style: Style) -> Fields:
    """Return an item as the client sends it back."""
    if one.kind == USER:
        return {"role": "user", "content": [{"type": "input_text", "text": one.word}]}
    if one.kind == SYSTEM:
        return {"role": "developer", "content": one.word}
    if one.kind == RESULT:
        return {"type": "function_call_output", "call_id": one.word, "output": f"of {one.word}"}
    name = one.ids[one.order % len(one.ids)] if one.ids else ""
    if one.ids and style.ids == "reference" and one.kind in REFERRED:
        return {"type": "item_reference", "id": name}
    item = _output(one, name)
    if one.kind == TEXT and style.ids != "kept":
        item = {"role": "assistant", "content": one.word, "phase": "commentary"}
    elif one.kind in (THINKING, CALL) and style.ids == "none":
        del item["id"]
    return item


def _kind(item: Fields) -> str:
    kind = item.get("type", "message")
    if kind == "message":
        return {"assistant": TEXT, "user": USER}.get(item["role"], SYSTEM)
    if kind == "item_reference":
        return str(item["id"]).partition("_")[0]
    kinds = {"reasoning": THINKING, "function_call": CALL, "function_call_output": RESULT}
    return kinds.get(kind, HOSTED)
