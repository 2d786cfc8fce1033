"""Speaks the Messages API for the model: streams, bodies, and what the API refuses."""

import json
import random
from typing import Any

from tests.addons.history_order.model import (
    CALL,
    HOSTED,
    RESULT,
    TEXT,
    THINKING,
    USER,
    Fields,
    Said,
    Style,
    Token,
    form,
    pieces,
)

HEAD = b'{"model":"m","max_tokens":9,"messages":'
TAIL = b',"stream":true,"metadata":{"messages":"[]"}}'
KINDS = {
    "text": TEXT, "thinking": THINKING, "tool_use": CALL, "tool_result": RESULT,
}  # fmt: skip


class Anthropic:
    api = "anthropic"
    path = "/v1/messages"
    fuses = False

    def events(self, said: list[Said], style: Style, rnd: random.Random) -> list[bytes]:
        events: list[Fields] = [{"type": "message_start", "message": {"id": "msg", "content": []}}]
        for index, block in enumerate(self.blocks(said)):
            draft, deltas = _drafted(block, rnd)
            start = {"type": "content_block_start", "index": index, "content_block": draft}
            events.append(start)
            events += [
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            ]
            events.append({"type": "content_block_stop", "index": index})
        events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}]
        return [json.dumps(event).encode() for event in (*events, {"type": "message_stop"})]

    def whole(self, said: list[Said], style: Style) -> bytes:
        message = {"type": "message", "role": "assistant", "content": self.blocks(said)}
        return style.written(message)

    def blocks(self, said: list[Said]) -> list[Fields]:
        return [block for one in said for block in _blocks(one)]

    def body(self, said: list[Said], style: Style) -> bytes:
        groups: list[list[Said]] = []
        for one in said:
            if groups and _is_one_message(groups[-1][-1], one, style):
                groups[-1].append(one)
            else:
                groups.append([one])
        return HEAD + style.array([_message(group, style) for group in groups]) + TAIL

    def tokens(self, body: bytes) -> list[Token]:
        return [
            Token(
                index,
                _kind(block, message["role"]),
                block.get("tool_use_id") or block.get("id", ""),
                message["role"] + form(block),
            )
            for index, message in enumerate(json.loads(body)["messages"])
            for block in contents(message)
        ]

    def spread(self, said: list[Said]) -> list[Said]:
        return [one for one in said for _ in _blocks(one)]

    def faults(self, tokens: list[Token]) -> set[tuple[str, str]]:
        """A call is answered in the next message, results come first, and roles take turns."""
        found = set()
        by_message: dict[int, list[Token]] = {}
        for token in tokens:
            by_message.setdefault(token.message, []).append(token)
        rows = list(by_message.values())
        for row, after in zip(rows, [*rows[1:], []], strict=True):
            answers = {t.call for t in after if t.kind == RESULT}
            found |= {("unanswered", t.call) for t in row if t.kind == CALL} - {
                ("unanswered", call) for call in answers
            }
            calls = {t.call for t in row if t.kind == CALL}
            found |= {("orphan", call) for call in answers - calls}
            kinds = [t.kind for t in row]
            if RESULT in kinds and USER in kinds[: kinds.index(RESULT) + 1]:
                found.add(("a result is not first", row[0].form))
        found |= {("orphan", t.call) for t in rows[0] if t.kind == RESULT} if rows else set()
        return found


def contents(message: Fields) -> list[Fields]:
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _is_one_message(before: Said, one: Said, style: Style) -> bool:
    roles = {RESULT: USER, USER: USER}
    if roles.get(before.kind) != roles.get(one.kind):
        return False
    return roles.get(one.kind) == USER or not style.separate or before.answer == one.answer


def _message(group: list[Said], style: Style) -> bytes:
    role = "user" if group[0].kind in (USER, RESULT) else "assistant"
    blocks = [block for one in group for block in _blocks(one)]
    if len(blocks) == 1 and blocks[0]["type"] == "text" and not style.parts:
        return style.written({"role": role, "content": blocks[0]["text"]})
    return style.written({"role": role, "content": blocks})


def _blocks(one: Said) -> list[Fields]:
    if one.kind in (TEXT, USER):
        return [{"type": "text", "text": one.word}]
    if one.kind == THINKING:
        return [{"type": "thinking", "thinking": "hm", "signature": f"signed {one.word}"}]
    if one.kind == CALL:
        return [{"type": "tool_use", "id": one.word, "name": "Read", "input": {"at": 1.5}}]
    if one.kind == RESULT:
        return [{"type": "tool_result", "tool_use_id": one.word, "content": "ok"}]
    search = {"type": "server_tool_use", "id": one.word, "name": "web_search", "input": {}}
    return [search, {"type": "web_search_tool_result", "tool_use_id": one.word, "content": []}]


def _drafted(block: Fields, rnd: random.Random) -> tuple[Fields, list[Fields]]:
    """Return a block as it starts, and the deltas that complete it."""
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": text} for text in pieces(block["text"], rnd)]
        return {"type": "text", "text": ""}, deltas
    if block["type"] == "thinking":
        draft = {"type": "thinking", "thinking": "", "signature": ""}
        said = {"type": "thinking_delta", "thinking": block["thinking"]}
        return draft, [said, {"type": "signature_delta", "signature": block["signature"]}]
    if block["type"] == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": '{"at":1.5}'}]
    return block, []


def _kind(block: Fields, role: str) -> str:
    kind = KINDS.get(block["type"], HOSTED)
    return USER if kind == TEXT and role == "user" else kind
