"""The frames of the chat protocol: what is read, what is not, and what is made."""

import json
from typing import Any

import msgspec
import pytest

from midstream.core import edit
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import cloudflare_chat as chat


def frame(wire: bytes | dict[str, Any], side: Side = Side.SERVER) -> Frame:
    return Frame(side, Kind.WS_TEXT, wire if isinstance(wire, bytes) else json.dumps(wire).encode())


def read(fields: dict[str, Any]) -> chat.Message | None:
    return chat.read(frame(fields))


def test_every_frame_of_the_protocol_is_read_whatever_the_order_of_its_keys() -> None:
    response = read({"body": "{}", "done": True, "id": "R", "type": "cf_agent_use_chat_response"})
    assert response == chat.Response("R", "{}", done=True)
    assert read({"id": "R", "type": "cf_agent_stream_resuming", "new": 1}) == chat.Resuming("R")
    assert read({"type": "cf_agent_stream_resume_ack", "id": "R"}) == chat.ResumeAck("R")
    assert read({"type": "cf_agent_chat_clear"}) == chat.Clear()
    assert read({"type": "cf_agent_identity", "name": "x"}) == chat.Identity()
    assert read({"type": "cf_agent_stream_resume_none", "reason": "idle"}) == chat.ResumeNone()
    messages = read({"type": "cf_agent_chat_messages", "messages": [{"a": 1.0}]})
    assert isinstance(messages, chat.MessageList)
    assert bytes(messages.messages[0]) == b'{"a": 1.0}'
    updated = read({"type": "cf_agent_message_updated", "message": {}})
    assert isinstance(updated, chat.MessageUpdated)
    result = read({"type": "cf_agent_tool_result", "toolCallId": "c", "output": [1]})
    assert isinstance(result, chat.ToolResult)
    assert (bytes(result.output), result.autoContinue) == (b"[1]", True)
    approval = {"type": "cf_agent_tool_approval", "toolCallId": "c", "autoContinue": False}
    assert read(approval) == chat.ToolApproval("c", autoContinue=False)


def test_the_probe_of_a_question_keeps_its_bytes() -> None:
    asked = chat.read(frame(b'{"type":"cf_agent_stream_resume_request","probeId": "p\\u0041"}'))
    assert isinstance(asked, chat.ResumeRequest)
    assert asked.probeId is not msgspec.UNSET
    assert bytes(asked.probeId) == b'"p\\u0041"'
    bare = read({"type": "cf_agent_stream_resume_request"})
    assert isinstance(bare, chat.ResumeRequest)
    assert bare.probeId is msgspec.UNSET


@pytest.mark.parametrize(
    "wire",
    [
        b"", b"null", b"{}", b"[]", b"x", b'{"type":"rpc"}', b'{"type":"cf_agent_state"}',
        b'{"type":"cf_agent_never_seen"}', b'{"type":7,"x":"cf_agent_"}', b'["cf_agent_"]',
        b'"cf_agent_', b'{"type":"cf_agent_never_seen","x":"\\ud83d"}',
    ],
)  # fmt: skip
def test_what_is_not_of_the_protocol_is_not_read(wire: bytes) -> None:
    assert chat.read(frame(wire)) is None


@pytest.mark.parametrize(
    "wire",
    [
        b'{"type":"cf_agent_use_chat_response"}',
        b'{"type":"cf_agent_use_chat_response","id":7}',
        b'{"type":"cf_agent_use_chat_response","id":"R","body":"\\ud83d"}',
        b'{"type":"cf_agent_chat_messages","messages":{}}',
        b'{"type":"cf_agent_stream_resuming"}',
    ],
)
def test_a_frame_of_the_wrong_shape_is_told_apart(wire: bytes) -> None:
    assert isinstance(chat.read(frame(wire)), chat.Unreadable)


@pytest.mark.parametrize("kind", [Kind.WS_BINARY, Kind.SSE, Kind.BODY])
def test_only_text_messages_are_read(kind: Kind) -> None:
    wire = b'{"type":"cf_agent_chat_clear"}'
    assert chat.read(Frame(Side.SERVER, kind, wire)) is None


def test_a_frame_is_read_once() -> None:
    one = frame({"type": "cf_agent_chat_clear"})
    assert chat.read(one) is chat.read(one)
    other = frame({"type": "cf_agent_never_seen"})
    assert chat.read(other) is None
    assert other.reading is False


def test_half_a_character_in_a_message_hides_neither_list_nor_update() -> None:
    messages = chat.read(
        frame(b'{"type":"cf_agent_chat_messages","messages":[{"id":"A","x":"\\ud83d"},{"id":"B"}]}')
    )
    assert isinstance(messages, chat.MessageList)
    assert len(messages.messages) == 2
    updated = chat.read(
        frame(b'{"type":"cf_agent_message_updated","message":{"id":"A","x":"\\ud83d"}}')
    )
    assert isinstance(updated, chat.MessageUpdated)
    assert bytes(updated.message) == b'{"id":"A","x":"\\ud83d"}'
    assert chat.read(frame(b'{"type":"cf_agent_message_updated","x":"\\ud83d"}')) is None


def turn(body: str, method: str = "POST") -> chat.ChatRequest:
    read_turn = read(
        {"type": "cf_agent_use_chat_request", "id": "x", "init": {"method": method, "body": body}}
    )
    assert isinstance(read_turn, chat.ChatRequest)
    return read_turn


def test_the_upload_of_a_turn_is_read_once() -> None:
    one = turn('{"messages":[{"id":"A","n":1e400}],"trigger":"submit-message"}')
    upload = chat.read_upload(one)
    assert upload == chat.Upload([b'{"id":"A","n":1e400}'], "submit-message")
    assert chat.read_upload(one) is upload
    lone = chat.read_upload(turn('{"messages":[{"id":"\\ud83d"}],"trigger":"x"}'))
    assert lone == chat.Upload([b'{"id":"\\ud83d"}'], "x")


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "{}", '{"messages":7}', '{"messages":{"a":"\\ud83d"}}']
)
def test_a_turn_without_messages_has_no_upload(body: str) -> None:
    assert chat.read_upload(turn(body)) is None


def test_only_a_post_has_an_upload() -> None:
    assert chat.read_upload(turn('{"messages":[]}', "GET")) is None


def test_a_turn_can_be_given_its_upload() -> None:
    upload = chat.Upload([], "x")
    assert chat.ChatRequest.holding("r", upload).upload is upload


@pytest.mark.parametrize(
    ("message", "head"),
    [
        (b'{"id":"A","role":"user"}', ("A", "user")),
        (b"{}", ("", "")),
        (b'{"id":"A","role":"user","x":"\\ud83d"}', ("A", "user")),
        (b'{"id":1,"role":"user"}', None),
        (b"[]", None),
        (b"7", None),
        (b'{"id":"\\ud83d","role":7}', None),
    ],
)
def test_a_message_is_known_by_id_and_role(message: bytes, head: tuple[str, str] | None) -> None:
    found = chat.read_message_head(message)
    assert (None if found is None else (found.id, found.role)) == head


def test_a_chunk_is_read_from_the_body_unless_it_is_prose() -> None:
    assert chat.read_chunk(chat.Response("R", '{"type":"start"}')) == {"type": b'"start"'}
    for body, error in (("", False), ("No response", False), ('{"type":"x"}', True), ("[]", False)):
        assert chat.read_chunk(chat.Response("R", body, error=error)) is None


def test_frames_the_product_makes_are_read_as_what_they_are() -> None:
    assert chat.read(chat.resume_ack("é")) == chat.ResumeAck("é")
    assert chat.resume_ack("R").sender is Side.CLIENT
    offer = chat.resuming("R", b'"p"')
    assert json.loads(offer.wire) == {"type": "cf_agent_stream_resuming", "id": "R", "probeId": "p"}
    assert "probeId" not in json.loads(chat.resuming("R", None).wire)
    assert json.loads(chat.resume_none(b"7").wire)["probeId"] == 7
    assert chat.read(chat.resume_none(None)) == chat.ResumeNone()
    messages = chat.read(chat.message_list([b'{"n":1e400}']))
    assert isinstance(messages, chat.MessageList)
    assert isinstance(chat.read(chat.message_updated(b"{}")), chat.MessageUpdated)


def test_a_frame_given_another_chunk_keeps_everything_else() -> None:
    one = frame(b'{ "body" : "{}" , "n":1e400, "type":"cf_agent_use_chat_response","id":"\\u0041"}')
    replay = edit.Set(("replay",), b"true")
    other = chat.with_chunk(one, {"type": b'"x"', "d": b'"\\ud83d"'}, replay)
    assert other.wire == (
        b'{ "body" : "{\\"type\\":\\"x\\",\\"d\\":\\"\\\\ud83d\\"}" , "n":1e400, '
        b'"type":"cf_agent_use_chat_response","id":"\\u0041","replay":true}'
    )


JSON = (("Content-Type", "application/json"),)


@pytest.mark.parametrize(
    ("head", "reads"),
    [
        (RequestHead("GET", "/agents/a/b", (("Upgrade", "websocket"),)), True),
        (RequestHead("GET", "/agents/a/b/get-messages?x=1", ()), True),
        (RequestHead("GET", "/agents/a/b", ()), False),
        (RequestHead("POST", "/agents/a/b", JSON), True),
        (RequestHead("POST", "/agents/a/b", (("Content-Type", "text/plain"),)), False),
    ],
)
def test_the_dialect_reads_what_may_be_a_chat(head: RequestHead, reads: bool) -> None:
    assert chat.DIALECT.reads(head) == reads


def test_a_chat_and_the_fetch_of_its_messages_are_one_conversation() -> None:
    paths = [
        chat.DIALECT.conversation_path(RequestHead("GET", target, ()))
        for target in ("/agents/a/b?_pk=1", "/agents/a/b/get-messages?token=x")
    ]
    assert paths == ["/agents/a/b"] * 2


def test_only_messages_that_were_found_are_read() -> None:
    head = RequestHead("GET", "/agents/a/b/get-messages", ())
    post = RequestHead("POST", "/agents/a/b", JSON)
    for request, status, is_read in ((head, 200, True), (head, 404, False), (post, 200, False)):
        assert chat.DIALECT.reads_response(request, ResponseHead(status, JSON)) == is_read
