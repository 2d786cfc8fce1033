"""Properties of reading and writing A2A frames, whatever they hold."""

import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from midstream.adapters import capture_format
from midstream.core import edit
from midstream.core.errors import EditError
from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.sse import SseSplitter
from midstream.dialects import a2a
from midstream.dialects.a2a_card import read_card
from midstream.dialects.a2a_write import (
    ArtifactEdit,
    changed,
    inserted,
    lifted,
    status_of,
    with_artifacts,
    without_message,
)

# --- documents whose text is known byte by byte ---------------------------------------------------

STRANGE = (
    "1e400",
    "1.10",
    "12345678901234567890123",
    '"\\ud83d"',
    '"\\u0041\\/"',
    "null",
    '{"a":[ ]}',
)
siblings = st.lists(
    st.tuples(st.sampled_from(["x", "y z", "\\u0061", ""]), st.sampled_from(STRANGE)), max_size=3
)
texts = st.text(st.characters(), max_size=12)  # lone surrogates included
plain_texts = st.text(max_size=12)
spaces = st.sampled_from(["", " ", "\t "])


class Updates:
    """Draws the JSON text of an artifact update, with a place for the text of each part."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.is_flat = draw(st.booleans())
        self.is_rpc = draw(st.booleans())
        self.has_kind = draw(st.booleans())
        self.count = draw(st.integers(1, 3))
        self.append = draw(st.sampled_from([None, True, False]))
        self._slots = [f"<<{index}>>" for index in range(self.count)]
        self._text = self._whole()

    def document(self, values: list[str]) -> str:
        text = self._text
        for slot, value in zip(self._slots, values, strict=True):
            text = text.replace(slot, value)
        return text

    def _whole(self) -> str:
        kind = [("kind", '"text"')] if self.has_kind else []
        parts = [self._object([*kind, ("text", slot)]) for slot in self._slots]
        artifact = self._object([("artifactId", '"a"'), ("parts", f"[{', '.join(parts)}]")])
        fields = [("taskId", '"t"'), ("artifact", artifact)]
        if self.append is not None:
            fields.append(("append", "true" if self.append else "false"))
        if self.is_flat:
            inner = self._object([("kind", '"artifact-update"'), *fields])
        else:
            inner = self._object([("artifactUpdate", self._object(fields))])
        if not self.is_rpc:
            return inner
        number = self._draw(st.sampled_from(["1", '"1"', "null", "1e400"]))
        return self._object([("jsonrpc", '"2.0"'), ("id", number), ("result", inner)])

    def _object(self, fields: list[tuple[str, str]]) -> str:
        members = self._draw(st.permutations([*fields, *self._draw(siblings)]))
        space = self._draw(spaces)
        return "{" + f",{space}".join(f'"{k}":{space}{v}' for k, v in members) + space + "}"


@st.composite
def updates(draw: st.DrawFn) -> Updates:
    return Updates(draw)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=any("\ud800" <= char <= "\udfff" for char in text))


@st.composite
def carried(draw: st.DrawFn, payload: str) -> Frame:
    """Draw a frame that carries a payload."""
    data = payload.encode()
    kind = draw(st.sampled_from([Kind.SSE, Kind.BODY, Kind.WS_TEXT]))
    if kind is not Kind.SSE:
        return Frame(Side.SERVER, kind, data)
    end = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    before = draw(st.sampled_from([[], [b"event: jsonrpc", b"id: 1"], [b": x"]]))
    after = draw(st.sampled_from([[], [b"id: 2"], [b"retry: 3"]]))
    wire = end.join([*before, b"data: " + data, *after, b"", b""])
    return Frame(Side.SERVER, kind, draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + wire)


def update_of(frame: Frame) -> a2a.ArtifactUpdate:
    event = a2a.read(Frame(frame.sender, frame.kind, frame.wire))
    assert isinstance(event, a2a.ArtifactUpdate), event
    return event


@given(updates(), st.data())
def test_a_change_of_texts_changes_these_texts_and_no_other_byte(
    drawn: Updates, data: st.DataObject
) -> None:
    before = data.draw(st.lists(texts, min_size=drawn.count, max_size=drawn.count))
    frame = data.draw(carried(drawn.document([json.dumps(text) for text in before])))
    update = update_of(frame)
    assert [part.text for part in update.parts] == before
    assert changed(frame, update).wire == frame.wire
    new = data.draw(st.dictionaries(st.integers(0, drawn.count - 1), texts))
    left = changed(frame, update, texts=new)
    values = [
        quoted(new[i]) if i in new and new[i] != before[i] else json.dumps(before[i])
        for i in range(drawn.count)
    ]
    assert left.payload == drawn.document(values).encode()
    assert len(left.wire) - len(frame.wire) == len(left.payload) - len(frame.payload)
    assert update_of(left) == a2a.read(left)


@given(updates(), texts, st.booleans(), st.booleans(), st.data())
def test_an_inserted_update_is_read_as_what_was_asked_for(
    drawn: Updates, text: str, append: bool, last: bool, data: st.DataObject
) -> None:
    frame = data.draw(carried(drawn.document(['"old"'] * drawn.count)))
    model = update_of(frame)
    left = inserted(frame, model, text, append=append, last=last)
    expected = msgspec.structs.replace(model, parts=(a2a.Part(text),), append=append, last=last)
    assert update_of(left) == expected
    part = edit.get(left.payload, (*model.at, "artifact", "parts", 0))
    kind = '"kind":"text",' if drawn.has_kind else ""
    assert part == f'{{{kind}"text":{quoted(text)}}}'.encode()
    if frame.kind is Kind.SSE:
        splitter = SseSplitter(1 << 20)
        assert [*splitter.receive(left.wire + left.wire), splitter.flush()] in (
            [left.wire, left.wire, b""],
            [left.wire, left.wire],  # a bare CR at the end waits for what may follow
        )
        assert b"id:" not in left.wire.replace(left.payload, b"")
        assert (b"event: jsonrpc" in left.wire) == (b"event: jsonrpc" in frame.wire)


@given(updates(), st.data())
def test_flags_parts_and_mode_leave_all_siblings(drawn: Updates, data: st.DataObject) -> None:
    frame = data.draw(carried(drawn.document([f'"{i}"' for i in range(drawn.count)])))
    update = update_of(frame)
    append = data.draw(st.sampled_from([None, True, False]))
    last = data.draw(st.sampled_from([None, True, False]))
    removed = data.draw(st.sets(st.integers(0, drawn.count - 1)))
    mode = data.draw(st.sampled_from(["", "delta"]))
    left = changed(frame, update, removed=removed, append=append, last=last, stream_mode=mode)
    found = update_of(left)
    assert found == a2a.read(left)
    assert found.append is (update.append if append is None else append)
    assert found.last is bool(last)
    assert found.stream_mode == mode
    kept = [str(i) for i in range(drawn.count) if i not in removed]
    assert [part.text for part in found.parts] == kept
    for strange in STRANGE:
        if strange not in ("null", "1.10"):
            inside = left.payload.count(strange.encode())
            gone = sum(
                (edit.get(frame.payload, (*update.at, "artifact", "parts", i)) or b"").count(
                    strange.encode()
                )
                for i in removed
            )
            assert inside == frame.payload.count(strange.encode()) - gone


# --- JSON and msgpack -----------------------------------------------------------------------------

parts: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries({"text": plain_texts}, optional={"kind": st.just("text")})
    | st.fixed_dictionaries({"data": st.integers(-9, 9) | st.just([None, {}])}),
    max_size=3,
)
messages = st.fixed_dictionaries(
    {"messageId": plain_texts, "role": st.sampled_from(["agent", "ROLE_USER"])},
    optional={"parts": parts, "content": parts},
)
statuses = st.fixed_dictionaries(
    {"state": st.sampled_from(["working", "TASK_STATE_COMPLETED", "input-required", "odd"])},
    optional={"message": messages, "timestamp": plain_texts},
)
artifacts = st.fixed_dictionaries(
    {"artifactId": plain_texts},
    optional={"parts": parts, "name": plain_texts, "metadata": st.just({"streamMode": "delta"})},
)
ids = {"taskId": plain_texts, "contextId": plain_texts}
objects = st.one_of(
    st.tuples(
        st.just("artifact-update"),
        st.fixed_dictionaries(
            {"artifact": artifacts},
            optional=ids | {"append": st.booleans(), "lastChunk": st.booleans() | st.none()},
        ),
    ),
    st.tuples(
        st.just("status-update"),
        st.fixed_dictionaries({"status": statuses}, optional=ids | {"final": st.booleans()}),
    ),
    st.tuples(
        st.just("task"),
        st.fixed_dictionaries(
            {"id": plain_texts, "status": statuses},
            optional={
                "artifacts": st.lists(artifacts, max_size=3),
                "history": st.lists(messages, max_size=2),
            },
        ),
    ),
    st.tuples(st.just("message"), messages),
)
WRAPPERS = {"artifact-update": "artifactUpdate", "status-update": "statusUpdate"}


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    kind, found = draw(objects)
    tree = {"kind": kind, **found} if draw(st.booleans()) else {WRAPPERS.get(kind, kind): found}
    return {"jsonrpc": "2.0", "id": 1, "result": tree} if draw(st.booleans()) else tree


def both(tree: dict[str, Any]) -> tuple[Frame, Frame]:
    text = Frame(Side.SERVER, Kind.WS_TEXT, json.dumps(tree).encode())
    return text, Frame(Side.SERVER, Kind.WS_BINARY, msgspec.msgpack.encode(tree))


def plain(event: object, *, packed: bool) -> Any:
    """Return an event as plain values, the bytes of its parts decoded."""

    def decoded(value: Any) -> Any:
        if isinstance(value, bytes):
            decode = msgspec.msgpack.decode if packed else json.loads
            return decode(value) if value else None
        if isinstance(value, dict):
            return {key: decoded(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [decoded(item) for item in value]
        return value

    return type(event).__name__, decoded(msgspec.to_builtins(event, builtin_types=(bytes,)))


@given(trees())
def test_json_and_msgpack_are_read_alike(tree: dict[str, Any]) -> None:
    text, packed = both(tree)
    event = a2a.read(text)
    assert isinstance(event, a2a.ArtifactUpdate | a2a.StatusUpdate | a2a.Task | a2a.Message)
    assert plain(event, packed=False) == plain(a2a.read(packed), packed=True)


@given(trees())
def test_the_careful_reading_gives_what_the_fast_one_gives(tree: dict[str, Any]) -> None:
    text = both(tree)[0]
    slow = text.wire[:-1] + b',"":"\\ud83d"}'  # which msgspec refuses
    assert a2a.read(Frame(Side.SERVER, Kind.WS_TEXT, slow)) == a2a.read(text)


@given(trees(), plain_texts, st.booleans())
def test_json_and_msgpack_are_written_alike(tree: dict[str, Any], text: str, flag: bool) -> None:
    made: list[list[Any]] = []
    for frame in both(tree):
        decode = json.loads if frame.kind is Kind.WS_TEXT else msgspec.msgpack.decode
        made.append([])
        for left in all_edits(frame, text, flag=flag):
            made[-1].append(decode(left.payload))
            assert isinstance(a2a.read(left), a2a.ArtifactUpdate | a2a.StatusUpdate | a2a.Task)
            again = a2a.read(Frame(left.sender, left.kind, left.wire))
            assert again == a2a.read(left)
    assert made[0] == made[1]


def all_edits(frame: Frame, text: str, *, flag: bool) -> list[Frame]:
    """Return what each writer makes of a frame."""
    event = a2a.read(frame)
    if isinstance(event, a2a.ArtifactUpdate):
        wanted = {i: text for i, part in enumerate(event.parts) if part.text is not None}
        return [
            changed(frame, event, texts=wanted, append=flag, last=not flag, stream_mode="delta"),
            changed(frame, event, removed=range(len(event.parts))),
            inserted(frame, event, text, append=flag, last=flag),
        ]
    if isinstance(event, a2a.StatusUpdate):
        return [
            without_message(frame, event),
            lifted(frame, event, text, text, append=flag),
        ]
    if isinstance(event, a2a.Task):
        edits = {one.index: ArtifactEdit({}, range(len(one.parts))) for one in event.artifacts}
        return [
            without_message(frame, event),
            with_artifacts(frame, event, edits),
            status_of(frame, event),
        ]
    return []


# --- junk -----------------------------------------------------------------------------------------

KEYS = (
    "kind",
    "artifactUpdate",
    "statusUpdate",
    "task",
    "message",
    "id",
    "taskId",
    "contextId",
    "artifact",
    "append",
    "lastChunk",
    "status",
    "final",
    "artifacts",
    "history",
    "messageId",
    "role",
    "parts",
    "content",
    "metadata",
    "jsonrpc",
    "result",
    "error",
    "artifactId",
    "name",
    "state",
    "text",
    "data",
    "raw",
    "url",
    "file",
    "code",
    "streamMode",
    "adk_event_id",
    "adk_thought",
    "interfaces",
    "supportedInterfaces",
    "additionalInterfaces",
    "transport",
    "method",
)
WORDS = ("artifact-update", "status-update", "task", "message", "working", "text", "a", "\ud83d")
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)
CAPTURES = sorted((Path(__file__).parents[1] / "captures" / "a2a").glob("*.cap"))
RECORDED = [
    record.received.wire
    for capture in CAPTURES
    for record in capture_format.read(capture)
    if record.received is not None
]
READ = (
    a2a.ArtifactUpdate, a2a.StatusUpdate, a2a.Task, a2a.Message, a2a.Failure, a2a.Unreadable,
    type(None),
)  # fmt: skip
HEAD = RequestHead("POST", "/")


def check_all_readers(wire: bytes) -> None:
    for kind in Kind:
        frame = Frame(Side.SERVER, kind, wire)
        event = a2a.read(frame)
        assert isinstance(event, READ)
        assert a2a.read(frame) == event
        assert a2a.read_request(Frame(Side.CLIENT, kind, wire), HEAD) in (None, *a2a.Asked)
        if not isinstance(event, a2a.ArtifactUpdate | a2a.StatusUpdate | a2a.Task):
            continue
        with contextlib.suppress(EditError):
            all_edits(frame, "x", flag=True)
    read_card(wire)


@given(st.dictionaries(st.sampled_from(KEYS), junk, max_size=6))
def test_no_json_makes_a_reader_fail(tree: dict[str, Any]) -> None:
    check_all_readers(json.dumps(tree).encode())
    check_all_readers(b"data: " + json.dumps(tree).encode() + b"\n\n")


@given(st.dictionaries(st.sampled_from(KEYS), junk, max_size=6))
def test_no_msgpack_makes_a_reader_fail(tree: dict[str, Any]) -> None:
    text = json.dumps(tree, ensure_ascii=True).replace("\\ud83d", "?")
    try:
        packed = msgspec.msgpack.encode(json.loads(text))
    except (OverflowError, UnicodeEncodeError):  # an integer of more than 64 bits
        return
    check_all_readers(packed)


@given(st.binary(max_size=40), st.sampled_from(RECORDED), st.data())
def test_no_damage_makes_a_reader_fail(noise: bytes, wire: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(wire)))
    cut = data.draw(st.integers(0, 40))
    check_all_readers(wire[:at] + noise + wire[at + cut :])
    check_all_readers(noise)
