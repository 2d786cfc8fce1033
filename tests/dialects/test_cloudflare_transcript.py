"""What the wire has told about a chat: messages, baselines, and each chunk once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.documents import dumps, loads
from tests.addons.replay_overlap.scenes import many
from tests.addons.replay_overlap.streams import Piece, segments, whole

from midstream.core import raw
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects import cloudflare_transcript
from midstream.dialects.cloudflare_transcript import Place, Transcript

TOOL = {"type": "tool-x", "toolCallId": "c", "state": "input-available", "input": {}}
BASE: dict[str, Any] = {"id": "A", "role": "assistant", "parts": [TOOL], "metadata": {"m": 1}}
USER = {"id": "u", "role": "user", "parts": []}


class Told:
    """A transcript and the sockets that tell it."""

    def __init__(self, *messages: dict[str, Any], max_bytes: int = 1 << 20) -> None:
        self.transcript = Transcript(max_bytes)
        self.sockets: dict[int, dict[str, Place]] = {}
        if messages:
            self.list(*messages)

    def list(self, *messages: dict[str, Any], from_server: bool = True) -> None:
        self.transcript.set_list([dumps(m) for m in messages], from_server=from_server)

    def chunk(
        self, fields: dict[str, Any], socket: int = 1, stream: str = "R", **more: Any
    ) -> None:
        body = dumps(fields).decode()
        self.transcript.respond(
            chat.Response(stream, body, **more),
            dumps({"body": body}),
            self.sockets.setdefault(socket, {}),
        )

    def shown(self, identifier: str) -> dict[str, Any]:
        message = self.transcript.find(identifier)
        assert message is not None
        found: dict[str, Any] = loads(self.transcript.current(message))
        return found


def said(parts: list[dict[str, Any]]) -> str:
    return "".join(part.get("text", "") for part in parts)


def responses(*chunks: dict[str, Any]) -> list[chat.Response]:
    return [chat.Response("R", dumps(chunk).decode(), replay=True) for chunk in chunks]


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": words}]


START = {"type": "start"}


def test_a_continuation_extends_the_last_assistant_message_as_it_was() -> None:
    told = Told(USER, BASE)
    for chunk in (START, *text("x")):
        told.chunk(chunk)
    stream = told.transcript.streams["R"]
    assert stream.is_continuation
    assert stream.target == "A"
    assert loads(stream.base.json(stream.base.parts)) == BASE
    assert told.shown("A")["parts"][0] == TOOL
    assert said(told.shown("A")["parts"]) == "x"
    told.transcript.end("R")
    assert told.transcript.streams == {}
    assert said(told.shown("A")["parts"]) == "x"
    assert told.shown("A")["metadata"] == {"m": 1}


def test_a_first_turn_begins_with_nothing() -> None:
    told = Told(USER)
    for chunk in ({"type": "start", "messageId": "N"}, *text("x")):
        told.chunk(chunk)
    stream = told.transcript.streams["R"]
    assert not stream.is_continuation
    assert stream.base.parts == []
    assert said(told.shown("N")["parts"]) == "x"


def test_an_answer_given_again_begins_with_nothing_too() -> None:
    told = Told(USER, BASE)
    told.chunk({"type": "start", "messageId": "A"})
    assert told.transcript.streams["R"].base.parts == []


@pytest.mark.parametrize("start", [START, {"type": "start", "messageId": "N"}])
def test_without_messages_no_baseline_is_known(start: dict[str, Any]) -> None:
    told = Told()
    told.chunk(start)
    assert told.transcript.streams == {}


def test_a_message_that_cannot_be_taken_apart_is_no_baseline() -> None:
    told = Told(USER, {**BASE, "parts": [7]})
    told.chunk(START)
    assert told.transcript.streams == {}


@many(0.25)
@given(segments, st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40)), max_size=12))
def test_each_chunk_is_folded_once_however_many_sockets_carry_it(
    drawn: list[Piece], steps: list[tuple[int, int]]
) -> None:
    chunks = whole(drawn)
    alone, told = Told(USER, BASE), Told(USER, BASE)
    for chunk in chunks:
        alone.chunk(chunk)
    at = {1: 0, 2: 0, 3: 0}
    for socket, count in [*steps, (1, 99)]:
        if count == 0:  # it comes back, and gets all from the beginning
            at[socket] = 0
        ahead = at[socket] + count if socket == 1 else min(at[socket] + count, at[1])
        for chunk in chunks[at[socket] : ahead]:
            told.chunk(chunk, socket)
        at[socket] = max(at[socket], min(ahead, len(chunks)))
    assert told.transcript.streams["R"].fold.parts == alone.transcript.streams["R"].fold.parts
    assert told.transcript.streams["R"].exact


def test_a_socket_that_comes_in_the_middle_tells_nothing() -> None:
    told = Told(USER, BASE)
    told.chunk(START)
    told.chunk(text("x")[0], socket=2)
    assert len(told.transcript.streams["R"].fold.parts) == 1


def test_joined_deltas_are_as_long_as_what_they_were_joined_of() -> None:
    told = Told(USER, BASE)
    for chunk in (START, *text("ab"), {"type": "text-delta", "id": "t", "delta": "cd"}):
        told.chunk(chunk)
    for chunk in (START, *text("abcdef")):
        told.chunk(chunk, socket=2)
    told.chunk({"type": "text-delta", "id": "t", "delta": "g"}, socket=2)
    assert said(told.shown("A")["parts"]) == "abcdefg"


def test_what_was_missed_in_between_makes_a_stream_inexact() -> None:
    told = Told(USER, BASE)
    told.chunk(START)
    told.transcript.streams["R"].applied = 0
    told.chunk(text("x")[0])
    assert not told.transcript.streams["R"].exact
    told.transcript.end("R")
    assert not told.transcript.is_known


def test_a_continuation_that_names_its_message_was_built_by_another_repair() -> None:
    told = Told(USER, BASE)
    told.chunk({"type": "start", "messageId": "A"}, continuation=True)
    assert not told.transcript.streams["R"].exact
    told = Told(USER, BASE)
    told.chunk(START)
    assert told.transcript.streams["R"].exact
    told.chunk({"type": "start", "messageId": "A"}, socket=2, continuation=True, replay=True)
    assert not told.transcript.streams["R"].exact


def test_a_whole_replay_is_taken_for_true() -> None:
    told = Told(USER, BASE)
    for chunk in (START, *text("one")):
        told.chunk(chunk)
    told.transcript.refold("R", responses(START, *text("other words")))
    assert said(told.shown("A")["parts"]) == "other words"


def test_a_replay_that_lags_behind_tells_nothing_new() -> None:
    told = Told(USER, BASE)
    for chunk in (START, *text("long words")):
        told.chunk(chunk)
    told.transcript.refold("R", responses(START, *text("long")))
    assert said(told.shown("A")["parts"]) == "long words"
    told.transcript.refold("Q", responses(START))


def test_a_stream_that_begins_ends_the_one_before_unseen() -> None:
    told = Told(USER, BASE)
    told.chunk(START)
    told.chunk({"type": "start", "messageId": "N"}, stream="R2")
    assert list(told.transcript.done) == ["R"]
    assert told.transcript.streams == {}  # what became of the first is not known


def test_a_stream_that_is_over_does_not_begin_again() -> None:
    told = Told(USER, BASE)
    told.chunk(START)
    told.transcript.end("R")
    told.chunk(START)
    told.chunk(text("x")[0])
    assert told.transcript.streams == {}
    assert told.shown("A") == BASE


def test_prose_in_a_stream_makes_it_inexact_and_an_error_does_not() -> None:
    for more, is_exact in (({}, False), ({"error": True}, True)):
        told = Told(USER, BASE)
        told.chunk(START)
        response = chat.Response("R", "No response", done=True, **more)
        told.transcript.respond(response, b"", {})
        assert told.transcript.streams["R"].exact == is_exact


def test_a_list_keeps_what_is_running() -> None:
    told = Told(USER, BASE)
    told.chunk({"type": "start", "messageId": "N"})
    told.chunk(text("x")[0])
    told.list(USER, BASE)
    assert [m.id for m in told.transcript.messages] == ["u", "A", "N"]


def test_the_list_at_the_end_holds_the_outcome_under_whatever_message() -> None:
    told = Told(USER, BASE)
    for chunk in (START, *text("x")):
        told.chunk(chunk)
    row = {"id": "row", "role": "assistant", "parts": [{"type": "text", "text": "x"}]}
    told.list(USER, BASE, row)
    assert told.shown("A") == BASE
    told.transcript.end("R")
    assert told.shown("A") == BASE
    assert told.shown("row") == row


def test_a_list_of_the_client_does_not_hold_the_outcome() -> None:
    told = Told(USER, BASE)
    for chunk in (START, *text("x")):
        told.chunk(chunk)
    told.list(USER, BASE, from_server=False)
    told.transcript.end("R")
    assert said(told.shown("A")["parts"]) == "x"


def test_a_list_in_the_middle_does_not_either() -> None:
    told = Told(USER, BASE)
    told.chunk(START)
    told.list(USER, BASE)
    for chunk in text("x"):
        told.chunk(chunk)
    told.transcript.end("R")
    assert said(told.shown("A")["parts"]) == "x"


def test_an_outcome_reaches_the_baseline_and_nothing_else_does() -> None:
    told = Told(USER, BASE)
    for chunk in (START, *text("x")):
        told.chunk(chunk)
    answered = {**TOOL, "state": "output-available", "output": 1}
    more = {"type": "text", "text": "already"}
    told.transcript.update(dumps({**BASE, "parts": [answered, more]}))
    stream = told.transcript.streams["R"]
    assert loads(stream.base.json(stream.base.parts))["parts"] == [answered]
    assert said(told.shown("A")["parts"]) == "x"
    told.transcript.update(b'{"id":"A","role":"assistant","parts":7}')
    assert told.shown("A")["parts"][0] == answered


def test_an_update_replaces_the_message_with_its_id_and_adds_none() -> None:
    told = Told(USER, BASE)
    told.transcript.update(dumps({**BASE, "parts": []}))
    told.transcript.update(dumps({**BASE, "id": "Z"}))
    told.transcript.update(b"[]")
    assert told.shown("A")["parts"] == []
    assert [m.id for m in told.transcript.messages] == ["u", "A"]
    assert told.transcript.size_bytes == sum(len(m.document) for m in told.transcript.messages)


@pytest.mark.parametrize("wrong", [7, None, [], {"id": 1}, {"role": "user", "id": []}])
def test_a_list_that_is_none_of_messages_is_not_known(wrong: Any) -> None:
    told = Told(USER, BASE)
    told.transcript.set_list([dumps(USER), dumps(wrong)], from_server=True)
    assert not told.transcript.is_known
    assert told.transcript.messages == []


def test_a_list_too_large_to_remember_is_not_known() -> None:
    told = Told(USER, {**BASE, "parts": [{"type": "text", "text": "x" * 200}]}, max_bytes=100)
    assert not told.transcript.is_known
    assert told.transcript.size_bytes == 0


def test_an_answer_too_large_to_remember_is_forgotten_at_its_end() -> None:
    told = Told(USER, BASE, max_bytes=600)
    for chunk in (START, *text("x" * 500)):
        told.chunk(chunk)
    assert told.transcript.total_bytes > 500
    told.transcript.end("R")
    assert not told.transcript.is_known
    assert told.transcript.total_bytes == 0


def test_only_the_last_streams_that_ended_are_remembered() -> None:
    told = Told(USER, BASE)
    for number in range(100):
        told.chunk(START, stream=f"s{number}")
        told.transcript.end(f"s{number}")
    assert len(told.transcript.done) == cloudflare_transcript.MAX_DONE_STREAMS
    told.transcript.end("never seen")


def test_clearing_forgets_the_messages_and_remembers_that_streams_are_over() -> None:
    told = Told(USER, BASE)
    told.chunk(START)
    told.transcript.clear()
    assert told.transcript.messages == []
    assert told.transcript.is_known
    told.chunk(START)
    assert told.transcript.streams == {}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudflare_transcript, "STORED_CHUNK_BYTES", 100)


@pytest.mark.usefixtures("small")
def test_a_chunk_too_large_to_be_stored_is_kept_with_its_place() -> None:
    told = Told(USER, BASE)
    large = {"type": "data-large", "data": "x" * 200}
    for socket in (1, 2):
        for chunk in (START, *text("ab"), large, {**large, "data": "y" * 200}):
            told.chunk(chunk, socket)
    stream = told.transcript.streams["R"]
    assert [(u.position, json.loads(u.chunk["data"])[0]) for u in stream.unstored] == [
        (4, "x"),
        (4, "y"),
    ]
    assert len(stream.fold.parts) == 4
    told.chunk(large, 3, replay=True)
    told.transcript.refold("R", responses(START, *text("abc")))
    assert len(stream.unstored) == 2
    assert [part.kind for part in stream.fold.parts][-2:] == ["data-large"] * 2


@pytest.mark.usefixtures("small")
def test_chunks_too_large_to_be_kept_make_the_stream_inexact() -> None:
    told = Told(USER, max_bytes=1_000)
    told.chunk({"type": "start", "messageId": "N"})
    told.chunk({"type": "data-large", "data": "x" * 2_000})
    stream = told.transcript.streams["R"]
    assert not stream.exact
    assert stream.unstored == []


def test_taking_apart_and_putting_together_keeps_the_bytes_of_every_value() -> None:
    document = b'{"id":"A","n":1e400,"role":"assistant","parts":[{"type":"data-x","data":[1.0]}]}'
    snapshot = cloudflare_transcript.take_apart(document)
    assert snapshot.json(snapshot.parts) == document
    merged = snapshot.json([], b'{"a":1}')
    assert raw.members(merged)["metadata"] == b'{"a":1}'
