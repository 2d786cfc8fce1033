"""The Responses API: which exchanges are read, what requests hold, what responses say."""

import json

import pytest

from midstream.core.exchange import RequestHead, ResponseHead
from midstream.dialects.openai_responses import DIALECT
from midstream.dialects.provider_history import Digests, Item, Kind, Learned, Output
from midstream.dialects.provider_responses import MAX_STREAMED_ALIASES

DIGESTS = Digests(b"secret")
JSON = (("Content-Type", "application/json; charset=utf-8"),)
SOCKET = (("Upgrade", "websocket"),)
DELTA = "response.output_text.delta"


def items(*given: object) -> list[Item]:
    history = DIALECT.read_request(json.dumps({"input": given}).encode())
    assert history is not None
    return history.items


def heard(*events: dict[str, object]) -> tuple[Learned, list[bool]]:
    """Return what is learned of a stream, and after which events it is over."""
    listener = DIALECT.listen(DIGESTS)
    ends = [listener.receive(json.dumps(event).encode()) for event in events]
    return listener.learned(), ends


def keys(*named: str) -> tuple[bytes, ...]:
    return tuple(map(DIGESTS.of_key, named))


def done(index: int, **item: object) -> dict[str, object]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


@pytest.mark.parametrize(
    ("head", "reads"),
    [
        (RequestHead("POST", "/v1/responses", JSON), True),
        (RequestHead("POST", "/gw/openai/v1/responses?api-version=2", JSON), True),
        (RequestHead("GET", "/v1/responses", SOCKET), True),
        (RequestHead("GET", "/v1/responses", ()), False),
        (RequestHead("POST", "/v1/responses", (("Content-Type", "text/plain"),)), False),
        (RequestHead("POST", "/v1/responses/resp_1/cancel", JSON), False),
        (RequestHead("POST", "/v1/chat/completions", JSON), False),
        (RequestHead("GET", "/v1/realtime", SOCKET), False),
    ],
)
def test_what_is_read_is_told_by_the_end_of_the_path(head, reads):
    assert DIALECT.reads(head) is reads


@pytest.mark.parametrize(
    ("status", "content_type", "reads"),
    [
        (200, "application/json", True), (201, "application/json", True),
        (429, "application/json", False), (200, "text/html", False),
    ],
)  # fmt: skip
def test_answers_are_read_that_succeeded(status, content_type, reads):
    response = ResponseHead(status, (("Content-Type", content_type),))
    assert DIALECT.reads_response(RequestHead("POST", "/v1/responses", JSON), response) is reads


@pytest.mark.parametrize(
    ("given", "item"),
    [
        ({"role": "user", "content": "q"}, Item(Kind.USER, (0, 0))),
        ({"role": "developer", "content": "q"}, Item(Kind.SYSTEM, (0, 0))),
        ({"type": "message", "role": "system", "id": "x"}, Item(Kind.SYSTEM, (0, 0))),
        ({"role": "assistant", "content": "a"}, Item(Kind.TEXT, (0, 0), (), "a")),
        (
            {
                "type": "message", "role": "assistant", "id": "m1", "content": [
                    {"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"},
                    {"type": "output_text", "text": "b"},
                ],
            },
            Item(Kind.TEXT, (0, 0), ("id:m1",), "ab"),
        ),
        ({"role": "assistant", "content": []}, Item(Kind.TEXT, (0, 0))),
        (
            {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "E"},
            Item(Kind.REASONING, (0, 0), ("id:rs1", "encrypted:E")),
        ),
        (
            {"type": "reasoning", "summary": [], "encrypted_content": None},
            Item(Kind.REASONING, (0, 0)),
        ),
        (
            {"type": "function_call", "id": "fc1", "call_id": "c1", "arguments": "{}"},
            Item(Kind.CALL, (0, 0), ("id:fc1", "call:c1"), None, "c1"),
        ),
        (
            {"type": "custom_tool_call", "call_id": "c1", "input": "x"},
            Item(Kind.CALL, (0, 0), ("call:c1",), None, "c1"),
        ),
        (
            {"type": "function_call_output", "id": "o1", "call_id": "c1", "output": []},
            Item(Kind.RESULT, (0, 0), (), None, "c1"),
        ),
        (
            {"type": "local_shell_call_output", "id": "c1", "output": ""},
            Item(Kind.RESULT, (0, 0), (), None, "c1"),
        ),
        ({"type": "web_search_call", "id": "w1"}, Item(Kind.HOSTED, (0, 0), ("id:w1",))),
        ({"type": "item_reference", "id": "m1"}, Item(Kind.REFERENCE, (0, 0), ("id:m1",))),
        ({"type": "compaction", "encrypted_content": "x"}, Item(Kind.OPAQUE, (0, 0))),
        ({"type": "message", "role": "assistant", "content": {}}, Item(Kind.OPAQUE, (0, 0))),
        ({"type": 7}, Item(Kind.OPAQUE, (0, 0))),
        (7, Item(Kind.OPAQUE, (0, 0))),
    ],
)  # fmt: skip
def test_an_item_is_known_by_its_type(given, item):
    assert items(given) == [item]


def test_one_odd_item_does_not_hide_the_others():
    found = items({"role": "user", "content": "q"}, None, {"role": "assistant", "content": "a"})
    assert [item.kind for item in found] == [Kind.USER, Kind.OPAQUE, Kind.TEXT]
    assert found[2] == Item(Kind.TEXT, (2, 0), (), "a")


def test_half_a_character_does_not_hide_anything():
    body = (
        rb'{"input":[{"role":"assistant","content":"a\ud83d"},{"type":"item_reference","id":"m"}]}'
    )
    history = DIALECT.read_request(body)
    assert history is not None
    assert history.items == [
        Item(Kind.TEXT, (0, 0), (), "a\ud83d"), Item(Kind.REFERENCE, (1, 0), ("id:m",)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "is_delta", "previous"),
    [
        ({}, False, ""),
        ({"previous_response_id": None, "conversation": None}, False, ""),
        ({"previous_response_id": ""}, False, ""),
        ({"previous_response_id": "resp_1"}, True, "resp_1"),
        ({"conversation": "conv_1"}, True, ""),
        ({"conversation": {"id": "conv_1"}}, True, ""),
    ],
)
def test_a_delta_is_one_whose_history_the_provider_holds(more, is_delta, previous):
    history = DIALECT.read_request(json.dumps({"input": "q", **more}).encode())
    assert history is not None
    assert (history.is_delta, history.previous) == (is_delta, previous)
    assert history.items == [Item(Kind.USER, (0, 0))]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"input":{}}', b'{"type":"other","input":[]}']
)
def test_what_is_no_request_is_none(body):
    assert DIALECT.read_request(body) is None


def test_the_stream_of_a_message_is_told_by_its_own_member():
    body = b'{"type":"response.create","stream_id":"s1","input":[]}'
    history = DIALECT.read_request(body)
    assert history is not None
    assert history.stream == DIALECT.stream_of(b'{"type":"x","stream_id":"s1"}') == "s1"
    assert DIALECT.stream_of(b'{"type":"x","delta":"\\"stream_id\\""}') == ""


def test_outputs_are_in_the_order_of_their_index_and_complete_ones_only():
    learned, ends = heard(
        {"type": "response.created", "response": {"id": "resp_1"}},
        done(2, type="function_call", id="fc1", call_id="c1"),
        {"type": "response.output_item.added", "output_index": 3, "item": {"type": "message"}},
        done(0, type="reasoning", id="rs1", encrypted_content="E"),
        done(1, type="message", id="m1", content=[{"type": "output_text", "text": "a"}]),
        {"type": "response.completed", "response": {"id": "resp_1"}},
    )
    assert ends == [False] * 5 + [True]
    assert learned == Learned(
        DIGESTS.of_key("response:resp_1"),
        [
            Output(Kind.REASONING, keys("id:rs1", "encrypted:E")),
            Output(Kind.TEXT, keys("id:m1"), DIGESTS.of_text("a")),
            Output(Kind.CALL, keys("id:fc1", "call:c1")),
        ],
        is_complete=True,
    )


def test_a_text_that_only_the_deltas_tell_is_known_by_them():
    at: dict[str, object] = {"type": DELTA, "output_index": 0, "item_id": "m"}
    learned, _ = heard(
        *({**at, "delta": delta} for delta in ("a", "b \ud83d", "\ude00")),
        done(0, type="message", id="m", content=[]),
    )
    assert learned.outputs == [Output(Kind.TEXT, keys("id:m"), DIGESTS.of_text("ab \U0001f600"))]
    assert not learned.is_complete


def test_every_id_of_an_item_is_an_alias_within_bounds():
    at: dict[str, object] = {"type": DELTA, "output_index": 0, "delta": "a"}
    deltas = [{**at, "item_id": f"d{n}"} for n in range(100)]
    learned, _ = heard(
        {"type": "response.output_item.added", "output_index": 0, "item": {"id": "added"}},
        *deltas,
        done(0, type="message", id="done"),
        {
            "type": "response.completed",
            "response": {"id": "r", "output": [{"type": "message", "id": "listed"}]},
        },
    )
    (output,) = learned.outputs
    for name in ("added", "d0", "done", "listed"):
        assert DIGESTS.of_key(f"id:{name}") in output.keys
    assert len(output.keys) == MAX_STREAMED_ALIASES + 2


def test_what_the_list_at_the_end_adds_counts_and_what_contradicts_it_does_not():
    listed = [
        {"type": "function_call", "id": "x", "call_id": "c9"},
        {"type": "web_search_call", "id": "ws1", "status": "completed"},
        {"type": "message", "id": "m9", "status": "in_progress"},
    ]
    learned, _ = heard(
        done(0, type="message", id="m1", content=[{"text": "a"}]),
        {"type": "response.completed", "response": {"id": "r", "output": listed}},
    )
    assert learned.outputs == [
        Output(Kind.TEXT, keys("id:m1"), DIGESTS.of_text("a")),
        Output(Kind.HOSTED, keys("id:ws1")),
    ]


@pytest.mark.parametrize(
    ("ending", "is_complete"),
    [("response.completed", True), ("response.incomplete", False), ("response.failed", False)],
)
def test_only_a_completed_response_is_complete(ending, is_complete):
    learned, ends = heard(
        done(0, type="message", id="m"), {"type": ending, "response": {"id": "r"}}
    )
    assert (learned.is_complete, ends[-1]) == (is_complete, True)


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"[DONE]", b"7", b'{"type":7}', b'{"type":"response.output_item.done"}',
     b'{"type":"response.output_item.done","output_index":0,"item":7}'],
)  # fmt: skip
def test_what_is_no_event_is_passed_over(payload):
    listener = DIALECT.listen(DIGESTS)
    assert listener.receive(payload) is False
    assert listener.learned().outputs == []


def test_a_response_as_one_body_says_the_same_as_its_stream():
    output = [
        {"type": "message", "id": "m1", "status": "completed", "content": [{"text": "a"}]},
        {"type": "function_call", "id": "fc1", "call_id": "c1", "status": "completed"},
    ]
    body = {"id": "resp_1", "object": "response", "status": "completed", "output": output}
    streamed, _ = heard(
        *(done(index, **item) for index, item in enumerate(output)),  # type: ignore[arg-type]  # the members of an item
        {"type": "response.completed", "response": {"id": "resp_1"}},
    )
    assert DIALECT.read_response(json.dumps(body).encode(), DIGESTS) == streamed


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        (b'{"error":{"message":"no"}}', None), (b"[]", None), (b"{", None),
        (b'{"id":"r","status":"queued","output":[]}', 0),
        (b'{"id":"r","status":"incomplete","output":[{"type":"message"}]}', 1),
    ],
)  # fmt: skip
def test_a_body_that_is_no_finished_response_teaches_nothing(body, outputs):
    learned = DIALECT.read_response(body, DIGESTS)
    assert (None if learned is None else len(learned.outputs)) == outputs
    assert learned is None or not learned.is_complete
