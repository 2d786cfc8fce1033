"""A2A objects as they stand on the wire, of all versions at once.

One struct serves for update, task and message, because 0.x puts their fields beside `kind`. No
struct holds itself, so that no nesting costs more than its bytes. msgspec decodes all in one go but
for the parts, which are left raw. What msgspec refuses, a lone surrogate or a number out
of range, is read once more, level by level; a value of the wrong type is an error only then.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from midstream.core.raw import Malformed
from midstream.dialects.a2a_codec import Codec


class Meta(msgspec.Struct):
    """Metadata of an update or artifact: only what is known, of whatever type."""

    streamMode: Any = None
    adk_event_id: Any = None
    adk_author: Any = None


class PartMeta(msgspec.Struct):
    """Metadata of a part."""

    block: Any = msgspec.field(default=None, name="_agentscope_block_type")
    message_id: Any = msgspec.field(default=None, name="_agentscope_msg_id")
    is_chunk: Any = msgspec.field(default=None, name="_agentscope_stream_chunk")
    is_thought: Any = msgspec.field(default=None, name="adk_thought")


class Part(msgspec.Struct):
    kind: str | None = None
    text: str | None = None
    data: msgspec.Raw | None = None
    raw: msgspec.Raw | None = None
    url: msgspec.Raw | None = None
    file: msgspec.Raw | None = None
    metadata: PartMeta | None = None


class Artifact(msgspec.Struct):
    artifactId: str
    name: str | None = None
    parts: list[msgspec.Raw] | None = None
    metadata: Meta | None = None


class Message(msgspec.Struct):
    kind: str | None = None
    taskId: str | None = None
    messageId: str | None = None
    role: str | None = None
    parts: list[msgspec.Raw] | None = None
    content: list[msgspec.Raw] | None = None


class Status(msgspec.Struct):
    state: str | None = None
    message: Message | None = None


class Bare(Message):
    """An update, task or message: one has the fields of them all."""

    id: Any = None
    contextId: str | None = None
    artifact: Artifact | None = None
    append: bool | None = None
    lastChunk: bool | None = None
    status: Status | None = None
    final: bool | None = None
    artifacts: list[Artifact] | None = None
    history: list[Message] | None = None
    metadata: Meta | None = None


class Object(Bare):
    """The same where it says its kind itself, as in 0.x, or with its kind as the key around it."""

    artifactUpdate: Bare | None = None
    statusUpdate: Bare | None = None
    task: Bare | None = None
    message: Bare | None = None


class Envelope(Object):
    """A payload: a JSON-RPC response, or the object itself."""

    jsonrpc: Any = None
    result: Object | None = None
    error: msgspec.Raw | None = None


class WrongShape(Exception):
    """A value of the wrong type in an object of this protocol."""


# --- level by level -------------------------------------------------------------------------------

type _Read = Callable[[Codec, bytes], Any]


def careful[T: msgspec.Struct](codec: Codec, fields: Mapping[str, bytes], wanted: type[T]) -> T:
    """Return members as one of the structs above, without decoding what is not asked for.

    Raises WrongShape.
    """
    readers = _READERS[wanted]
    known = {}
    for name, value in fields.items():
        reader = readers.get(name)
        if reader is not None:
            field, read = reader
            try:
                known[field] = read(codec, value)
            except WrongShape as error:
                raise WrongShape(f"{name}: {error}") from None
            except Malformed:
                raise WrongShape(f"{name} is of the wrong type") from None
    try:
        return wanted(**known)
    except TypeError as error:
        raise WrongShape(str(error)) from None


def _any(codec: Codec, value: bytes) -> object:
    return codec.scalar(value)


def _text(codec: Codec, value: bytes) -> str | None:
    found = codec.scalar(value)
    if found is None or isinstance(found, str):
        return found
    raise WrongShape("expected text")


def _name(codec: Codec, value: bytes) -> str:
    found = codec.scalar(value)
    if isinstance(found, str):
        return found
    raise WrongShape("expected text")


def _flag(codec: Codec, value: bytes) -> bool | None:
    found = codec.scalar(value)
    if found is None or isinstance(found, bool):
        return found
    raise WrongShape("expected true or false")


def _raw(codec: Codec, value: bytes) -> msgspec.Raw | None:
    return None if value == codec.null else msgspec.Raw(value)


def _raws(codec: Codec, value: bytes) -> list[msgspec.Raw] | None:
    return None if value == codec.null else [msgspec.Raw(item) for item in codec.elements(value)]


def _one[T: msgspec.Struct](wanted: type[T]) -> _Read:
    def read(codec: Codec, value: bytes) -> T | None:
        return None if value == codec.null else careful(codec, codec.members(value), wanted)

    return read


def _many[T: msgspec.Struct](wanted: type[T]) -> _Read:
    def read(codec: Codec, value: bytes) -> list[T] | None:
        if value == codec.null:
            return None
        return [careful(codec, codec.members(item), wanted) for item in codec.elements(value)]

    return read


_MESSAGE: Final[Mapping[str, _Read]] = {
    **dict.fromkeys(("kind", "taskId", "messageId", "role"), _text),
    **dict.fromkeys(("parts", "content"), _raws),
}
_BARE: Final[Mapping[str, _Read]] = {
    **_MESSAGE,
    **dict.fromkeys(("append", "lastChunk", "final"), _flag),
    "id": _any,
    "contextId": _text,
    "artifact": _one(Artifact),
    "artifacts": _many(Artifact),
    "status": _one(Status),
    "history": _many(Message),
    "metadata": _one(Meta),
}
_OBJECT: Final[Mapping[str, _Read]] = {
    **_BARE,
    **dict.fromkeys(("artifactUpdate", "statusUpdate", "task", "message"), _one(Bare)),
}
_FIELDS: Final[Mapping[type[msgspec.Struct], Mapping[str, _Read]]] = {
    Meta: dict.fromkeys([field.name for field in msgspec.structs.fields(Meta)], _any),
    PartMeta: dict.fromkeys([f.encode_name for f in msgspec.structs.fields(PartMeta)], _any),
    Part: {
        **dict.fromkeys(("kind", "text"), _text),
        **dict.fromkeys(("data", "raw", "url", "file"), _raw),
        "metadata": _one(PartMeta),
    },
    Artifact: {"artifactId": _name, "name": _text, "parts": _raws, "metadata": _one(Meta)},
    Message: _MESSAGE,
    Status: {"state": _text, "message": _one(Message)},
    Bare: _BARE,
    Object: _OBJECT,
    Envelope: {**_OBJECT, "jsonrpc": _any, "result": _one(Object), "error": _raw},
}
_READERS: Final = {
    struct: {
        field.encode_name: (field.name, readers[field.encode_name])
        for field in msgspec.structs.fields(struct)
    }
    for struct, readers in _FIELDS.items()
}
