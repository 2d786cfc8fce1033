"""Says in a few words what a request to a model provider, its response, or an event of it means."""

from typing import Any

import msgspec

from midstream.core.frames import Frame, Side

MAX_TEXT = 40
LISTS = ("input", "messages", "contents")
DELTAS = ("text", "thinking", "partial_json")


def describe(frame: Frame) -> str | None:
    """Return the words, or None for what is no JSON object of a provider."""
    payload = frame.payload
    if payload == b"[DONE]":
        return "end of the stream"
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return _request(found) if frame.sender is Side.CLIENT else _event(found)


def _request(body: dict[str, Any]) -> str | None:
    for key in LISTS:
        items = body.get(key)
        if isinstance(items, list):
            last = _item(items[-1]) if items else "none"
            previous = body.get("previous_response_id")
            behind = f", behind {previous}" if isinstance(previous, str) else ""
            count = f"{len(items)} item{'' if len(items) == 1 else 's'}"
            return f"request of {body.get('model', '?')}: {count}, the last {last}{behind}"
        if isinstance(items, str):
            return f"request of {body.get('model', '?')}: {_shown(items)}"
    return None


def _item(item: object) -> str:
    if not isinstance(item, dict):
        return "?"
    role, kind = item.get("role"), item.get("type")
    name = item.get("call_id") or item.get("tool_call_id") or item.get("id")
    words = [str(word) for word in (role, kind, name) if isinstance(word, str)]
    return " ".join(words) or "?"


def _event(event: dict[str, Any]) -> str | None:
    kind = event.get("type")
    if isinstance(kind, str):
        return _typed(kind, event)
    if isinstance(event.get("choices"), list):
        if not event["choices"] and isinstance(event.get("usage"), dict):
            return "usage"
        return _choice(event["choices"])
    if isinstance(event.get("candidates"), list):
        return _candidate(event["candidates"])
    if event.get("object") == "response":
        return f"response {event.get('id', '?')} {event.get('status', '')}".rstrip()
    error = event.get("error")
    if isinstance(error, dict):
        return f"error {error.get('type') or error.get('code') or '?'}"
    return None


def _typed(kind: str, event: dict[str, Any]) -> str:
    delta = event.get("delta")
    if isinstance(delta, str):
        return f"{kind} {_shown(delta)}"
    if isinstance(delta, dict):
        text = next((delta[key] for key in DELTAS if key in delta), "")
        return f"{kind} {delta.get('type', '')} {_shown(str(text)) if text else ''}".rstrip()
    for key in ("item", "content_block", "message", "response"):
        inner = event.get(key)
        if isinstance(inner, dict):
            words = (inner.get("type"), inner.get("call_id") or inner.get("id"))
            return " ".join([kind, *(word for word in words if isinstance(word, str))])
    return kind


def _choice(choices: list[Any]) -> str:
    if not choices or not isinstance(choices[0], dict):
        return "chunk without a choice"
    said = choices[0].get("delta") or choices[0].get("message") or {}
    words: list[str] = []
    if isinstance(said, dict):
        if isinstance(said.get("content"), str) and said["content"]:
            words.append(f"content {_shown(said['content'])}")
        if isinstance(said.get("tool_calls"), list):
            words.append(f"tool calls {len(said['tool_calls'])}")
        if isinstance(said.get("role"), str) and not words:
            words.append(f"role {said['role']}")
    if isinstance(choices[0].get("finish_reason"), str):
        words.append(f"finish {choices[0]['finish_reason']}")
    return ", ".join(words) or "chunk"


def _candidate(candidates: list[Any]) -> str:
    """Return what the first candidate of Gemini says."""
    first = candidates[0] if candidates and isinstance(candidates[0], dict) else {}
    content = first.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    words: list[str] = []
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            words.append(f"{'thought' if part.get('thought') else 'text'} {_shown(part['text'])}")
        elif isinstance(part.get("functionCall"), dict):
            words.append(f"function call {part['functionCall'].get('name', '?')}")
    if isinstance(first.get("finishReason"), str):
        words.append(f"finish {first['finishReason']}")
    return ", ".join(words) or "candidate without content"


def _shown(text: str) -> str:
    cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
    return f"'{cut}'" if cut.isprintable() else ascii(cut)
