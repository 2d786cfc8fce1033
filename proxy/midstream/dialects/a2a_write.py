"""A2A frames changed, and frames made after the model of others.

What is not named keeps its bytes, in JSON text as in msgpack; a frame that is made has the
envelope, ids and style of its model. All functions raise EditError, and nothing else, where a frame
cannot be changed as asked.

A changed frame carries its own reading, so that the next reader need not decode it again.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from midstream.core import sse
from midstream.core.edit import Delete, Edit, Path, Set
from midstream.core.errors import EditError
from midstream.core.frames import Frame, Kind
from midstream.core.raw import Malformed
from midstream.dialects.a2a_codec import Codec, codec_of
from midstream.dialects.a2a_events import (
    Artifact,
    ArtifactUpdate,
    Part,
    Reading,
    StatusUpdate,
    Task,
)


class ArtifactEdit(msgspec.Struct, frozen=True):
    """What becomes of an artifact of a task: new texts by part, and parts that go."""

    texts: Mapping[int, str] = {}
    removed: Collection[int] = ()


def changed(
    frame: Frame,
    update: ArtifactUpdate,
    *,
    texts: Mapping[int, str] = {},
    removed: Collection[int] = (),
    append: bool | None = None,
    last: bool | None = None,
    stream_mode: str = "",
    artifact_id: str = "",
) -> Frame:
    """Return the frame with other texts by part, without some parts, and with other flags.

    None leaves a flag as it is, an empty `artifact_id` the id. A `stream_mode` goes to the metadata
    of the update.
    """
    payload = frame.payload
    codec = codec_of(payload)
    edits = _part_edits(codec, update.parts, (*update.at, "artifact"), texts, removed)
    edits += _flag_edits(codec, update, append, last)
    if artifact_id:
        edits.append(Set((*update.at, "artifact", "artifactId"), codec.text(artifact_id)))
    if stream_mode and stream_mode != update.stream_mode:
        edits.append(_stamp(codec, payload, update.at, stream_mode))
    reading = msgspec.structs.replace(
        update,
        parts=_parts_left(update.parts, texts, removed),
        append=update.append if append is None else append,
        last=update.last if last is None else last,
        stream_mode=stream_mode or update.stream_mode,
        artifact_id=artifact_id or update.artifact_id,
    )
    return _edited(frame, codec, payload, edits, reading)


def inserted(frame: Frame, update: ArtifactUpdate, text: str, *, append: bool, last: bool) -> Frame:
    """Return a new update of the same artifact with one text part.

    It has no SSE `id:` line: the same one twice would tell a wrong place in the stream.
    """
    payload = frame.payload
    codec = codec_of(payload)
    at = (*update.at, "artifact", "parts")
    has_kind = _has_kind(codec, payload, at, update.at)
    edits: list[Edit] = [Set(at, codec.array([_text_part(codec, text, has_kind=has_kind)]))]
    edits += _flag_edits(codec, update, append, last)
    reading = msgspec.structs.replace(update, parts=(Part(text),), append=append, last=last)
    return _edited(_model(frame), codec, payload, edits, reading)


def with_message_texts(
    frame: Frame, status: StatusUpdate, texts: Mapping[int, str], removed: Collection[int] = ()
) -> Frame:
    """Return the frame with other texts in the message of its status, by part."""
    message = status.message
    if message is None:
        raise EditError("a status without a message has no texts")
    payload = frame.payload
    codec = codec_of(payload)
    edits = _part_edits(codec, message.parts, message.at, texts, removed, message.parts_key)
    parts = _parts_left(message.parts, texts, removed)
    left = msgspec.structs.replace(message, parts=parts)
    reading = msgspec.structs.replace(status, message=left)
    return _edited(frame, codec, payload, edits, reading)


def without_message(frame: Frame, status: StatusUpdate | Task) -> Frame:
    """Return the frame with its state and without the message of its status."""
    payload = frame.payload
    edits: list[Edit] = [Delete((*status.at, "status", "message"))]
    reading = msgspec.structs.replace(status, message=None)
    return _edited(frame, codec_of(payload), payload, edits, reading)


def lifted(
    frame: Frame, status: StatusUpdate, artifact_id: str, text: str, *, append: bool
) -> Frame:
    """Return a new artifact update with one text part, for the task of a status update."""
    payload = frame.payload
    codec = codec_of(payload)
    message = status.message
    parts = (*message.at, message.parts_key) if message else (*status.at, "status")
    part = _text_part(codec, text, has_kind=_has_kind(codec, payload, parts, status.at))
    artifact = {"artifactId": codec.text(artifact_id), "parts": codec.array([part])}
    fields = _ids(codec, status) | {"artifact": codec.object(artifact)}
    if append or _is_flat(codec, payload, status.at):
        fields["append"] = codec.flag(append)
    edits = _put(codec, payload, status.at, "artifact-update", "artifactUpdate", fields)
    model = _renamed(_model(frame), "TaskStatusUpdateEvent", "TaskArtifactUpdateEvent")
    return _edited(model, codec, payload, edits, None)


def with_artifacts(frame: Frame, task: Task, edits: Mapping[int, ArtifactEdit]) -> Frame:
    """Return the frame with some artifacts of its task edited, each by its place there."""
    payload = frame.payload
    codec = codec_of(payload)
    wanted: list[Edit] = []
    left: dict[int, Artifact] = {}
    for index, one in edits.items():
        if not 0 <= index < len(task.artifacts):
            raise EditError(f"no artifact {index} among {len(task.artifacts)}")
        artifact = task.artifacts[index]
        at = (*task.at, "artifacts", index)
        wanted += _part_edits(codec, artifact.parts, at, one.texts, one.removed)
        parts = _parts_left(artifact.parts, one.texts, one.removed)
        left[index] = msgspec.structs.replace(artifact, parts=parts)
    artifacts = tuple([left.get(artifact.index, artifact) for artifact in task.artifacts])
    reading = msgspec.structs.replace(task, artifacts=artifacts)
    return _edited(frame, codec, payload, wanted, reading)


def without_history(frame: Frame, task: Task, indexes: Collection[int]) -> Frame:
    """Return the frame without some messages of its task's history."""
    for index in indexes:
        if not 0 <= index < len(task.history):
            raise EditError(f"no message {index} among {len(task.history)}")
    gone = frozenset(indexes)
    payload = frame.payload
    at = (*task.at, "history")
    edits: list[Edit] = [Delete((*at, index)) for index in gone]
    left = [message for index, message in enumerate(task.history) if index not in gone]
    history = [msgspec.structs.replace(m, at=(*at, index)) for index, m in enumerate(left)]
    reading = msgspec.structs.replace(task, history=tuple(history))
    return _edited(frame, codec_of(payload), payload, edits, reading)


def status_of(frame: Frame, task: Task) -> Frame:
    """Return a status update in the place of a task: its state, without message and artifacts.

    The style of 0.x marks it as the last one.
    """
    payload = frame.payload
    codec = codec_of(payload)
    status = codec.get(payload, (*task.at, "status"))
    is_flat = _is_flat(codec, payload, task.at)
    if status is None or (not is_flat and task.at[-1:] != ("task",)):
        raise EditError("a task by itself is no event of a stream")
    fields = _ids(codec, task) | {"status": codec.apply(status, Delete(("message",)))}
    if is_flat or any(message.parts_key == "content" for message in task.history):
        fields["final"] = codec.flag(True)
    edits = _put(codec, payload, task.at, "status-update", "statusUpdate", fields)
    model = _renamed(frame, "Task", "TaskStatusUpdateEvent")
    return _edited(model, codec, payload, edits, None)


# --- edits ----------------------------------------------------------------------------------------


def _edited(
    frame: Frame, codec: Codec, payload: bytes, edits: list[Edit], reading: Reading | None
) -> Frame:
    return frame.with_payload(codec.apply(payload, *edits), reading) if edits else frame


def _part_edits(
    codec: Codec,
    parts: tuple[Part, ...],
    at: Path,
    texts: Mapping[int, str],
    removed: Collection[int],
    key: str = "parts",
) -> list[Edit]:
    gone = frozenset(removed)
    for index in (*texts, *removed):
        if not 0 <= index < len(parts):
            raise EditError(f"no part {index} among {len(parts)}")
    edits: list[Edit] = []
    for index, text in texts.items():
        before = parts[index].text
        if before is None:
            raise EditError(f"part {index} is no text")
        if index in gone:
            raise EditError(f"part {index} is to be changed and removed")
        if text != before:
            edits.append(Set((*at, key, index, "text"), codec.text(text)))
    edits += [Delete((*at, key, index)) for index in gone]
    return edits


def _parts_left(
    parts: tuple[Part, ...], texts: Mapping[int, str], removed: Collection[int]
) -> tuple[Part, ...]:
    gone = frozenset(removed)
    return tuple(
        [
            msgspec.structs.replace(part, text=texts[index]) if index in texts else part
            for index, part in enumerate(parts)
            if index not in gone
        ]
    )


def _flag_edits(
    codec: Codec, update: ArtifactUpdate, append: bool | None, last: bool | None
) -> list[Edit]:
    """A flag that is not there counts as false, so one that becomes false surely is there."""
    flags = (("append", update.append, append), ("lastChunk", update.last, last))
    return [
        Set((*update.at, name), codec.flag(wanted))
        for name, before, wanted in flags
        if wanted is not None and wanted is not before
    ]


def _stamp(codec: Codec, payload: bytes, at: Path, stream_mode: str) -> Edit:
    mode = codec.text(stream_mode)
    at = (*at, "metadata")
    if codec.get(payload, at) in (None, codec.null):
        return Set(at, codec.object({"streamMode": mode}))
    return Set((*at, "streamMode"), mode)


# --- frames made after a model --------------------------------------------------------------------

_OWN_LINES: Final = (b"id:", b"retry:", b":")


def _model(frame: Frame) -> Frame:
    """Return the frame without the lines of its event that must not come twice."""
    if frame.kind is not Kind.SSE:
        return frame
    kept: list[bytes] = []
    for line in frame.wire.removeprefix(sse.BOM).splitlines(keepends=True):
        if line.startswith(_OWN_LINES) or line.rstrip(b"\r\n") in (b"id", b"retry"):
            continue
        if kept and kept[-1].endswith(b"\r") and line.startswith(b"\n"):
            kept[-1] += b"\n"  # or the two, now neighbours, would be one line ending
        kept.append(line)
    return Frame(frame.sender, frame.kind, b"".join(kept))


def _renamed(frame: Frame, before: str, after: str) -> Frame:
    """Return the frame with another SSE event name, where the old one tells the kind (agno)."""
    name = re.compile(rb"^event: ?%b(?=[\r\n])" % before.encode(), re.MULTILINE)
    if frame.kind is not Kind.SSE or sse.field_of(frame.wire, b"event") != before.encode():
        return frame
    wire = name.sub(b"event: " + after.encode(), frame.wire)
    return Frame(frame.sender, frame.kind, wire)


def _is_flat(codec: Codec, payload: bytes, at: Path) -> bool:
    """Tell whether an object says itself what kind it is, as in 0.x."""
    return codec.get(payload, (*at, "kind")) is not None


def _has_kind(codec: Codec, payload: bytes, parts: Path, at: Path) -> bool:
    """Tell whether parts say their kind, as in 0.x; where there are none, the object decides."""
    try:
        raws = codec.elements(codec.get(payload, parts) or b"")
        return "kind" in codec.members(raws[0])
    except (Malformed, IndexError):
        return _is_flat(codec, payload, at)


def _text_part(codec: Codec, text: str, *, has_kind: bool) -> bytes:
    kind = {"kind": codec.text("text")} if has_kind else {}
    return codec.object(kind | {"text": codec.text(text)})


def _ids(codec: Codec, event: StatusUpdate | Task) -> dict[str, bytes]:
    ids = {"taskId": event.task_id, "contextId": event.context_id}
    return {name: codec.text(value) for name, value in ids.items() if value}


def _put(
    codec: Codec, payload: bytes, at: Path, kind: str, wrapper: str, fields: dict[str, bytes]
) -> list[Edit]:
    """Return the edits that put another object in the place of one, in its style."""
    if _is_flat(codec, payload, at):
        return [Set(at, codec.object({"kind": codec.text(kind)} | fields))]
    return [Delete(at), Set((*at[:-1], wrapper), codec.object(fields))]
