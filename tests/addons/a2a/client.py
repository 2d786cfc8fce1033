"""A model of the clients this is about, and what it finds wrong with what it is sent.

It appends what says append and replaces what does not, artifact by artifact, and shows the message
of a completed status on top. A client that takes a status for a replacement of the one before
(`replaces_status`) shows the message of the last status alone.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from tests.addons.a2a.events import whole

from midstream.core import sse
from midstream.core.frames import Frame, Kind

type Fields = dict[str, Any]

WRAPPERS = {
    "artifactUpdate": "artifact-update",
    "statusUpdate": "status-update",
    "task": "task",
    "message": "message",
}


class Client:
    """What one client has after the frames it was given."""

    def __init__(self, *, replaces_status: bool = False) -> None:
        self.replaces_status = replaces_status
        self.pieces: dict[str, list[str]] = {}
        self.data: dict[str, list[object]] = {}
        self.others: list[object] = []
        """What was no artifact update, in order, without what may be mended in it."""
        self.final = ""
        self.status = ""
        self.said = ""
        self.violations: list[str] = []
        self.log: list[str] = []
        self.names: set[tuple[str, str | None]] = set()
        self._sealed: set[str] = set()

    @property
    def texts(self) -> dict[str, str]:
        """The text of each artifact."""
        return {name: whole("".join(pieces)) for name, pieces in self.pieces.items()}

    @property
    def shown(self) -> str:
        """All that the user sees of the answer."""
        on_top = self.status if self.replaces_status else self.final
        return "".join(self.texts.values()) + self.said + on_top

    def takes(self, frames: Iterable[Frame]) -> "Client":
        for frame in frames:
            found = read(frame)
            if found is None:
                self.others.append(frame.wire)
            else:
                getattr(self, f"_{found[0].replace('-', '_')}")(found[1])
        return self

    def _artifact_update(self, fields: Fields) -> None:
        artifact = fields["artifact"]
        name, append, last = artifact["artifactId"], fields.get("append"), fields.get("lastChunk")
        text, others = read_parts(artifact["parts"])
        self._name(artifact=name, task=fields.get("taskId"), context=fields.get("contextId"))
        self.log.append(f"{name}:{'A' if append else 'R'}{'!' if last else ''}{text!r}")
        if append and name not in self.pieces:
            self.violations.append(f"{name}: append before there is anything")
        if name in self._sealed:
            what = "a second lastChunk" if last else "an update behind lastChunk"
            self.violations.append(f"{name}: {what}")
        if not append:
            self.pieces[name], self.data[name] = [], []
        self.pieces.setdefault(name, []).append(text)
        self.data.setdefault(name, []).extend(others)
        if last:
            self._sealed.add(name)

    def _status_update(self, fields: Fields) -> None:
        status = fields["status"]
        message = status.get("message")
        self._name(task=fields.get("taskId"), context=fields.get("contextId"))
        state = _state(status["state"])
        text = _message_text(message)
        if message is not None:
            self._name(message=message.get("messageId"))
        self.log.append(f"S{state}{text!r}" if message is not None else f"S{state}")
        self.status = text
        if state == "completed":
            self.final += text
            status = {key: value for key, value in status.items() if key != "message"}
        self.others.append({**fields, "status": status})

    def _task(self, fields: Fields) -> None:
        self._name(task=fields.get("id"), context=fields.get("contextId"))
        self.log.append(f"T{_state(fields['status']['state'])}")
        self.others.append((fields.get("id"), fields["status"]))
        for artifact in fields.get("artifacts", []):
            text, others = read_parts(artifact["parts"])
            self.log[-1] += f"[{artifact['artifactId']}={text!r}]"
            self.pieces[artifact["artifactId"]] = [text]
            self.data[artifact["artifactId"]] = others
        if _state(fields["status"]["state"]) == "completed":
            self.final += _message_text(fields["status"].get("message"))

    def _message(self, fields: Fields) -> None:
        self.log.append(f"M{_message_text(fields)!r}")
        self.said += _message_text(fields)
        self.others.append(fields)

    def _name(self, **names: str | None) -> None:
        self.names.update(names.items())


def read(frame: Frame) -> tuple[str, Fields] | None:
    """Return the kind and the fields of an event, or None where it is none."""
    message = decoded(frame)
    if not isinstance(message, dict):
        return None
    result = message.get("result", message)
    if not isinstance(result, dict):
        return None
    kind, fields = result.get("kind"), result
    if kind is None:
        for key, word in WRAPPERS.items():
            if key in result:
                kind, fields = word, result[key]
    return (str(kind), fields) if _is_whole(kind, fields) else None


def _is_whole(kind: Any, fields: Any) -> bool:
    """Tell whether an event has what a client needs of it; others it passes over."""
    if kind not in WRAPPERS.values() or not isinstance(fields, dict):
        return False
    if kind == "message":
        return True
    if kind == "artifact-update":
        artifact = fields.get("artifact")
        return (
            isinstance(artifact, dict)
            and isinstance(artifact.get("artifactId"), str)
            and _are_parts(artifact.get("parts"))
        )
    status = fields.get("status")
    return isinstance(status, dict) and isinstance(status.get("state"), str)


def _are_parts(parts: Any) -> bool:
    return isinstance(parts, list) and all(
        isinstance(part, dict) and isinstance(part.get("text", ""), str) for part in parts
    )


def decoded(frame: Frame) -> Any:
    """Return the value that a frame carries; None where it carries none."""
    try:
        if frame.kind is Kind.WS_BINARY:
            return msgspec.msgpack.decode(frame.wire)
        payload = sse.data_of(frame.wire) if frame.kind is Kind.SSE else frame.wire
        return json.loads(payload)
    except ValueError:  # of json; that of msgspec is one, too
        return None


def read_parts(parts: Sequence[Fields]) -> tuple[str, list[object]]:
    """Return the joined text of parts, and the parts that are no text."""
    texts = [part["text"] for part in parts if "text" in part]
    return "".join(texts), [part for part in parts if "text" not in part]


def _message_text(message: Fields | None) -> str:
    if message is None:
        return ""
    return whole(read_parts(message["content" if "content" in message else "parts"])[0])


def _state(word: str) -> str:
    return word.removeprefix("TASK_STATE_").lower().replace("_", "-")
