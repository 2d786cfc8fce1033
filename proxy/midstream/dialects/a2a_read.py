"""From a payload to what it says: finds the object of the protocol in it, and reads that.

Proof that an object is one of this protocol: the names `artifactUpdate` and `statusUpdate`, or
their kinds; for a task its status, for a message its `messageId`, since `task` and `message` mean
things elsewhere. A task by itself (the answer to a question for it) is known only from its state,
and only in a body or a JSON-RPC response.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from midstream.core.edit import Path
from midstream.core.raw import Malformed
from midstream.dialects import a2a_events as events
from midstream.dialects import a2a_wire as wire
from midstream.dialects.a2a_codec import JSON, PACKED, REFUSED, Codec, codec_of
from midstream.dialects.a2a_wire import WrongShape

type Found = events.Event | events.Unreadable | None

_KINDS: Final = {
    "artifact-update": "artifactUpdate",
    "status-update": "statusUpdate",
    "task": "task",
    "message": "message",
}
_SURE: Final = (b"artifactUpdate", b"statusUpdate", b"artifact-update", b"status-update")
_STATE_PREFIX: Final = "TASK_STATE_"
_ROLE_PREFIX: Final = "ROLE_"
_NO_META: Final = wire.Meta()
_OF_THE_SENDING: Final = ("_agentscope_stream_chunk", "_agentscope_msg_role")
_MODES: Final = ("delta", "snapshot")

_ENVELOPES: Final = {JSON: JSON.decoder(wire.Envelope), PACKED: PACKED.decoder(wire.Envelope)}
_PARTS: Final = {JSON: JSON.decoder(wire.Part), PACKED: PACKED.decoder(wire.Part)}


def read_payload(payload: bytes, *, is_body: bool) -> Found:
    """Read one payload, without a byte order mark; None if it is not of this protocol."""
    codec = codec_of(payload)
    try:
        envelope = _ENVELOPES[codec].decode(payload)
    except REFUSED:
        return _read_carefully(codec, payload, is_body=is_body)
    try:
        return _read(codec, envelope, is_body=is_body)
    except (WrongShape, Malformed) as error:
        return events.Unreadable(str(error))


def _read_carefully(codec: Codec, payload: bytes, *, is_body: bool) -> Found:
    try:
        fields = codec.members(payload)
    except Malformed as error:
        is_object = codec is PACKED or payload.lstrip().startswith(b"{")
        is_sure = is_object and any(name in payload for name in _SURE)
        return events.Unreadable(str(error)) if is_sure else None
    try:
        return _read(codec, wire.careful(codec, fields, wire.Envelope), is_body=is_body)
    except (WrongShape, Malformed) as error:
        return events.Unreadable(str(error)) if _is_ours(codec, fields) else None


def _is_ours(codec: Codec, fields: Mapping[str, bytes]) -> bool:
    """Tell from their names whether members that may be of the wrong type are of this protocol."""
    result = fields.get("result", codec.null)
    if result != codec.null:
        fields = _members(codec, result)
    elif fields.get("error", codec.null) != codec.null:
        return "jsonrpc" in fields or "code" in _members(codec, fields["error"])
    if "artifactUpdate" in fields or "statusUpdate" in fields:
        return True
    kind = codec.scalar(fields.get("kind", codec.null))
    if isinstance(kind, str) and kind in _KINDS:
        return {"task": "status", "message": "messageId"}.get(kind, "kind") in fields
    if "messageId" in _members(codec, fields.get("message", b"")):
        return True
    task = _members(codec, fields["task"]) if "task" in fields else fields
    state = codec.scalar(_members(codec, task.get("status", b"")).get("state", codec.null))
    return "id" in task and isinstance(state, str) and _state(state) in events.STATES


def _members(codec: Codec, value: bytes) -> dict[str, bytes]:
    try:
        return codec.members(value)
    except Malformed:
        return {}


# --- the object in its envelope -------------------------------------------------------------------


def _read(codec: Codec, envelope: wire.Envelope, *, is_body: bool) -> Found:
    is_rpc = envelope.jsonrpc is not None
    found: wire.Object = envelope
    at: Path = ()
    if envelope.result is not None:
        found, at = envelope.result, ("result",)
    elif envelope.error is not None and bytes(envelope.error) != codec.null:
        return _failure(codec, bytes(envelope.error), is_rpc=is_rpc)
    name = _KINDS.get(found.kind or "")
    if name is not None:
        return _READERS[name](codec, found, at)
    names = [name for name in _KINDS.values() if getattr(found, name) is not None]
    if not names:
        return _bare_task(codec, found, at) if is_body or is_rpc else None
    name = names[0]
    if len(names) > 1:
        is_sure = name in ("artifactUpdate", "statusUpdate")
        return events.Unreadable(f"{' and '.join(names)} in one object") if is_sure else None
    return _READERS[name](codec, getattr(found, name), (*at, name))


def _failure(codec: Codec, error: bytes, *, is_rpc: bool) -> Found:
    code = codec.scalar(_members(codec, error).get("code", codec.null))
    if isinstance(code, int) and not isinstance(code, bool):
        return events.Failure(code)
    return events.Unreadable("an error without a code") if is_rpc else None


def _bare_task(codec: Codec, found: wire.Bare, at: Path) -> Found:
    if found.status is None or found.status.state is None or not isinstance(found.id, str):
        return None
    return _task(codec, found, at) if _state(found.status.state) in events.STATES else None


# --- one object -----------------------------------------------------------------------------------


def _update(codec: Codec, found: wire.Bare, at: Path) -> Found:
    artifact = found.artifact
    if artifact is None:
        raise WrongShape("an artifact update without an artifact")
    outer, inner = found.metadata or _NO_META, artifact.metadata or _NO_META
    mode = outer.streamMode or inner.streamMode
    return events.ArtifactUpdate(
        found.taskId or "",
        found.contextId or "",
        artifact.artifactId,
        artifact.name or "",
        bool(found.append),
        bool(found.lastChunk),
        _parts(codec, artifact.parts),
        mode if mode in _MODES else "",
        _segment(inner) or _segment(outer),
        at,
    )


def _status_update(codec: Codec, found: wire.Bare, at: Path) -> Found:
    status = found.status
    if status is None:
        raise WrongShape("a status update without a status")
    return events.StatusUpdate(
        found.taskId or "",
        found.contextId or "",
        _state(status.state),
        bool(found.final),
        _status_message(codec, status, at),
        at,
    )


def _task(codec: Codec, found: wire.Bare, at: Path) -> Found:
    status = found.status
    if status is None or (status.state is None and found.id is None):
        return None
    if not isinstance(found.id, str):
        raise WrongShape("a task without an id")
    return events.Task(
        found.id,
        found.contextId or "",
        _state(status.state),
        _status_message(codec, status, at),
        tuple(
            events.Artifact(a.artifactId, a.name or "", _parts(codec, a.parts), index)
            for index, a in enumerate(found.artifacts or ())
        ),
        tuple(
            _message_at(codec, message, (*at, "history", index))
            for index, message in enumerate(found.history or ())
        ),
        at,
    )


def _message(codec: Codec, found: wire.Bare, at: Path) -> Found:
    return _message_at(codec, found, at) if found.messageId is not None else None


_READERS: Final = {
    "artifactUpdate": _update,
    "statusUpdate": _status_update,
    "task": _task,
    "message": _message,
}


def _status_message(codec: Codec, status: wire.Status, at: Path) -> events.Message | None:
    if status.message is None:
        return None
    return _message_at(codec, status.message, (*at, "status", "message"))


def _message_at(codec: Codec, found: wire.Message, at: Path) -> events.Message:
    key = "content" if found.parts is None and found.content is not None else "parts"
    return events.Message(
        found.messageId or "",
        (found.role or "").removeprefix(_ROLE_PREFIX).lower(),
        found.taskId or "",
        _parts(codec, found.parts if key == "parts" else found.content),
        at,
        key,
    )


def essence(part: events.Part) -> bytes:
    """Return a part that is no text without what a server adds for one of its two ways to send it.

    Two parts with the same essence are one part sent twice; members may stand in another order.
    Source: AgentScope 2.0.2 in tests/captures/a2a.
    """
    codec = codec_of(part.raw)
    try:
        fields = codec.members(part.raw)
        if "metadata" in fields:
            meta = codec.members(fields["metadata"])
            kept = {key: meta[key] for key in sorted(meta) if key not in _OF_THE_SENDING}
            fields["metadata"] = codec.object(kept)
    except Malformed:
        return part.raw
    return codec.object({key: fields[key] for key in sorted(fields)})


def _parts(codec: Codec, raws: Sequence[msgspec.Raw] | None) -> tuple[events.Part, ...]:
    return tuple([_part(codec, raw) for raw in raws]) if raws else ()


def _part(codec: Codec, raw: msgspec.Raw) -> events.Part:
    try:
        part = _PARTS[codec].decode(raw)
    except REFUSED:
        part = wire.careful(codec, codec.members(bytes(raw)), wire.Part)
    text = _text_of(codec, part)
    kept = bytes(raw) if text is None else b""
    meta = part.metadata
    if meta is None:
        return events.Part(text, kept)
    block = _word(meta.block) or ("thought" if meta.is_thought is True else "")
    return events.Part(text, kept, block, _word(meta.message_id), meta.is_chunk is True)


def _text_of(codec: Codec, part: wire.Part) -> str | None:
    if part.kind == "text":
        return part.text or ""
    others = (part.data, part.raw, part.url, part.file)
    if part.kind or any(other is not None and bytes(other) != codec.null for other in others):
        return None
    return part.text


def _segment(meta: wire.Meta) -> str:
    event = _word(meta.adk_event_id)
    return f"{event} {_word(meta.adk_author)}".rstrip() if event else ""


def _state(state: object) -> str:
    if not isinstance(state, str):
        return "unknown"
    if state.startswith(_STATE_PREFIX):
        state = state.removeprefix(_STATE_PREFIX).lower().replace("_", "-")
    return state if state != "unspecified" else "unknown"


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
