"""The Messages API: what requests hold, what responses say, and how blocks are put back."""

import json
from collections.abc import Sequence

import pytest

from midstream.core.exchange import RequestHead
from midstream.dialects.anthropic_messages import DIALECT
from midstream.dialects.provider_history import Digests, Item, Kind, Learned, Output, Refused

DIGESTS = Digests(b"secret")


class Bonds:
    """Bonds whose whole responses are told."""

    def __init__(self, *whole: list[int]) -> None:
        self._whole = whole

    def is_one_response(self, item: int, other: int) -> bool:
        return False

    def is_whole_response(self, items: Sequence[int]) -> bool:
        return list(items) in self._whole


def items(role: str, content: object) -> list[Item]:
    body = {"messages": [{"role": role, "content": content}]}
    history = DIALECT.read_request(json.dumps(body).encode())
    assert history is not None
    return history.items


def heard(*events: dict[str, object]) -> Learned:
    listener = DIALECT.listen(DIGESTS)
    for event in events:
        listener.receive(json.dumps(event).encode())
    return listener.learned()


def block(
    index: int, start: dict[str, object], *deltas: dict[str, object]
) -> list[dict[str, object]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def key(named: str) -> tuple[bytes, ...]:
    return (DIGESTS.of_key(named),)


def test_what_is_read_is_told_by_the_end_of_the_path():
    json_head = (("Content-Type", "application/json"),)
    assert DIALECT.reads(RequestHead("POST", "/anthropic/v1/messages?beta=true", json_head))
    assert not DIALECT.reads(RequestHead("POST", "/v1/messages/count_tokens", json_head))


@pytest.mark.parametrize(
    ("role", "content", "found"),
    [
        ("user", "q", [Item(Kind.USER, (0, 0))]),
        ("assistant", "a", [Item(Kind.TEXT, (0, 0), (), "a")]),
        ("system", "a", [Item(Kind.SYSTEM, (0, 0))]),
        (
            "assistant",
            [
                {"type": "thinking", "thinking": "hm", "signature": "S"},
                {"type": "redacted_thinking", "data": "D"},
                {"type": "text", "text": "a"},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
                {"type": "container_upload", "file_id": "f"},
            ],
            [
                Item(Kind.REASONING, (0, 0), ("signature:S",)),
                Item(Kind.REASONING, (0, 1), ("signature:D",)),
                Item(Kind.TEXT, (0, 2), (), "a"),
                Item(Kind.HOSTED, (0, 3), ("server_tool_use:s1",)),
                Item(Kind.HOSTED, (0, 4), ("web_search_tool_result:s1",)),
                Item(Kind.CALL, (0, 5), ("call:t1",), None, "t1"),
                Item(Kind.OPAQUE, (0, 6)),
            ],
        ),
        (
            "user",
            [{"type": "tool_result", "tool_use_id": "t1"}, {"type": "image"}],
            [Item(Kind.RESULT, (0, 0), (), None, "t1"), Item(Kind.USER, (0, 1))],
        ),
        ("assistant", [{"type": "text", "text": ""}], [Item(Kind.TEXT, (0, 0))]),
        ("assistant", 7, [Item(Kind.OPAQUE, (0, 0))]),
        ("assistant", [7], [Item(Kind.OPAQUE, (0, 0))]),
    ],
)
def test_the_blocks_of_a_message_are_its_items(role, content, found):
    assert items(role, content) == found


def test_blocks_are_learned_in_the_order_of_their_index_and_complete_ones_only():
    learned = heard(
        {"type": "message_start", "message": {"id": "x"}},
        *block(
            0, {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "S"},
        ),
        *block(2, {"type": "tool_use", "id": "t1", "input": {}}),
        *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"},
               {"type": "text_delta", "text": "b"}),
        *block(3, {"type": "text", "text": "cut"})[:-1],
        {"type": "message_stop"},
    )  # fmt: skip
    assert learned == Learned(
        b"",
        [
            Output(Kind.REASONING, key("signature:S")),
            Output(Kind.TEXT, (), DIGESTS.of_text("ab")),
            Output(Kind.CALL, key("call:t1")),
        ],
        is_complete=True,
    )


def test_a_stream_that_was_cut_is_not_complete():
    assert not heard(*block(0, {"type": "text", "text": "a"})).is_complete


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b'{"type":"ping"}', b'{"type":"content_block_stop","index":9}', b'{"type":7}',
     b'{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"a"}}'],
)  # fmt: skip
def test_other_events_are_passed_over(payload):
    listener = DIALECT.listen(DIGESTS)
    assert listener.receive(payload) is False
    assert listener.learned().outputs == []


def test_a_response_as_one_body_says_the_same_as_its_stream():
    blocks: list[dict[str, object]] = [
        {"type": "redacted_thinking", "data": "D"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "t1", "input": {}},
        {"type": "server_tool_use", "id": "s1"},
    ]
    body = json.dumps({"type": "message", "role": "assistant", "content": blocks}).encode()
    events = [event for index, start in enumerate(blocks) for event in block(index, start)]
    assert DIALECT.read_response(body, DIGESTS) == heard(*events, {"type": "message_stop"})
    assert DIALECT.read_response(b'{"type":"error"}', DIGESTS) is None


# --- putting blocks back -------------------------------------------------------------------------

QUESTION = b'{"role":"user","content":"q"}'
CALL = b'{"type":"tool_use","id":"t1","name":"Read","input":{"n":1.50}}'
RESULT = b'{"type": "tool_result","tool_use_id":"t1"}'
TEXT = b'{"text":"\\u0061", "type":"text"}'
THOUGHT = b'{"type":"thinking","thinking":"hm","signature":"S"}'
GO_ON = b'{"type":"text","text":"go on"}'


def message(role: str, *blocks: bytes) -> bytes:
    return b'{"role":"%s", "content": [' % role.encode() + b" , ".join(blocks) + b"]}"


def body(*messages: bytes) -> bytes:
    return b'{"system":"s","messages":[\n' + b",\n".join(messages) + b']\n,"x":1e400}'


def reordered(
    given: bytes, order: list[int], moved: list[int], bonds: Bonds | None = None
) -> bytes:
    history = DIALECT.read_request(given)
    assert history is not None
    return DIALECT.reorder(history, order, moved, bonds or Bonds())


def test_a_text_goes_in_front_of_its_call_and_the_neighbours_of_its_message_are_joined():
    given = body(
        QUESTION, message("assistant", CALL), message("user", RESULT), message("assistant", TEXT),
        message("user", GO_ON),
    )  # fmt: skip
    assert reordered(given, [0, 3, 1, 2, 4], [3]) == body(
        QUESTION,
        b'{"role":"assistant", "content": [' + TEXT + b"," + CALL + b"]}",
        b'{"role":"user", "content": [' + RESULT + b"," + GO_ON + b"]}",
    )


def test_messages_written_as_plain_strings_become_blocks_only_where_they_are_changed():
    given = body(
        QUESTION, message("assistant", CALL), message("user", RESULT),
        b'{"role":"assistant","content":"\\u0061"}', b'{"content":"go on","role":"user"}',
    )  # fmt: skip
    assert json.loads(reordered(given, [0, 3, 1, 2, 4], [3]))["messages"] == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, json.loads(CALL)]},
        {"role": "user", "content": [json.loads(RESULT), {"type": "text", "text": "go on"}]},
    ]


def test_neighbours_of_one_role_that_were_there_before_stay_apart():
    given = body(
        QUESTION, message("assistant", CALL), message("user", RESULT), message("user", GO_ON),
        message("assistant", TEXT, b'{"type":"text","text":"b"}'), message("user", GO_ON),
    )  # fmt: skip
    left = json.loads(reordered(given, [0, 4, 1, 2, 3, 5, 6], [4]))["messages"]
    assert [m["role"] for m in left] == ["user", "assistant", "user", "user", "assistant", "user"]
    assert [len(m["content"]) for m in left[1:]] == [2, 1, 1, 1, 1]


def test_messages_that_a_message_of_their_own_role_stood_between_stay_apart():
    given = body(
        QUESTION, message("assistant", CALL), message("user", RESULT),
        message("assistant", b'{"type":"text","text":"b"}'), message("assistant", TEXT),
        message("assistant", THOUGHT, b'{"type":"text","text":"c"}'), message("user", GO_ON),
    )  # fmt: skip
    left = json.loads(reordered(given, [0, 4, 1, 2, 3, 5, 6, 7], [4]))["messages"]
    assert [m["role"] for m in left[2:]] == ["user", "assistant", "assistant", "user"]
    assert [len(m["content"]) for m in left[1:]] == [2, 1, 1, 2, 1]


def test_a_text_at_the_end_leaves_no_empty_message():
    given = body(
        QUESTION, message("assistant", CALL), message("user", RESULT), message("assistant", TEXT)
    )
    left = reordered(given, [0, 3, 1, 2], [3])
    assert [m["role"] for m in json.loads(left)["messages"]] == ["user", "assistant", "user"]


def test_a_message_with_thinking_is_changed_only_to_what_the_provider_sent():
    given = body(
        QUESTION, message("assistant", THOUGHT, CALL), message("user", RESULT),
        message("assistant", TEXT), message("user", GO_ON),
    )  # fmt: skip
    order = [0, 1, 4, 2, 3, 5]
    with pytest.raises(Refused, match="thinking_locked"):
        reordered(given, order, [4])
    left = json.loads(reordered(given, order, [4], Bonds([1, 4, 2])))
    assert [b["type"] for b in left["messages"][1]["content"]] == ["thinking", "text", "tool_use"]


# A client parked the texts of two steps behind the calls, where the last step has its own thinking.
PARKED = body(
    QUESTION, message("assistant", CALL), message("user", RESULT),
    message("assistant", TEXT, THOUGHT, b'{"type":"text","text":"c"}'),
)  # fmt: skip
UNPARKED = [0, 3, 1, 2, 4, 5]


def test_a_foreign_text_leaves_a_message_with_thinking_that_is_then_what_the_provider_sent():
    left = json.loads(reordered(PARKED, UNPARKED, [3], Bonds([4, 5])))["messages"]
    assert [[b["type"] for b in m["content"]] for m in left[1:]] == [
        ["text", "tool_use"], ["tool_result"], ["thinking", "text"],
    ]  # fmt: skip


@pytest.mark.parametrize("whole", [[3, 1], [4], [5], [3, 4, 5]])
def test_a_text_stays_in_a_message_with_thinking_that_would_be_no_response_of_the_provider(whole):
    with pytest.raises(Refused, match="thinking_locked"):
        reordered(PARKED, UNPARKED, [3], Bonds(whole))


def test_thinking_goes_back_with_all_blocks_of_its_message_if_that_makes_a_whole_response():
    given = body(
        QUESTION, message("assistant", CALL), message("user", RESULT),
        message("assistant", THOUGHT, TEXT), message("user", GO_ON),
    )  # fmt: skip
    order = [0, 3, 4, 1, 2, 5]
    with pytest.raises(Refused, match="thinking_locked"):
        reordered(given, order, [3, 4])
    left = json.loads(reordered(given, order, [3, 4], Bonds([3, 4, 1])))["messages"]
    assert [[b["type"] for b in m["content"]] for m in left[1:]] == [
        ["thinking", "text", "tool_use"], ["tool_result", "text"],
    ]  # fmt: skip


@pytest.mark.parametrize("whole", [[[4, 1]], [[3]]])
def test_thinking_stays_where_it_or_what_it_leaves_behind_would_be_no_whole_response(whole):
    given = body(
        QUESTION, message("assistant", CALL), message("user", RESULT),
        message("assistant", TEXT, THOUGHT),
    )  # fmt: skip
    with pytest.raises(Refused, match="thinking_locked"):
        reordered(given, [0, 4, 1, 2, 3], [4], Bonds(*whole))
