"""Chat Completions: what requests hold, what responses say, and how a text is put back."""

import json

import pytest

from midstream.core.exchange import RequestHead
from midstream.dialects.openai_chat import DIALECT
from midstream.dialects.provider_history import Digests, Item, Kind, Learned, Output, Refused

DIGESTS = Digests(b"secret")
JSON = (("Content-Type", "application/json"),)


class OneResponse:
    """Bonds that hold, or do not, whatever is asked."""

    def __init__(self, answer: bool) -> None:
        self._answer = answer

    def is_one_response(self, item: int, other: int) -> bool:
        return self._answer

    def is_whole_response(self, items: object) -> bool:
        return self._answer


def items(*messages: object) -> list[Item]:
    history = DIALECT.read_request(json.dumps({"messages": messages}).encode())
    assert history is not None
    return history.items


def reordered(body: bytes, order: list[int], moved: list[int], *, is_one: bool) -> bytes:
    history = DIALECT.read_request(body)
    assert history is not None
    return DIALECT.reorder(history, order, moved, OneResponse(is_one))


def chunk(**delta: object) -> dict[str, object]:
    reason = delta.pop("finish_reason", None)
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def heard(*events: object) -> Learned:
    listener = DIALECT.listen(DIGESTS)
    for event in events:
        listener.receive(event if isinstance(event, bytes) else json.dumps(event).encode())
    return listener.learned()


def call(*names: str) -> list[Output]:
    return [Output(Kind.CALL, (DIGESTS.of_key(f"call:{name}"),)) for name in names]


def test_what_is_read_is_told_by_the_end_of_the_path():
    assert DIALECT.reads(RequestHead("POST", "/openai/deployments/d/chat/completions?v=1", JSON))
    assert not DIALECT.reads(RequestHead("POST", "/v1/completions", JSON))
    assert not DIALECT.reads(RequestHead("POST", "/v1/chat/completions", ()))


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"role": "user", "content": "q"}, [Item(Kind.USER, (0, -1))]),
        ({"role": "developer", "content": "q"}, [Item(Kind.SYSTEM, (0, -1))]),
        ({"role": "assistant", "content": "a"}, [Item(Kind.TEXT, (0, -1), (), "a")]),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"text": "b"}]},
            [Item(Kind.TEXT, (0, -1), (), "ab")],
        ),
        (
            {"role": "assistant", "content": "a", "tool_calls": [{"id": "c1"}, {"id": "c2"}]},
            [
                Item(Kind.TEXT, (0, -1), (), "a"),
                Item(Kind.CALL, (0, 0), ("call:c1",), None, "c1"),
                Item(Kind.CALL, (0, 1), ("call:c2",), None, "c2"),
            ],
        ),
        ({"role": "assistant", "content": None}, [Item(Kind.OPAQUE, (0, -1))]),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": ""}},
            [Item(Kind.OPAQUE, (0, -1))],
        ),
        (
            {"role": "tool", "tool_call_id": "c1", "content": "r"},
            [Item(Kind.RESULT, (0, -1), (), None, "c1")],
        ),
        ({"role": "function", "content": "r"}, [Item(Kind.OPAQUE, (0, -1))]),
        ({"role": "assistant", "content": 7}, [Item(Kind.OPAQUE, (0, -1))]),
        (None, [Item(Kind.OPAQUE, (0, -1))]),
    ],
)
def test_a_message_holds_a_text_and_calls(message, found):
    assert items(message) == found


@pytest.mark.parametrize("body", [b"", b"{}", b'{"messages":{}}', b'{"messages":7}', b"[", b"7"])
def test_what_is_no_request_is_none(body):
    assert DIALECT.read_request(body) is None


def test_a_text_and_calls_are_learned_from_their_pieces():
    learned = heard(
        chunk(role="assistant", content=""),
        chunk(content="a"),
        chunk(content="b"),
        chunk(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "f"}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]),
        chunk(tool_calls=[{"index": 1, "id": "c2"}]),
        chunk(finish_reason="tool_calls"),
    )
    text = Output(Kind.TEXT, (), DIGESTS.of_text("ab"))
    assert learned == Learned(b"", [text, *call("c1", "c2")], is_complete=True)


@pytest.mark.parametrize(
    "calls",
    [
        [{"index": 0, "id": "c1"}, {"index": 0, "id": "c2"}], [{"id": "c1"}, {"id": "c2"}],
        [{"index": 0}, {"index": 1, "id": "c2"}, {"index": 0, "id": "c1"}],
        [{"index": 0, "id": "c1"}, {"index": 0, "id": "c1"}, {"index": 1, "id": "c2"}],
    ],
)  # fmt: skip
def test_calls_are_told_apart_whatever_their_index(calls):
    chunks = [chunk(tool_calls=[one]) for one in calls]
    assert heard(*chunks, chunk(finish_reason="stop")).outputs == call("c1", "c2")


def test_only_the_first_choice_is_learned():
    other = {"choices": [{"index": 1, "delta": {"content": "z"}, "finish_reason": "stop"}]}
    assert heard(other).outputs == []
    learned = heard(chunk(content="a"), other, chunk(finish_reason="stop"))
    assert learned.outputs == [Output(Kind.TEXT, (), DIGESTS.of_text("a"))]


def test_a_stream_without_its_end_teaches_nothing():
    assert heard(chunk(content="a"), b"[DONE]") == Learned(b"", [], is_complete=False)


def test_an_odd_chunk_is_passed_over():
    learned = heard(b"", b"{", b'{"choices":7}', b'{"choices":[]}', chunk(finish_reason="stop"))
    assert learned == Learned(b"", [], is_complete=True)


def test_a_response_as_one_body_says_the_same_as_its_stream():
    message = {"role": "assistant", "content": "ab", "tool_calls": [{"id": "c1"}]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    learned = DIALECT.read_response(json.dumps(body).encode(), DIGESTS)
    assert learned == heard(
        chunk(content="ab"), chunk(tool_calls=[{"index": 0, "id": "c1"}]), chunk(finish_reason="x")
    )
    assert DIALECT.read_response(b"[]", DIGESTS) is None


USER = b'{"role":"user","content":"q"}'
CALLS = b'{"role":"assistant", "content":null, "tool_calls":[{"id":"c1","n":1.50}]}'
RESULT = b'{"role":"tool","tool_call_id":"c1","content":"r"}'
TEXT = b'{"content": "\\u0061" ,"role":"assistant"}'
ORDER = [0, 3, 1, 2]


def body(*messages: bytes) -> bytes:
    return b'{"messages": [' + b" ,\n".join(messages) + b'], "x": 1e400}'


def test_a_text_of_the_same_response_is_fused_into_the_message_of_its_call():
    left = reordered(body(USER, CALLS, RESULT, TEXT), ORDER, [3], is_one=True)
    assert left == body(USER, CALLS.replace(b"null", b'"\\u0061"'), RESULT)


@pytest.mark.parametrize(
    "more", [b'"reasoning_content":"hm",', b'"name":"n",', b'"annotations":[{}],']
)
def test_nothing_is_lost_where_a_message_says_more_than_its_text(more):
    text = TEXT.replace(b"{", b"{" + more, 1)
    given = body(USER, CALLS, RESULT, text)
    assert reordered(given, ORDER, [3], is_one=True) == body(USER, text, CALLS, RESULT)


def test_a_text_is_not_fused_into_a_message_that_has_one():
    calls = CALLS.replace(b"null", b'"b"')
    left = reordered(body(USER, calls, RESULT, TEXT), [0, 1, 4, 2, 3], [4], is_one=True)
    assert left == body(USER, TEXT, calls, RESULT)


@pytest.mark.parametrize("empty", [b'"refusal":null,', b'"tool_calls":[],', b'"audio":null,'])
def test_empty_members_do_not_keep_a_text_apart(empty):
    text = TEXT.replace(b"{", b"{" + empty, 1)
    left = reordered(body(USER, CALLS, RESULT, text), ORDER, [3], is_one=True)
    assert left == body(USER, CALLS.replace(b"null", b'"\\u0061"'), RESULT)


def test_a_text_of_another_response_becomes_a_message_in_front():
    left = reordered(body(USER, CALLS, RESULT, TEXT), ORDER, [3], is_one=False)
    assert left == body(USER, TEXT, CALLS, RESULT)


def test_a_text_that_shares_its_message_with_calls_stays():
    more = b'{"role":"assistant","content":"a","tool_calls":[{"id":"c2"}]}'
    with pytest.raises(Refused, match="would_break_api"):
        reordered(body(USER, CALLS, RESULT, more), [0, 3, 1, 2, 4], [3], is_one=True)


def test_a_text_without_a_call_behind_it_stays():
    with pytest.raises(Refused, match="would_break_api"):
        reordered(body(USER, TEXT), [1, 0], [1], is_one=True)
