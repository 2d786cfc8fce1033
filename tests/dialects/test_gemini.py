"""The Gemini API: what requests hold, what responses say, and that nothing is changed."""

import json

import pytest

from midstream.core.exchange import RequestHead, ResponseHead
from midstream.dialects.gemini import DIALECT
from midstream.dialects.provider_history import Digests, Item, Kind, Learned, Output, Refused

DIGESTS = Digests(b"secret")
JSON = (("Content-Type", "application/json"),)
SAID = json.dumps(["Read", {"a": 1, "b": 2}])


class NoBonds:
    def is_one_response(self, item: int, other: int) -> bool:
        return True

    def is_whole_response(self, items: object) -> bool:
        return True


def items(role: str, *parts: object) -> list[Item]:
    body = {"contents": [{"role": role, "parts": parts}]}
    history = DIALECT.read_request(json.dumps(body).encode())
    assert history is not None
    return history.items


def chunk(*parts: object, reason: str | None = None) -> dict[str, object]:
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason}
    return {"candidates": [candidate], "responseId": "r"}


def heard(*chunks: dict[str, object]) -> Learned:
    listener = DIALECT.listen(DIGESTS)
    for one in chunks:
        listener.receive(json.dumps(one).encode())
    return listener.learned()


@pytest.mark.parametrize(
    ("target", "reads", "reads_json"),
    [
        ("/v1beta/models/gemini-3:generateContent", True, True),
        ("/v1/projects/p/models/g:streamGenerateContent?alt=sse", True, False),
        ("/v1beta/models/gemini-3:countTokens", False, False),
    ],
)
def test_what_is_read_is_told_by_the_method(target, reads, reads_json):
    head = RequestHead("POST", target, JSON)
    assert DIALECT.reads(head) is reads
    assert DIALECT.reads_response(head, ResponseHead(200, JSON)) is reads_json


@pytest.mark.parametrize(
    ("role", "part", "item"),
    [
        ("user", {"text": "q"}, Item(Kind.USER, (0, 0))),
        ("model", {"text": "a"}, Item(Kind.TEXT, (0, 0), (), "a")),
        (
            "model",
            {"text": "hm", "thought": True, "thoughtSignature": "S"},
            Item(Kind.REASONING, (0, 0), ("signature:S",), "hm"),
        ),
        (
            "model",
            {
                "functionCall": {"id": "c1", "name": "Read", "args": {"b": 2, "a": 1}},
                "thoughtSignature": "S",
            },
            Item(Kind.CALL, (0, 0), ("signature:S", "call:c1"), SAID, "c1"),
        ),
        (
            "model",
            {"functionCall": {"name": "Read", "args": {"a": 1, "b": 2}}},
            Item(Kind.CALL, (0, 0), (), SAID, "Read"),
        ),
        (
            "user",
            {"functionResponse": {"name": "Read", "response": {}}},
            Item(Kind.RESULT, (0, 0), (), None, "Read"),
        ),
        ("model", {"executableCode": {}}, Item(Kind.OPAQUE, (0, 0))),
        ("model", 7, Item(Kind.OPAQUE, (0, 0))),
    ],
)
def test_the_parts_of_a_content_are_its_items(role, part, item):
    assert items(role, part) == [item]


def test_pieces_of_text_that_follow_each_other_are_one_output():
    call = {"functionCall": {"id": "c1", "name": "Read", "args": {"a": 1, "b": 2}}}
    learned = heard(
        chunk({"text": "hm", "thought": True}),
        chunk({"text": "a"}),
        chunk({"text": "b"}),
        chunk(call, {"text": "c"}),
        chunk({"text": "", "thoughtSignature": "S"}, reason="STOP"),
    )
    keys = DIGESTS.of_key
    assert learned == Learned(
        b"",
        [
            Output(Kind.REASONING, (), DIGESTS.of_text("hm")),
            Output(Kind.TEXT, (), DIGESTS.of_text("ab")),
            Output(Kind.CALL, (keys("call:c1"),), DIGESTS.of_text(SAID)),
            Output(Kind.TEXT, (keys("signature:S"),), DIGESTS.of_text("c")),
        ],
        is_complete=True,
    )


def test_a_stream_without_its_end_teaches_nothing():
    assert heard(chunk({"text": "a"})) == Learned(b"", [], is_complete=False)


def test_a_response_as_one_body_says_the_same_as_its_stream():
    body = json.dumps(chunk({"text": "ab"}, reason="STOP")).encode()
    assert DIALECT.read_response(body, DIGESTS) == heard(
        chunk({"text": "a"}), chunk({"text": "b"}, reason="STOP")
    )
    assert DIALECT.read_response(b"[]", DIGESTS) is None


def test_nothing_is_ever_moved():
    history = DIALECT.read_request(b'{"contents":[]}')
    assert history is not None
    with pytest.raises(Refused, match="gemini_cross_turn"):
        DIALECT.reorder(history, [], [], NoBonds())
