"""Conversations: keys that nobody can guess, bounds, and exact sizes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import Seen, request

from midstream.core.conversation import (
    Conversation,
    ConversationBounds,
    Conversations,
    conversation_key,
)
from midstream.core.exchange import Exchange, RequestHead

SECRET = b"s" * 32


def key_of(
    *, route: str = "chat", upstream: str = "http://a", path: str = "/chat/1", **headers: str
) -> bytes:
    head = request(f"{path}?token=1", **headers)
    return conversation_key(Exchange(1, route, upstream, head), path, SECRET)


@pytest.mark.parametrize(
    "change",
    [
        {"route": "other"},
        {"upstream": "http://b"},
        {"path": "/chat/2"},
        {"Authorization": "Bearer a"},
        {"Cookie": "a=1"},
        {"x_api_key": "a"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_key_differs_by_each_of_its_parts(change):
    assert key_of(**change) != key_of()


def test_a_key_does_not_differ_by_query_exchange_or_other_headers():
    head = request("/chat/1?token=other", User_Agent="x")
    assert conversation_key(Exchange(9, "chat", "http://a", head), "/chat/1", SECRET) == key_of()


def test_a_key_needs_the_secret():
    exchange = Exchange.of(request("/chat/1"))
    keys = {conversation_key(exchange, "/chat/1", secret) for secret in (SECRET, b"t" * 32)}
    assert len(keys) == 2
    assert {len(key) for key in keys} == {32}


def test_a_key_tells_which_header_a_credential_came_in():
    keys = {key_of(Authorization="a"), key_of(Cookie="a"), key_of(x_api_key="a")}
    assert len(keys) == 3


def test_the_name_of_a_credential_header_counts_in_any_case():
    assert key_of(AUTHORIZATION="a") == key_of(authorization="a")


def test_every_value_of_a_repeated_header_counts():
    def key(*cookies: str) -> bytes:
        head = RequestHead("GET", "/", tuple(("Cookie", cookie) for cookie in cookies))
        return conversation_key(Exchange.of(head), "/", SECRET)

    assert len({key("a"), key("a", "b"), key("a", "c"), key("ab")}) == 4


def test_parts_cannot_run_into_each_other():
    assert key_of(route="ab", upstream="c") != key_of(route="a", upstream="bc")


def test_a_header_that_is_not_utf_8_has_a_key():
    assert key_of(Cookie="\udcff") != key_of(Cookie="\udcfe")


def test_a_state_is_made_once_for_each_name():
    conversation = Conversation(b"k")
    first = conversation.state("a", Seen)
    assert conversation.state("a", Seen) is first
    assert conversation.state("b", Seen) is not first


def test_two_exchanges_share_a_conversation():
    known = Conversations()
    first, second = known.open(b"k"), known.open(b"k")
    assert first is second
    assert (len(known), first.users) == (1, 2)


def test_the_longest_unused_is_forgotten_first():
    known = Conversations(ConversationBounds(max_conversations=2))
    first, second = known.open(b"1"), known.open(b"2")
    known.close(second, {})
    known.close(first, {})
    known.close(known.open(b"2"), {})
    known.close(known.open(b"3"), {})
    assert len(known) == 2
    assert known.open(b"2") is second
    assert known.open(b"1") is not first
    assert known.evictions == 2


def test_a_conversation_in_use_is_never_forgotten():
    known = Conversations(ConversationBounds(max_conversations=1, max_bytes=10))
    used = [known.open(bytes([i])) for i in range(3)]
    known.close(known.open(b"\x00"), {"a": 1000})
    assert len(known) == 3
    assert [known.open(bytes([i])) for i in range(3)] == used
    assert known.evictions == 0


def test_conversations_go_once_they_are_unused_and_over_the_bound_of_bytes():
    known = Conversations(ConversationBounds(max_bytes=100))
    for i in range(3):
        known.close(known.open(bytes([i])), {"a": 40})
    assert (len(known), known.size_bytes, known.evictions) == (2, 80, 1)
    known.close(known.open(b"large"), {"a": 101})
    assert (len(known), known.size_bytes) == (0, 0)


def test_closing_twice_or_after_being_forgotten_is_harmless():
    known = Conversations(ConversationBounds(max_conversations=1))
    gone = known.open(b"1")
    known.close(gone, {"a": 10})
    known.close(gone, {"a": 10_000})
    assert (known.size_bytes, gone.users) == (10, 0)
    known.open(b"2")
    assert (len(known), known.size_bytes, known.evictions) == (1, 0, 1)
    known.close(gone, {"a": 10_000})
    assert (len(known), known.size_bytes) == (1, 0)


def test_a_new_conversation_of_a_forgotten_key_starts_empty():
    known = Conversations(ConversationBounds(max_conversations=1))
    old = known.open(b"1")
    known.close(old, {"a": 10})
    known.close(known.open(b"2"), {"a": 1})
    new = known.open(b"1")
    assert new is not old
    assert new.sizes == {}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "close", "close twice"]),
        st.integers(0, 5),
        st.dictionaries(st.sampled_from("ab"), st.integers(0, 60)),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.integers(0, 4), st.integers(0, 150))
def test_sizes_are_exact_and_bounds_hold_whatever_opens_and_closes(steps, max_count, max_bytes):
    known = Conversations(ConversationBounds(max_count, max_bytes))
    used: list[Conversation] = []
    for step, number, sizes in steps:
        if step == "open":
            used.append(known.open(bytes([number])))
        elif used:
            conversation = used.pop(number % len(used))
            known.close(conversation, sizes)
            if step == "close twice" and conversation not in used:
                known.close(conversation, {"a": 10**9})
        kept = list(known._known.values())
        assert known.size_bytes == sum(c.size_bytes for c in kept)
        assert len(known) == len(kept)
        assert {id(c) for c in used} <= {id(c) for c in kept}
        if len(kept) > max_count or known.size_bytes > max_bytes:
            assert all(c.users for c in kept)
    for conversation in used:
        known.close(conversation, {})
    assert len(known) <= max_count
    assert known.size_bytes <= max_bytes
