"""Speaks Chat Completions for the model: streams, bodies, and what the API refuses."""

import json
import random
from typing import Any

from tests.addons.history_order.model import (
    CALL,
    RESULT,
    SYSTEM,
    TEXT,
    USER,
    Fields,
    Said,
    Style,
    Token,
    form,
    pieces,
)

HEAD = b'{"model":"m","metadata":{"messages":"[]"},"messages":'
TAIL = b',"stream":true,"tools":[]}'


class Chat:
    api = "openai-chat"
    path = "/v1/chat/completions"
    fuses = True

    def events(self, said: list[Said], style: Style, rnd: random.Random) -> list[bytes]:
        deltas: list[Fields] = [{"role": "assistant", "content": None}]
        calls = [one for one in said if one.kind == CALL]
        deltas += [{"content": text} for one in said if one.kind == TEXT
                   for text in pieces(one.word, rnd)]  # fmt: skip
        later: list[Fields] = []
        for index, one in enumerate(calls):
            call = {"index": index, "id": one.word, "type": "function"}
            deltas.append({"tool_calls": [{**call, "function": {"name": "Read", "arguments": ""}}]})
            more = {"tool_calls": [{"index": index, "function": {"arguments": "{}"}}]}
            (later if style.interleaves else deltas).append(more)
        chunks = [_chunk(delta, None) for delta in (*deltas, *later)]
        chunks.append(_chunk({}, "tool_calls" if calls else "stop"))
        if rnd.random() < 0.5:
            chunks.append({"id": "chatcmpl-1", "choices": [], "usage": {"total_tokens": 7}})
        return [*(json.dumps(chunk).encode() for chunk in chunks), b"[DONE]"]

    def whole(self, said: list[Said], style: Style) -> bytes:
        text = "".join(one.word for one in said if one.kind == TEXT)
        message: Fields = {"role": "assistant", "content": text or None}
        calls = [_call(one) for one in said if one.kind == CALL]
        if calls:
            message["tool_calls"] = calls
        reason = "tool_calls" if calls else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return style.written({"id": "chatcmpl-1", "choices": [choice]})

    def body(self, said: list[Said], style: Style) -> bytes:
        messages: list[list[Said]] = []
        for one in said:
            if messages and _is_one_message(messages[-1][-1], one, style):
                messages[-1].append(one)
            else:
                messages.append([one])
        return HEAD + style.array([_message(group, style) for group in messages]) + TAIL

    def tokens(self, body: bytes) -> list[Token]:
        found = []
        for index, message in enumerate(json.loads(body)["messages"]):
            role = message["role"]
            if role != "assistant":
                kind = {"tool": RESULT, "user": USER}.get(role, SYSTEM)
                found.append(Token(index, kind, message.get("tool_call_id", ""), form(message)))
                continue
            if message.get("content"):
                found.append(Token(index, TEXT, "", form(message["content"])))
            calls = message.get("tool_calls", ())
            found += [Token(index, CALL, call["id"], form(call)) for call in calls]
        return found

    def spread(self, said: list[Said]) -> list[Said]:
        return said

    def faults(self, tokens: list[Token]) -> set[tuple[str, str]]:
        """Results stand directly behind the message with their calls, one for each."""
        found = {("unanswered", t.call) for t in tokens if t.kind == CALL}
        asking = -1
        waiting: set[str] = set()
        for token in tokens:
            if token.kind == CALL:
                waiting = waiting if asking == token.message else set()
                asking = token.message
                waiting.add(token.call)
            elif token.kind == RESULT and token.call in waiting:
                found.discard(("unanswered", token.call))
                waiting.discard(token.call)
            elif token.kind == RESULT:
                found.add(("orphan", token.call))
            elif token.message != asking:
                waiting = set()
        return found


def _is_one_message(before: Said, one: Said, style: Style) -> bool:
    if one.kind != CALL or before.answer != one.answer:
        return False
    return before.kind == CALL or (before.kind == TEXT and style.fused)


def _message(group: list[Said], style: Style) -> bytes:
    first = group[0]
    if first.kind == RESULT:
        message: Fields = {"role": "tool", "tool_call_id": first.word, "content": "1.50"}
    elif first.kind in (USER, SYSTEM):
        message = {"role": first.kind, "content": first.word}
    else:
        message = {"role": "assistant"}
        if first.kind == TEXT:
            message["content"] = _content(first, style)
        elif style.silent != "absent":
            message["content"] = None if style.silent == "null" else ""
        calls = [_call(one) for one in group if one.kind == CALL]
        if calls:
            message["tool_calls"] = calls
    return style.written(message)


def _content(one: Said, style: Style) -> Any:
    return [{"type": "text", "text": one.word}] if style.parts else one.word


def _call(one: Said) -> Fields:
    return {"id": one.word, "type": "function", "function": {"name": "Read", "arguments": "{}"}}


def _chunk(delta: Fields, reason: str | None) -> Fields:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}
