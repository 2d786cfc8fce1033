"""The wire forms of A2A events, each as one real server writes it (see tests/captures/README.md).

Independent of the dialect under test: a form that both read wrongly would hide the fault.
"""

import json
from typing import Any

import msgspec
from tests.addons.a2a.events import CONTEXT, TASK, Event, Part, Said, Status, Task, Update

from midstream.core.frames import Kind

type Fields = dict[str, Any]

NUMBER = "1.50"
"""A number that no decoder and encoder would give back as it was."""


class Form(msgspec.Struct, frozen=True):
    """How a server writes: what wraps an event, which words it uses, how it is framed."""

    name: str
    is_wrapped: bool
    """1.0 style: a wrapper key instead of `kind`."""
    is_rpc: bool = True
    has_kind_parts: bool = False
    states: str = "0.3"
    omits_false: bool = False
    has_final: bool = False
    content_key: str = "parts"
    ending: str = "\r\n"
    lines: str = ""
    compact: bool = True
    ascii: bool = False
    kind: Kind = Kind.SSE
    target: str = "/"
    method: str = "message/stream"
    sorts: bool = False
    adds_last: bool = False

    @property
    def takes_surrogates(self) -> bool:
        return self.kind is not Kind.WS_BINARY

    def wire(self, event: Event) -> bytes:
        """Return the bytes of one event."""
        fields: Fields = self.fields(event)
        if self.is_rpc:
            fields = {"jsonrpc": "2.0", "id": 1, "result": fields}
            if self.is_wrapped and self.omits_false:
                fields = {key: fields[key] for key in ("result", "id", "jsonrpc")}
        if self.kind is Kind.WS_BINARY:
            return msgspec.msgpack.encode(fields)
        text = self.dumps(fields)
        return self.framed(text.encode() if text.isascii() else _utf8(text, fields, self))

    def framed(self, payload: bytes) -> bytes:
        """Return a payload as this form frames it."""
        if self.kind is not Kind.SSE:
            return payload
        end = self.ending.encode()
        lines = "".join(line + self.ending for line in self.lines.split("\n") if line).encode()
        return lines + b"data: " + payload + end + end

    def dumps(self, fields: object, *, escapes: bool = False) -> str:
        separators = (",", ":") if self.compact else (", ", ": ")
        return json.dumps(
            fields,
            ensure_ascii=self.ascii or escapes,
            separators=separators,
            sort_keys=self.sorts,
        )

    def fields(self, event: Event) -> Fields:
        match event:
            case Update():
                return self._named("artifact-update", "artifactUpdate", self._update(event))
            case Status():
                return self._named("status-update", "statusUpdate", self._status(event))
            case Task():
                return self._named("task", "task", self._task(event))
        assert isinstance(event, Said)
        return self._named("message", "message", self._message(event.parts, event.message_id))

    def _named(self, kind: str, key: str, fields: Fields) -> Fields:
        return {key: fields} if self.is_wrapped else {"kind": kind, **fields}

    def _flag(self, name: str, value: bool | None) -> Fields:
        if value is None or (self.omits_false and not value):
            return {}
        return {name: value}

    def _part(self, part: Part) -> Fields:
        word = "text" if part.is_text else "data"
        found: Fields = {"kind": word} if self.has_kind_parts else {}
        found |= {"text": part.text} if part.is_text else {"data": part.data}
        return found | ({"metadata": part.metadata} if part.metadata else {})

    def _parts(self, parts: tuple[Part, ...]) -> list[Fields]:
        return [self._part(part) for part in parts]

    def _update(self, event: Update) -> Fields:
        last = False if event.last is None and self.adds_last else event.last
        artifact = {"artifactId": event.artifact, "name": "reply"}
        return {
            "taskId": TASK,
            "contextId": CONTEXT,
            "artifact": {**artifact, "parts": self._parts(event.parts)},
            **self._flag("append", event.append),
            **self._flag("lastChunk", last),
            **({"metadata": event.metadata} if event.metadata else {}),
        }

    def _status(self, event: Status) -> Fields:
        status: Fields = {"state": self._state(event.state)}
        if event.parts is not None:
            status["message"] = self._message(event.parts, event.message_id, self.content_key)
        status["timestamp"] = "2026-11-30T14:23:42.100000Z"
        final = {"final": event.final} if self.has_final else {}
        return {"taskId": TASK, "contextId": CONTEXT, "status": status, **final}

    def _task(self, event: Task) -> Fields:
        held = [
            {"artifactId": name, "name": "reply", "parts": self._parts(parts)}
            for name, parts in event.artifacts
        ]
        history = [
            self._message((Part(text),), f"h{number}") for number, text in enumerate(event.history)
        ]
        return {
            "id": TASK,
            "contextId": CONTEXT,
            "status": {"state": self._state(event.state)},
            **({"artifacts": held} if held else {}),
            **({"history": history} if history else {}),
        }

    def _message(self, parts: tuple[Part, ...], name: str, key: str = "parts") -> Fields:
        kind = {} if self.is_wrapped else {"kind": "message"}
        role = "ROLE_AGENT" if self.states == "1.0" else "agent"
        found = {"messageId": name, "role": role, "taskId": TASK, "contextId": CONTEXT}
        return {**kind, **found, key: self._parts(parts)}

    def _state(self, state: str) -> str:
        return f"TASK_STATE_{state.upper().replace('-', '_')}" if self.states == "1.0" else state


def _utf8(text: str, fields: object, form: Form) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: every JSON writer escapes it
        return form.dumps(fields, escapes=True).encode()


RPC03 = Form("rpc03", False, has_kind_parts=True, has_final=True, sorts=True)
AGENTSCOPE = Form(
    "agentscope",
    False,
    has_kind_parts=True,
    has_final=True,
    ending="\n",
    lines="event: jsonrpc\nid: 1",
    adds_last=True,
)
RPC1 = Form(
    "rpc1",
    True,
    states="1.0",
    omits_false=True,
    compact=False,
    ascii=True,
    method="SendStreamingMessage",
)
REST1 = Form(
    "rest1",
    True,
    is_rpc=False,
    states="1.0",
    omits_false=True,
    compact=False,
    target="/message:stream",
)
REST03 = Form(
    "rest03",
    True,
    is_rpc=False,
    states="1.0",
    omits_false=True,
    has_final=True,
    content_key="content",
    compact=False,
    target="/v1/message:stream",
)
FASTA2A = Form("fasta2a", True, ending="\n", adds_last=True)
BARE_CR = Form("bare_cr", False, has_kind_parts=True, has_final=True, ending="\r")
WS_TEXT = Form(
    "ws_text", True, is_rpc=False, states="1.0", omits_false=True, kind=Kind.WS_TEXT, target="/ws"
)
WS_BINARY = Form(
    "ws_binary", False, has_kind_parts=True, has_final=True, kind=Kind.WS_BINARY, target="/ws"
)
FORMS = (RPC03, AGENTSCOPE, RPC1, REST1, REST03, FASTA2A, BARE_CR, WS_TEXT, WS_BINARY)
BY_NAME = {form.name: form for form in FORMS}
