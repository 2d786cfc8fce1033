"""Made-up conversations, streamed past the repair: in order, out of order, and damaged.

MIDSTREAM_CASES is how many conversations of each kind are tried. A failure names its case.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.addons.history_order.fuzz import (
    CASES,
    WIRES,
    Asked,
    Author,
    damaged,
    in_order,
    inverted,
    requests,
)
from tests.addons.history_order.model import CALL, TEXT, THINKING, Fields, Said, Wire
from tests.addons.history_order.model_anthropic import Anthropic
from tests.addons.history_order.model_checks import (
    Lines,
    Pairs,
    check_kept,
    check_order,
    check_thinking,
    check_walls,
    count_pairs,
    placed,
    recognised,
)
from tests.addons.history_order.model_proxy import Proxy, Talk

EACH = -(-CASES // len(WIRES))
SHARING = 10
"""So many conversations go through one proxy; some share a credential."""

each_api = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api)


class Play:
    """Plays a conversation through a proxy."""

    def __init__(self, wire: Wire, seed: int, proxy: Proxy, *, inverts: bool) -> None:
        self.wire = wire
        self.proxy = proxy
        self.author = author = Author(wire, seed, inverts=inverts)
        self.rnd = author.rnd
        credential = f"own {seed}" if author.is_alone else "shared"
        is_socket = wire.api == "openai-responses" and self.rnd.random() < 0.15
        self.is_whole = not is_socket and self.rnd.random() < 0.2
        self.talk = Talk(proxy, wire.path, credential, self.rnd, is_socket=is_socket)
        self.lines = Lines()
        self.answers: list[list[Said]] = []
        self.streams: dict[int, list[bytes]] = {}

    def sent(self, said: list[Said]) -> tuple[bytes, bytes, Counter[str]]:
        """Send a history; return it as it was sent, as it arrived, and what was counted."""
        body, before = self.wire.body(said, self.author.style), self.proxy.counted()
        left = self.talk.ask(body)
        counted = self.proxy.counted() - before
        assert not counted["error"]
        return body, left, counted

    def answered(self, said: list[Said], *, is_cut: bool = False) -> None:
        style = self.author.style
        if self.is_whole:
            self.talk.answer_whole(self.wire.whole(said, style))
            return
        if said[0].answer not in self.streams:
            self.streams[said[0].answer] = self.wire.events(said, style, self.rnd)
        events = self.streams[said[0].answer]
        self.talk.answer(events[: self.rnd.randrange(len(events) - 1)] if is_cut else events)

    def respond(self, asked: Asked, said: list[Said]) -> None:
        """Answer the request that was sent; the first answers get lost, and it is sent again."""
        for lost in asked.lost:
            self.answered(lost, is_cut=lost is not asked.answer and self.rnd.random() < 0.5)
            self.sent(said)
        if asked.answer:
            self.answers.append(asked.answer)
            self.lines.add(in_order(asked.turns), asked.answer)
            self.answered(asked.answer)


@contextmanager
def case(play: Play, seed: int) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        error.add_note(f"case {seed} of {play.wire.api}: {play.author.style} {play.author.shape}")
        raise
    play.talk.close()


def plays(wire: Wire, *, inverts: bool) -> Iterator[tuple[int, Play]]:
    for seed in range(EACH):
        if seed % SHARING == 0:
            proxy = Proxy()
        yield seed, Play(wire, seed, proxy, inverts=inverts)


def same(wire: Wire, left: bytes, wanted: bytes) -> bool:
    """Tell whether two bodies say the same: to the byte, where the API has one item for each."""
    if wire.api == "openai-responses":
        return left == wanted
    return plain(left) == plain(wanted)


def plain(body: bytes) -> Fields:
    """Return a body with each content in one form, and without the empty ones."""
    read: Fields = json.loads(body)
    for message in read["messages"]:
        if not message.get("content"):
            message.pop("content", None)
        elif isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    return read


def counted_pairs(counted: Counter[str]) -> tuple[Pairs, int]:
    return Pairs(counted["comparable"], counted["inverted_in"]), counted["inverted_out"]


def is_mixed(play: Play, said: list[Said]) -> bool:
    """Tell whether a late text stands in a message with the signed thinking of another response."""
    wire = play.wire
    tokens = wire.tokens(wire.body(said, play.author.style))
    messages = [(s, t.message) for s, t in zip(wire.spread(said), tokens, strict=True)]
    thinking: dict[int, set[int]] = {}
    for one, message in messages:
        if one.kind == THINKING:
            thinking.setdefault(message, set()).add(one.answer)
    calling = {one.answer for one in said if one.kind == CALL}
    return play.author.style.thinks and any(
        one.kind == TEXT and one.answer in calling - thinking.get(message, calling)
        for one, message in messages
    )


@each_api
def test_a_history_in_order_goes_on_as_it_came(wire: Wire) -> None:
    for seed, play in plays(wire, inverts=False):
        with case(play, seed):
            for asked in requests(play.author):
                said = in_order(asked.turns)
                body, left, counted = play.sent(said)
                assert left == body
                pairs, after = counted_pairs(counted)
                assert pairs == count_pairs(placed(wire, wire.spread(said), wire.tokens(body)))
                assert (pairs.inverted, after) == (0, 0)
                play.respond(asked, said)


@each_api
def test_an_inverted_history_reaches_the_provider_in_its_own_order(wire: Wire) -> None:
    restored = mixed = 0
    for seed, play in plays(wire, inverts=True):
        with case(play, seed):
            author = play.author
            for asked in requests(author):
                said, right = inverted(asked.turns, author.shape, play.rnd), in_order(asked.turns)
                body, left, counted = play.sent(said)
                wanted = wire.body(right, author.style)
                pairs, after = counted_pairs(counted)
                assert pairs == count_pairs(placed(wire, wire.spread(said), wire.tokens(body)))
                restored += pairs.inverted > 0
                mixed += is_mixed(play, said)
                assert same(wire, left, wanted)
                assert (after, counted["reordered"]) == (0, int(left != body))
                check_kept(wire, author.style, said, body, left)
                play.respond(asked, said)
    assert restored > EACH / 2
    assert mixed > EACH / 20 or wire.api != "anthropic"


@each_api
def test_a_damaged_history_is_never_made_worse(wire: Wire) -> None:
    changed = 0
    for seed, play in plays(wire, inverts=True):
        with case(play, seed):
            author = play.author
            is_early = play.rnd.random() < 0.2
            ends: list[list[Said]] = []
            for asked in requests(author):
                said = inverted(asked.turns, author.shape, play.rnd)
                if play.rnd.random() < 0.3:
                    said = in_order(asked.turns)
                if not asked.answer:
                    ends.append(said)
                    continue
                if is_early and play.rnd.random() < 0.5:
                    said = damaged(said, [], author)
                body, left, _ = play.sent(said)
                check(play, said, body, left)
                play.respond(asked, said)
            for said in ends:
                said = damaged(said, ends[0], author)
                body, left, counted = play.sent(said)
                check(play, said, body, left)
                changed += left != body
                if left != body and not is_early:
                    better(play, said, body, left, counted)
    assert changed > EACH / 10


def check(play: Play, said: list[Said], body: bytes, left: bytes) -> None:
    if left == body:
        return
    check_kept(play.wire, play.author.style, said, body, left)
    check_walls(play.wire, said, body, left)
    check_order(play.wire, said, body, left, play.lines)
    if isinstance(play.wire, Anthropic):
        check_thinking(body, left, [play.wire.blocks(answer) for answer in play.answers])


def better(play: Play, said: list[Said], body: bytes, left: bytes, counted: Counter[str]) -> None:
    """A history that was changed has fewer pairs turned round, and is not changed again."""
    wire = play.wire
    kinds = (TEXT, THINKING)
    old = placed(wire, wire.spread(said), wire.tokens(body))
    new = placed(wire, recognised(wire, said, body, left), wire.tokens(left))
    assert count_pairs(new, kinds).inverted < count_pairs(old, kinds).inverted
    assert counted["inverted_out"] <= counted["inverted_in"]
    assert play.talk.ask(left) == left
