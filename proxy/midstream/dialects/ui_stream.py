"""The AI SDK's UI message stream: chunks, the parts of a message they build, and back.

A chunk and a part are read one level deep (`core/raw.py`): the fields a reducer acts on are known
here by name, every value stays the bytes it came as. `fold` applies chunks to the parts of a
message as `processUIMessageStream` does; `encode` is its inverse, for the parts that have one.

Source: vercel/ai `packages/ai/src/ui/process-ui-message-stream.ts` at 6b475a390 (ai 6.0.217), and
cloudflare/agents `packages/agents/src/chat/message-builder.ts` at 03cdc828 (agents 0.17.4).
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

import msgspec

from midstream.core import raw

Chunk = dict[str, bytes]
"""The members of one chunk, `type` among them."""

STREAMED: Final = ("text", "reasoning")
_STREAMING: Final = b'"streaming"'
_DONE: Final = b'"done"'
_TEXT_FIELDS: Final = frozenset({"state", "providerMetadata"})
_TOOL_FIELDS: Final = frozenset(
    {
        "toolCallId",
        "toolName",
        "state",
        "input",
        "output",
        "errorText",
        "providerExecuted",
        "title",
        "preliminary",
    }
)
_WHOLE_FIELDS: Final = {
    "file": frozenset({"url", "mediaType", "providerMetadata"}),
    "source-url": frozenset({"sourceId", "url", "title", "providerMetadata"}),
    "source-document": frozenset(
        {"sourceId", "mediaType", "title", "filename", "providerMetadata"}
    ),
}
_TOOL_STATES: Final = {
    "tool-output-available": b'"output-available"',
    "tool-output-error": b'"output-error"',
    "tool-input-error": b'"output-error"',
    "tool-output-denied": b'"output-denied"',
    "tool-approval-request": b'"approval-requested"',
    "tool-approval-response": b'"approval-responded"',
}
_IGNORED: Final = frozenset({"start", "finish", "message-metadata", "abort", "error"})


class Part(msgspec.Struct):
    """One part of a message: its kind, the escaped text it streams (if it does), the rest raw."""

    kind: str
    fields: dict[str, bytes]
    text: bytearray | None = None

    @property
    def call(self) -> bytes | None:
        """The tool call this part belongs to, as its raw JSON string."""
        return self.fields.get("toolCallId")

    @property
    def state(self) -> str:
        return raw.text_of(self.fields.get("state")) or ""

    @property
    def has_outcome(self) -> bool:
        return self.state.startswith("output-")

    @property
    def size_bytes(self) -> int:
        return len(self.text or b"") + sum(len(value) for value in self.fields.values()) + 64

    def copy(self) -> "Part":
        text = None if self.text is None else bytearray(self.text)
        return Part(self.kind, dict(self.fields), text)

    def json(self) -> bytes:
        text = {} if self.text is None else {"text": b'"' + bytes(self.text) + b'"'}
        return raw.document({"type": raw.quote(self.kind), **text, **self.fields})


def read_part(document: bytes) -> Part:
    """Read a part. Raises raw.Malformed."""
    fields = raw.members(document)
    kind = raw.text_of(fields.pop("type", None))
    if kind is None:
        raise raw.Malformed("a part has no type")
    if kind not in STREAMED:
        return Part(kind, fields)
    text = fields.pop("text", b'""')
    if text[:1] != b'"':
        raise raw.Malformed(f"the text of a {kind} part is no string")
    return Part(kind, fields, bytearray(text[1:-1]))


def copies(parts: Iterable[Part]) -> list[Part]:
    return [part.copy() for part in parts]


def chunk_type(chunk: Chunk) -> str:
    return raw.text_of(chunk.get("type")) or ""


class Fold(msgspec.Struct):
    """Parts that grow with the chunks applied to them; not `exact` once one was not understood."""

    parts: list[Part] = msgspec.field(default_factory=list)
    open_parts: dict[str, int] = msgspec.field(default_factory=dict)
    metadata: bytes | None = None
    exact: bool = True

    def tool(self, call: bytes | None) -> Part | None:
        """Return the part of a tool call."""
        return next((part for part in self.parts if call and part.call == call), None)

    def apply(self, chunk: Chunk) -> None:
        """Apply one chunk to the parts."""
        kind = chunk_type(chunk)
        if "messageMetadata" in chunk:
            self.metadata = merge(self.metadata, chunk["messageMetadata"])
        stem, _, step = kind.rpartition("-")
        if stem in STREAMED and step in ("start", "delta", "end"):
            self._stream(stem, step, chunk)
        elif kind.endswith("-step"):
            self._step(kind)
        elif kind.startswith("tool-"):
            self._tool(kind, chunk)
        elif kind in _WHOLE_FIELDS or kind in ("custom", "reasoning-file"):
            self.parts.append(Part(kind, {k: v for k, v in chunk.items() if k != "type"}))
        elif kind.startswith("data-"):
            self._data(kind, chunk)
        elif kind not in _IGNORED:
            self.exact = False

    def _step(self, kind: str) -> None:
        if kind == "start-step":
            self.parts.append(Part("step-start", {}))
        elif kind == "finish-step":
            self.open_parts.clear()
        elif kind == "reset-step":
            while self.parts and self.parts[-1].kind != "step-start":
                self.parts.pop()
        else:
            self.exact = False

    def _stream(self, kind: str, step: str, chunk: Chunk) -> None:
        name = f"{kind}|{chunk.get('id', b'').decode('utf-8', 'surrogateescape')}"
        metadata = {k: chunk[k] for k in ("providerMetadata",) if k in chunk}
        if step == "start":
            self.open_parts[name] = len(self.parts)
            self.parts.append(Part(kind, {"state": _STREAMING, **metadata}, bytearray()))
            return
        part = self._open(kind, name)
        if part is None:
            if step == "end":
                return
            part = Part(kind, {"state": _STREAMING}, bytearray())
            self.parts.append(part)
        part.fields.update(metadata)
        if step == "end":
            part.fields["state"] = _DONE
            return
        delta = chunk.get("delta", b"")
        if delta[:1] != b'"' or part.text is None:
            self.exact = False
            return
        part.text += delta[1:-1]

    def _open(self, kind: str, name: str) -> Part | None:
        """Return the part a delta goes to: the one it opened, else the last of its kind."""
        index = self.open_parts.get(name)
        if index is not None and index < len(self.parts):
            return self.parts[index]
        return next((part for part in reversed(self.parts) if part.kind == kind), None)

    def _tool(self, kind: str, chunk: Chunk) -> None:
        call = chunk.get("toolCallId")
        part = self.tool(call)
        if kind == "tool-input-delta":
            return
        if part is None:
            name = raw.text_of(chunk.get("toolName"))
            if call is None or name is None:
                self.exact = False
                return
            part = _new_tool(name, call, chunk)
            self.parts.append(part)
        elif kind == "tool-input-start":
            return
        if kind == "tool-input-start":
            part.fields["state"] = b'"input-streaming"'
        elif kind == "tool-input-available":
            part.fields["state"] = b'"input-available"'
        else:
            part.fields["state"] = _TOOL_STATES.get(kind, b'"unknown"')
            self.exact = self.exact and kind in _TOOL_STATES
        part.fields.update(_tool_fields(kind, chunk))

    def _data(self, kind: str, chunk: Chunk) -> None:
        if chunk.get("transient") == b"true":
            return
        fields: dict[str, bytes] = {k: v for k, v in chunk.items() if k in ("id", "data")}
        if "id" in fields:
            for part in self.parts:
                if part.kind == kind and part.fields.get("id") == fields["id"]:
                    part.fields.update(fields)
                    return
        self.parts.append(Part(kind, fields))


def _new_tool(name: str, call: bytes, chunk: Chunk) -> Part:
    if chunk.get("dynamic") == b"true":
        return Part("dynamic-tool", {"toolName": raw.quote(name), "toolCallId": call})
    return Part(f"tool-{name}", {"toolCallId": call})


def _tool_fields(kind: str, chunk: Chunk) -> dict[str, bytes]:
    names = ["input", "output", "errorText", "providerExecuted", "title", "preliminary"]
    fields = {name: chunk[name] for name in names if name in chunk}
    if kind == "tool-input-available" and "providerMetadata" in chunk:
        fields["callProviderMetadata"] = chunk["providerMetadata"]
    if kind == "tool-approval-request" and "approvalId" in chunk:
        fields["approval"] = raw.document({"id": chunk["approvalId"]})
    return fields


def merge(old: bytes | None, new: bytes) -> bytes:
    """Merge two raw JSON values as the AI SDK merges metadata: objects deep, else the new one."""
    if old is None or old[:1] != b"{" or new[:1] != b"{":
        return new
    merged = raw.members(old)
    for key, value in raw.members(new).items():
        merged[key] = merge(merged.get(key), value)
    return raw.document(merged)


def orphan(chunks: Iterable[Chunk]) -> tuple[str, bytes] | None:
    """Return kind and raw id of the first delta or end whose part these chunks never started.

    A server that goes on inside an interrupted part sends no start for it (cloudflare/agents
    `packages/ai-chat/src/index.ts:6127-6157` at a0e134bb).
    """
    started: set[tuple[str, bytes]] = set()
    for chunk in chunks:
        kind, _, step = chunk_type(chunk).rpartition("-")
        if kind not in STREAMED or "id" not in chunk:
            continue
        if step == "start":
            started.add((kind, chunk["id"]))
        elif step in ("delta", "end") and (kind, chunk["id"]) not in started:
            return kind, chunk["id"]
    return None


def adopted(parts: list[Part], kind: str) -> int | None:
    """Return the index of the part that goes on: the last of its kind, if it is still streaming."""
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].kind == kind:
            return index if parts[index].fields.get("state") == _STREAMING else None
    return None


def is_expressible(parts: Iterable[Part]) -> bool:
    """Tell whether chunks exist that build exactly these parts and start no client tool again."""
    return all(_is_expressible(part) for part in parts)


def _is_expressible(part: Part) -> bool:
    if part.kind in STREAMED:
        return part.fields.keys() <= _TEXT_FIELDS
    if part.kind == "step-start":
        return not part.fields
    if part.kind in _WHOLE_FIELDS:
        return part.fields.keys() <= _WHOLE_FIELDS[part.kind]
    if part.kind.startswith("data-"):
        return part.fields.keys() <= {"id", "data"}
    if part.kind == "dynamic-tool" or part.kind.startswith("tool-"):
        return (
            part.fields.keys() <= _TOOL_FIELDS
            and part.state in ("output-available", "output-error")
            and "input" in part.fields
            and part.fields.get("preliminary", b"false") == b"false"
        )
    return False


def encode(parts: list[Part], adopt: tuple[str, bytes] | None = None) -> Iterator[Chunk]:
    """Return chunks that build these parts from nothing; they must be expressible.

    A tool with an outcome never passes through `input-available`, so that no client runs it again.
    Metadata of a text goes on its start and its end: the AI SDK reads either, the observer of the
    chat hook only the end. The part that `adopt` names stays open under the id given.
    """
    open_index = adopted(parts, adopt[0]) if adopt else None
    fresh = map("~b{}".format, count())
    for index, part in enumerate(parts):
        if part.text is not None:
            stays_open = index == open_index
            identifier = adopt[1] if adopt and stays_open else raw.quote(next(fresh))
            yield from _encode_text(part, identifier, stays_open)
        elif part.kind == "step-start":
            yield {"type": b'"start-step"'}
        elif part.call is not None:
            yield from _encode_tool(part)
        else:
            yield {"type": raw.quote(part.kind), **part.fields}


def _encode_text(part: Part, identifier: bytes, stays_open: bool) -> Iterator[Chunk]:
    metadata = {k: v for k, v in part.fields.items() if k == "providerMetadata"}
    yield {"type": raw.quote(f"{part.kind}-start"), "id": identifier, **metadata}
    if part.text:
        delta = b'"' + bytes(part.text) + b'"'
        yield {"type": raw.quote(f"{part.kind}-delta"), "id": identifier, "delta": delta}
    if not stays_open and part.fields.get("state") != _STREAMING:
        yield {"type": raw.quote(f"{part.kind}-end"), "id": identifier, **metadata}


def _encode_tool(part: Part) -> Iterator[Chunk]:
    name = part.fields.get("toolName") or raw.quote(part.kind.removeprefix("tool-"))
    call = part.fields["toolCallId"]
    start: Chunk = {"type": b'"tool-input-start"', "toolCallId": call, "toolName": name}
    if part.kind == "dynamic-tool":
        start["dynamic"] = b"true"
    start |= {k: v for k, v in part.fields.items() if k in ("providerExecuted", "title")}
    yield start
    yield tool_input(call, part.fields["input"])
    yield tool_outcome(call, part.fields)


def tool_input(call: bytes, value: bytes) -> Chunk:
    """Return the delta that carries the whole input of a tool, as text and as a value."""
    text = value.decode("utf-8", "replace")
    return {
        "type": b'"tool-input-delta"',
        "toolCallId": call,
        "inputTextDelta": raw.quote(text),
        "input": value,
    }


def tool_outcome(call: bytes, fields: dict[str, bytes]) -> Chunk:
    """Return the chunk that gives a tool its output or its error."""
    if fields.get("state") == b'"output-error"':
        error = fields.get("errorText", b'""')
        return {"type": b'"tool-output-error"', "toolCallId": call, "errorText": error}
    output = fields.get("output", b"null")
    preliminary = {k: v for k, v in fields.items() if k == "preliminary"}
    return {
        "type": b'"tool-output-available"',
        "toolCallId": call,
        "output": output,
        **preliminary,
    }


def joined(one: Chunk, other: Chunk) -> Chunk | None:
    """Return one delta that says what two adjacent ones say, or None if they are no such pair.

    Only deltas of one part that carry nothing but their text are joined.
    """
    field = _text_field(one)
    if field is None or _text_field(other) != field:
        return None
    name = "toolCallId" if "toolCallId" in one else "id"
    if one["type"] != other["type"] or one[name] != other[name]:
        return None
    return {**one, field: one[field][:-1] + other[field][1:]}


def length(chunk: Chunk) -> int:
    """Return how long a chunk is, so that joining leaves the sum as it was: the escaped text of a
    delta that can be joined, 1 for any other chunk.
    """
    field = _text_field(chunk)
    return 1 if field is None else len(chunk[field]) - 2


def without_head(chunk: Chunk, head: int) -> Chunk:
    """Return a delta without the first `head` bytes of its escaped text."""
    field = _text_field(chunk)
    return chunk if field is None else {**chunk, field: b'"' + chunk[field][1 + head :]}


def _text_field(chunk: Chunk) -> str | None:
    """Return the member that holds the text of a delta that carries nothing else."""
    field, name = "delta", "id"
    if "toolCallId" in chunk:
        field, name = "inputTextDelta", "toolCallId"
    if chunk.keys() != {"type", name, field} or chunk[field][:1] != b'"':
        return None
    return field
