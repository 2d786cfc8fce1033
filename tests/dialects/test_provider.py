"""What the dialects of model providers share: digests, rules, splicing, heads, clues."""

import json
import random

import pytest

from midstream.core.errors import EditError
from midstream.core.exchange import RequestHead
from midstream.dialects.provider_clues import api_of
from midstream.dialects.provider_heads import is_json, is_signed
from midstream.dialects.provider_history import Digests, Item, Kind, Rules
from midstream.dialects.provider_rules import violations
from midstream.dialects.provider_splice import Array

DIGESTS = Digests(b"secret")


def test_a_text_in_pieces_has_the_digest_of_the_whole():
    rnd = random.Random(3)
    text = "aé \U0001f600\U0001f600 \ud83d x\udc00"
    units = text.encode("utf-16-le", "surrogatepass")
    for _ in range(200):
        cuts = sorted(rnd.randrange(0, len(units) + 2, 2) for _ in range(4))
        digest = DIGESTS.text()
        for start, end in zip([0, *cuts], [*cuts, len(units)], strict=True):
            digest.add(units[start:end].decode("utf-16-le", "surrogatepass"))
            digest.digest()  # looking at it changes nothing
        assert digest.digest() == DIGESTS.of_text(text)


def test_digests_differ_by_secret_and_by_what_they_are_of():
    assert len(DIGESTS.of_key("a")) == 16
    assert DIGESTS.of_key("a") != DIGESTS.of_text("a")
    assert DIGESTS.of_key("a") != Digests(b"other").of_key("a")
    assert DIGESTS.of_key("a") == Digests(b"secret").of_key("a")


# --- rules ---------------------------------------------------------------------------------------

RULES = Rules(frozenset({Kind.TEXT}), follows=True)


def sequence(spelled: str) -> list[Item]:
    """Return items: `c1` a call, `r1` its result, `t` text, `u` user, `z` reasoning."""
    kinds = {"c": Kind.CALL, "r": Kind.RESULT, "t": Kind.TEXT, "u": Kind.USER, "z": Kind.REASONING}
    words = spelled.split()
    return [Item(kinds[w[0]], (n, 0), call_id=w[1:]) for n, w in enumerate(words)]


@pytest.mark.parametrize(
    ("spelled", "names"),
    [
        ("u t c1 r1 t u", []),
        ("c1 c2 r2 r1", []),
        ("c1", ["call_without_result"]),
        ("r1", ["orphan_result"]),
        ("r1 c1", ["orphan_result"]),
        ("c1 t r1", ["inside_open_calls"]),
        ("c1 u r1", []),
        ("c1 c2 r1 t r2", ["inside_open_calls"]),
        ("z t", []),
        ("z c1 r1", []),
        ("z", ["reasoning_without_follower"]),
        ("z u", ["reasoning_without_follower"]),
        ("c1 z r1", ["reasoning_without_follower"]),
    ],
)
def test_every_rule_is_checked(spelled, names):
    assert sorted({name for name, _, _ in violations(sequence(spelled), RULES)}) == names


def test_two_places_between_other_calls_are_not_the_same():
    inner = violations(sequence("c1 c2 t r1 r2"), RULES)
    outer = violations(sequence("c1 t r1 c2 r2"), RULES)
    assert inner - outer
    assert outer - inner


def test_a_violation_more_is_a_new_one():
    once, twice = (violations(sequence(s), RULES) for s in ("c1 t r1 t", "c1 t t r1"))
    assert twice - once
    assert not once - twice


def test_the_rules_of_an_api_decide():
    assert not violations(sequence("c1 t r1 z"), Rules(frozenset({Kind.USER})))


# --- splicing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "elements", "left"),
    [
        (b'{"a":[1, 2 ,3]}', [b"3", b"1", b"2"], b'{"a":[3, 1 ,2]}'),
        (b'{"a":[1, 2 ,3]}', [b"9"], b'{"a":[9]}'),
        (b'{"a":[1, 2 ,3]}', [b"3", b"2"], b'{"a":[3, 2]}'),
        (b'{"a":[ 1, 2 ]}', [b"1", b"2", b"3", b"4"], b'{"a":[ 1, 2, 3, 4 ]}'),
        (b'{"a":[1]}', [b"1", b"2"], b'{"a":[1,2]}'),
        (b'{"a":[7],"a":[1,2]}', [b"2", b"1"], b'{"a":[7],"a":[2,1]}'),
        (b' {"b" : 1e400 , "a" : [1 , 2] } ', [b"2", b"1"], b' {"b" : 1e400 , "a" : [2 , 1] } '),
    ],
)
def test_elements_change_places_and_what_is_between_them_stays(document, elements, left):
    assert Array(document, "a").with_elements(elements) == left


@pytest.mark.parametrize("document", [b'{"a":[]}', b'{"a":7}', b'{"b":[1]}', b"[1]", b"{", b"7"])
def test_where_there_is_no_array_nothing_can_be_put_in_order(document):
    with pytest.raises(EditError):
        Array(document, "a")


# --- heads and clues -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "is_it"),
    [
        (RequestHead("POST", "/", (("Authorization", "Bearer sk-1"),)), False),
        (RequestHead("POST", "/", (("authorization", "AWS4-HMAC-SHA256 Credential=x"),)), True),
        (RequestHead("POST", "/", (("Authorization", "aws4-ecdsa-p256-sha256 x"),)), True),
        (RequestHead("POST", "/", (("X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD"),)), True),
        (RequestHead("POST", "/", (("Signature", "sig=:x:"),)), True),
        (RequestHead("POST", "/?a=1&X-Amz-Signature=0f"), True),
        (RequestHead("POST", "/x-amz-signature=/"), False),
    ],
)
def test_a_signed_request_is_told_by_its_head(head, is_it):
    assert is_signed(head) is is_it


@pytest.mark.parametrize(
    ("content_type", "is_it"),
    [
        ("application/json", True),
        ("application/vnd.x+json", True),
        ("text/plain", False),
        ("", False),
    ],
)
def test_json_is_told_by_its_media_type(content_type, is_it):
    assert is_json(content_type) is is_it


TOOL = {"role": "tool", "tool_call_id": "c", "content": "x"}
BLOCKS = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}
PLAIN = {"role": "user", "content": "q"}


@pytest.mark.parametrize(
    ("body", "api"),
    [
        ({"input": "q"}, "openai-responses"),
        ({"input": []}, "openai-responses"),
        ({"contents": []}, "gemini"),
        ({"messages": [PLAIN, TOOL]}, "openai-chat"),
        ({"messages": [PLAIN, {"role": "assistant", "tool_calls": [{}]}]}, "openai-chat"),
        ({"messages": [{"role": "system", "content": "s"}]}, "openai-chat"),
        ({"messages": [PLAIN]}, "openai-chat"),
        ({"messages": [PLAIN, BLOCKS]}, "anthropic"),
        ({"messages": [PLAIN], "system": "s"}, "anthropic"),
        ({"messages": [TOOL, BLOCKS]}, None),
        ({"messages": []}, None),
        ({"messages": 7}, None),
        ({}, None),
        ([], None),
    ],
)
def test_a_body_tells_its_api(body, api):
    assert api_of(json.dumps(body).encode()) == api


def test_what_is_no_json_tells_nothing():
    assert api_of(b"{") is None
