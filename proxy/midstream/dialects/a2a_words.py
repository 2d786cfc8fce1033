"""Says in a few words what an A2A event or request means."""

from collections.abc import Sequence

import msgspec

from midstream.core.frames import Frame, Side
from midstream.dialects.a2a_events import (
    ArtifactUpdate,
    Failure,
    Message,
    Part,
    StatusUpdate,
    Task,
    Unreadable,
)
from midstream.dialects.a2a_read import read_payload

MAX_TEXT = 40


class _Sent(msgspec.Struct, rename="camel"):
    message_id: str | None = None
    parts: list[msgspec.Raw] = []


class _Params(msgspec.Struct):
    message: _Sent | None = None
    id: str | None = None


class _Request(msgspec.Struct):
    """A call of JSON-RPC, or the body of the REST binding."""

    method: str | None = None
    params: _Params | None = None
    message: _Sent | None = None


class _Call(msgspec.Struct):
    method: str


def describe(frame: Frame) -> str | None:
    """Return the words, or None for what is not A2A."""
    payload = frame.payload
    if frame.sender is Side.CLIENT:
        return _request(payload)
    match read_payload(payload, is_body=True):
        case ArtifactUpdate() as update:
            how = "append" if update.append else "replace"
            last = ", last chunk" if update.last else ""
            return f"artifact {update.artifact_id} {how} {_parts(update.parts)}{last}"
        case StatusUpdate() as status:
            said = "" if status.message is None else f" {_parts(status.message.parts)}"
            return f"status {status.state}{', final' if status.final else ''}{said}"
        case Task() as task:
            count = len(task.artifacts)
            return f"task {task.task_id} {task.state}, {count} artifact{'' if count == 1 else 's'}"
        case Message() as message:
            return f"message {message.message_id} of {message.role} {_parts(message.parts)}"
        case Failure() as failure:
            return f"error {failure.code}"
        case Unreadable() as unreadable:
            return f"unreadable: {unreadable.reason}"
    return None


def _request(payload: bytes) -> str | None:
    try:
        request = msgspec.json.decode(payload, type=_Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _method(payload)
    message = request.message if request.params is None else request.params.message
    words = [f"calls {request.method}"] if request.method else []
    if message is not None and message.message_id is not None:
        count = len(message.parts)
        words.append(f"message {message.message_id} with {count} part{'' if count == 1 else 's'}")
    elif words and request.params is not None and request.params.id is not None:
        words.append(f"task {request.params.id}")
    return ": ".join(words) or None


def _method(payload: bytes) -> str | None:
    """Return what a call whose parameters are of another shape calls."""
    try:
        method = msgspec.json.decode(payload, type=_Call).method
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return f"calls {method}"


def _parts(parts: Sequence[Part]) -> str:
    texts = [part.text for part in parts if part.text is not None]
    others = len(parts) - len(texts)
    text = "".join(texts)
    said = [f"+{len(text)} {_shown(text)}"] if texts else []
    if others:
        said.append(f"{others} part{'' if others == 1 else 's'} of data")
    return ", ".join(said) or "nothing"


def _shown(text: str) -> str:
    cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
    return f"'{cut}'" if cut.isprintable() else ascii(cut)
