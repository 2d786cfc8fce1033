"""What frames mean in words: of every dialect, and where nobody knows."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream import describing
from midstream.adapters.capture_format import read
from midstream.adapters.capture_heads import request_head
from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import RecordKind

ALL = sorted((Path(__file__).parent / "captures").rglob("*.cap"))
CHAT = ["a2a", "cloudflare_chat"]


def message(value: object, sender: Side = Side.SERVER) -> Frame:
    return Frame(sender, Kind.WS_TEXT, json.dumps(value).encode())


def event(value: object, sender: Side = Side.SERVER) -> Frame:
    return Frame(sender, Kind.SSE, b"data: " + json.dumps(value).encode() + b"\n\n")


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_nearly_every_frame_of_a_known_format_is_told_in_its_words(path: Path):
    dialects: dict[int, list[str]] = {}
    known: Counter[bool] = Counter()
    for record in read(path):
        if record.kind is RecordKind.OPEN:
            dialects[record.exchange] = describing.dialects_of(request_head(record))
        frame = record.received
        if frame is not None:
            names = dialects[record.exchange]
            known[describing.is_known(names, frame)] += 1
            assert 0 < len(describing.in_words(names, frame)) < describing.MAX_WORDS
    assert known[True] >= 0.95 * known.total() > 0


def response(body: object = "", **more: object) -> Frame:
    text = body if isinstance(body, str) else json.dumps(body)
    return message({"type": "cf_agent_use_chat_response", "id": "r1", "body": text, **more})


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (response({"type": "text-delta", "id": "t", "delta": "Hi"}),
         "response r1: text-delta 'Hi'"),
        (response({"type": "tool-input-start", "toolName": "look"}, replay=True),
         "response r1: tool-input-start look (replay)"),
        (response(done=True), "response r1: end"),
        (message({"type": "cf_agent_state", "state": {"a": 1, "b": 2}}), "state: a, b"),
        (message({"type": "rpc", "id": "7", "method": "add", "args": [1]}, Side.CLIENT),
         "rpc 7 calls add"),
        (message({"type": "rpc", "id": "7", "success": True, "result": 3, "done": False}),
         "rpc 7 answers, more to come"),
        (message({"type": "rpc", "id": "7", "success": False, "error": "no"}), "rpc 7 failed"),
        (message({"type": "cf_agent_stream_resuming", "id": "r1"}), "offers the running answer r1"),
        (message({"type": "something-of-their-own"}), "something-of-their-own"),
    ],
)  # fmt: skip
def test_messages_of_the_chat(frame: Frame, words: str):
    assert describing.in_words(CHAT, frame) == words


SENT = {"messageId": "m1", "role": "user", "parts": [{"text": "a"}, {"text": "b"}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": SENT}},
         "calls message/stream: message m1 with 2 parts"),
        ({"message": SENT}, "message m1 with 2 parts"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}},
         "calls tasks/get: task t1"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": [1]}, "calls tasks/get"),
        ({"jsonrpc": "2.0", "id": 1}, "JSON object: jsonrpc, id"),
    ],
)  # fmt: skip
def test_requests_of_a2a(body: object, words: str):
    frame = Frame(Side.CLIENT, Kind.BODY, json.dumps(body).encode())
    assert describing.in_words(CHAT, frame) == words


@pytest.mark.parametrize(
    ("dialect", "value", "words"),
    [
        ("gemini", {"candidates": [{"content": {"parts": [{"text": "Hm", "thought": True},
          {"functionCall": {"name": "look"}}]}, "finishReason": "STOP"}]},
         "thought 'Hm', function call look, finish STOP"),
        ("gemini", {"candidates": [7]}, "candidate without content"),
        ("openai_chat", {"choices": [{"delta": {"content": "Hi"}}]}, "content 'Hi'"),
        ("openai_chat", {"choices": [], "usage": {"total_tokens": 3}}, "usage"),
        ("anthropic_messages", {"type": "content_block_delta",
          "delta": {"type": "text_delta", "text": "Hi"}}, "content_block_delta text_delta 'Hi'"),
        ("openai_responses", {"type": "response.output_item.done",
          "item": {"type": "function_call", "call_id": "call_1"}},
         "response.output_item.done function_call call_1"),
        ("openai_responses", {"error": {"type": "rate_limit"}}, "error rate_limit"),
    ],
)  # fmt: skip
def test_events_of_providers(dialect: str, value: object, words: str):
    assert describing.in_words([dialect, *CHAT], event(value)) == words


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (event({"type": "text-delta", "id": "t", "delta": "Hi"}), "text-delta 'Hi'"),
        (Frame(Side.SERVER, Kind.SSE, b"data: [DONE]\n\n"), "end of the stream"),
        (Frame(Side.SERVER, Kind.SSE, b": ping\n\n"), "comment"),
        (Frame(Side.SERVER, Kind.BODY, b""), "empty"),
        (Frame(Side.SERVER, Kind.BODY, b"[1, 2]"), "JSON array of 2"),
        (Frame(Side.SERVER, Kind.BODY, b"<html>"), "text of 6 characters"),
        (Frame(Side.SERVER, Kind.WS_BINARY, b"\xff" * 12_034), "12,034 bytes"),
    ],
)  # fmt: skip
def test_what_no_dialect_knows_has_a_shape(frame: Frame, words: str):
    assert describing.in_words([], frame) == words


def test_the_head_says_which_dialects_are_asked():
    head = RequestHead("POST", "/v1/chat/completions", (("content-type", "application/json"),))
    body = Frame(Side.CLIENT, Kind.BODY, b'{"model":"m","messages":[{"role":"user"}]}')
    assert describing.describe(head, body) == "request of m: 1 item, the last user"
    assert describing.describe(None, body) == "JSON object: model, messages"


KEYS = st.sampled_from(
    ["type", "id", "body", "messages", "message", "state", "method", "params", "parts", "delta",
     "choices", "candidates", "content", "input", "item", "error", "result", "kind", "artifact",
     "status", "task", "artifactUpdate", "done", "success", "usage"]
)  # fmt: skip
TYPES = st.sampled_from(
    ["rpc", "cf_agent_use_chat_response", "cf_agent_use_chat_request", "cf_agent_chat_messages",
     "cf_agent_message_updated", "cf_agent_state", "artifact-update", "text-delta", "\ud83d", "{}"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TYPES | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.sampled_from(list(describing.WORDS)),
    st.sampled_from(list(Side)),
    st.sampled_from(list(Kind)),
    VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200),
)
def test_describing_never_raises_whatever_a_frame_holds(
    dialect: str, sender: Side, kind: Kind, payload: bytes
):
    wire = b"data: " + payload + b"\n\n" if kind is Kind.SSE else payload
    assert 0 < len(describing.in_words([dialect], Frame(sender, kind, wire))) <= 200


def test_a_description_is_short_however_long_an_id_is():
    words = describing.in_words(CHAT, message({"type": "rpc", "id": "7" * 1_000, "success": True}))
    assert (len(words), words[-1]) == (200, "…")
