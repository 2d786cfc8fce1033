"""How much of a conversation's last request leads its next one, as it went upstream."""

import pytest
from tests.addons.history_order.rig import Rig, written
from tests.addons.history_order.talk import APIS, MENDED, Responses, Said, Talk

from midstream.core.addon import Mode, Prefixed
from midstream.dialects.provider_history import Digests
from midstream_addons.history_order.prefix import ENTRY_BYTES, MAX_ITEMS, Prefixes, sums_of

USER: Said = ("user", "q")
STEPS: tuple[tuple[Said, ...], ...] = (
    (("text", "Looking."), ("call", "c1")),
    (("text", "Reading."), ("call", "c2")),
    (("text", "Writing."), ("call", "c3")),
)


def in_order(steps: int) -> list[Said]:
    """Return the history of so many steps as the provider spoke."""
    return [USER, *(one for said in STEPS[:steps] for one in (*said, ("result", said[1][1])))]


def parked(steps: int) -> list[Said]:
    """Return it with all texts at the end, as the client of the report sends it."""
    said = in_order(steps)
    return [one for one in said if one[0] != "text"] + [one for one in said if one[0] == "text"]


def played(rig: Rig, talk: type[Talk], histories: list[list[Said]]) -> None:
    """Send one history after another; each is answered with the next step."""
    for history, answer in zip(histories, STEPS, strict=False):
        rig.post(written(talk.request(*history)), talk.events(*answer), talk.path)


def items(talk: type[Talk], history: list[Said]) -> int:
    request = talk.request(*history)
    return len(next(request[key] for key in ("input", "messages", "contents") if key in request))


@pytest.mark.parametrize("talk", APIS)
def test_a_history_that_only_grows_keeps_all_that_was_sent_before(talk):
    rig = Rig()
    histories = [in_order(steps) for steps in range(3)]
    played(rig, talk, histories)
    sent = sum(items(talk, history) for history in histories[:-1])
    assert rig.prefix == (sent, sent)


@pytest.mark.parametrize("talk", MENDED)
def test_a_mended_history_only_grows(talk):
    rig = Rig()
    played(rig, talk, [parked(steps) for steps in range(3)])
    sent = sum(items(talk, in_order(steps)) for steps in range(2))
    assert rig.prefix == (sent, sent)
    assert rig.repairs == {"reordered": 2}


def test_what_is_only_observed_is_counted_as_it_went_upstream():
    rig = Rig(Mode.OBSERVE)
    played(rig, Responses, [parked(steps) for steps in range(3)])
    assert rig.prefix == (1 + 3, 1 + 4), "the first text stands behind the second call"


def test_an_item_with_other_bytes_ends_what_was_kept():
    rig = Rig()
    played(rig, Responses, [in_order(0), in_order(1)])
    body = written(Responses.request(*in_order(2)))
    changed = body.replace(b'"output":', b'"output": ', 1)
    assert changed != body
    rig.post(changed)
    assert rig.prefix == (1 + 3, 1 + 4)


def test_a_history_that_starts_anew_keeps_nothing():
    rig = Rig()
    played(rig, Responses, [in_order(0), in_order(1)])
    rig.post(written(Responses.request(("user", "summary"), *in_order(2)[4:])))
    assert rig.prefix == (1, 1 + 4)


def test_a_request_of_an_unknown_conversation_is_not_compared():
    rig = Rig()
    played(rig, Responses, [in_order(0)])
    rig.post(written(Responses.request(*in_order(1))), path="/v1/responses", authorization="other")
    rig.post(written(Responses.request(USER)))
    assert rig.prefix == (0, 0)


def test_what_only_adds_to_a_history_that_the_provider_holds_is_not_compared():
    rig = Rig()
    rig.post(written(Responses.request(USER)), Responses.events(*STEPS[0], response="r1"))
    more = Responses.request(("result", "c1"), previous_response_id="r1")
    rig.post(written(more), Responses.events(*STEPS[1], response="r2"))
    rig.post(written(Responses.request(*in_order(2))))
    assert rig.prefix == (0, 0)


def test_a_request_over_websocket_is_compared_like_one_over_http():
    rig = Rig()
    socket = rig.socket()
    for steps in range(3):
        socket.client({"type": "response.create", **Responses.request(*in_order(steps))})
        socket.server(*Responses.events(*STEPS[steps]))
    assert rig.prefix == (1 + 4, 1 + 4)


def test_only_the_newest_request_of_a_path_is_remembered_and_its_bytes_are_counted():
    rig = Rig()
    played(rig, Responses, [in_order(steps) for steps in range(3)])
    (ledger,) = rig.ledgers
    assert [len(sums) for sums in ledger.prefixes.sums.values()] == [4 * 7]
    assert ledger.prefixes.size_bytes == 4 * 7 + ENTRY_BYTES
    before = ledger.size_bytes
    ledger.prefixes.drop(3)
    assert ledger.size_bytes == before - 4 * 7 - ENTRY_BYTES


def test_a_forgotten_response_takes_its_request_along():
    rig = Rig(max_responses=1)
    played(rig, Responses, [in_order(0), [("user", "another")]])
    (ledger,) = rig.ledgers
    assert list(ledger.prefixes.sums) == list(ledger.records) == [2]


def test_a_response_that_is_sent_twice_answers_the_later_request():
    prefixes = Prefixes()
    digests = Digests(b"secret")
    prefixes.move(0, 1, sums_of([b"a"], digests))
    prefixes.move(0, 1, sums_of([b"a", b"b"], digests))
    assert prefixes.compare(1, sums_of([b"a", b"b", b"c"], digests)) == Prefixed(2, 2)
    assert prefixes.size_bytes == 2 * 4 + ENTRY_BYTES


def test_only_the_head_of_a_very_long_request_is_compared():
    sums = sums_of([b"a"] * (MAX_ITEMS + 9), Digests(b"secret"))
    prefixes = Prefixes()
    prefixes.move(0, 1, sums)
    assert prefixes.compare(1, sums) == Prefixed(MAX_ITEMS, MAX_ITEMS)


def test_the_checksums_of_two_credentials_differ():
    assert sums_of([b"a"], Digests(b"one")) != sums_of([b"a"], Digests(b"two"))
