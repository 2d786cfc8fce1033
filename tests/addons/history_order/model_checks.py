"""Checks what reached a provider against what was said. None of it asks the repair."""

import json
from collections import Counter
from collections.abc import Sequence

import msgspec
from tests.addons.history_order.model import (
    CALL,
    EDITED,
    RESULT,
    SPOKEN,
    SYSTEM,
    TEXT,
    THINKING,
    USER,
    Fields,
    Said,
    Style,
    Token,
    Wire,
    form,
)
from tests.addons.history_order.model_anthropic import contents

type Placed = list[tuple[Said, int]]


class Pairs(msgspec.Struct, frozen=True):
    comparable: int
    inverted: int


def count_pairs(placed: Placed, kinds: Sequence[str] = (TEXT,)) -> Pairs:
    """Count pairs of a text and a call that came later in its turn: all, and those turned round."""
    comparable = inverted = 0
    for text, at in placed:
        if text.kind not in kinds:
            continue
        for call, place in placed:
            if call.kind == CALL and call.turn == text.turn and text.order < call.order:
                comparable += 1
                inverted += at > place
    return Pairs(comparable, inverted)


def placed(wire: Wire, said: list[Said], tokens: list[Token]) -> Placed:
    """Return what was said with its place in a body."""
    places = [t.message for t in tokens] if wire.fuses else range(len(tokens))
    return list(zip(said, places, strict=True))


def recognised(wire: Wire, said: list[Said], sent: bytes, left: bytes) -> list[Said]:
    """Return what the tokens of a body are; those of one form are taken to be in their order."""
    asked: dict[str, list[Said]] = {}
    for one, token in zip(wire.spread(said), wire.tokens(sent), strict=True):
        asked.setdefault(token.form, []).append(one)
    for same in asked.values():
        same.sort(key=lambda one: one.order)
    return [asked[token.form].pop(0) for token in wire.tokens(left)]


def check_kept(wire: Wire, style: Style, said: list[Said], sent: bytes, left: bytes) -> None:
    """Nothing is lost or added, nothing else is touched, nothing is newly refused."""
    before, after = wire.tokens(sent), wire.tokens(left)
    assert Counter(t.form for t in before) == Counter(t.form for t in after), "lost or added"
    assert wire.faults(after) <= wire.faults(before), "newly refused"
    key = "input" if wire.api == "openai-responses" else "messages"
    old, new = json.loads(sent), json.loads(left)
    assert [*old] == [*new]
    assert {**old, key: 0} == {**new, key: 0}, "something else is touched"
    if wire.api == "openai-responses":
        assert left == wire.body(recognised(wire, said, sent, left), style), "bytes of an item"
        return
    values = Counter(map(form, new[key]))
    for message in old[key]:
        if values[form(message)]:
            assert style.written(message) in left, "the bytes of an untouched message"


def check_order(wire: Wire, said: list[Said], sent: bytes, left: bytes, lines: "Lines") -> None:
    """What the provider said first, and the client sent first, still comes first."""
    shared = recognised(wire, said, sent, sent)
    old = _places(placed(wire, shared, wire.tokens(sent)))
    new = _places(placed(wire, recognised(wire, said, sent, left), wire.tokens(left)))
    times = Counter(map(id, said))
    forms = zip(shared, wire.tokens(sent), strict=True)
    unsure = {token.form for one, token in forms if times[id(one)] > 1}
    forms = zip(shared, wire.tokens(sent), strict=True)
    spoken = [one for one, token in forms if one.kind in SPOKEN and token.form not in unsure]
    for one in spoken:
        for other in spoken:
            if one.order < other.order and lines.has(one, other) and old[id(one)] <= old[id(other)]:
                assert new[id(one)] <= new[id(other)], (one.word, other.word)


def check_walls(wire: Wire, said: list[Said], sent: bytes, left: bytes) -> None:
    """Nothing has passed what a user said, a text of nobody's, or a result without its call."""
    calls = {one.word for one in said if one.kind == CALL}
    sections = []
    for body in (sent, left):
        found: Counter[tuple[int, int]] = Counter()
        passed = 0
        for one in recognised(wire, said, sent, body):
            is_orphan = one.kind == RESULT and one.word not in calls
            passed += is_orphan or one.kind in (USER, SYSTEM) or one.word.endswith(EDITED)
            found[id(one), passed] += 1
        sections.append(found)
    assert sections[0] == sections[1], "past a wall"


def _places(places: Placed) -> dict[int, int]:
    return {id(one): at for one, at in places}


class Lines:
    """Which answers follow which: two of different branches have no order."""

    def __init__(self) -> None:
        self._before: dict[int, set[int]] = {}

    def add(self, said: list[Said], answer: list[Said]) -> None:
        if answer:
            quoted = {one.answer for one in said}
            self._before.setdefault(answer[0].answer, set()).update(quoted)

    def has(self, one: Said, other: Said) -> bool:
        return one.answer == other.answer or one.answer in self._before.get(other.answer, ())


def check_thinking(sent: bytes, left: bytes, answers: list[list[Fields]]) -> None:
    """A message with signed thinking is what the client sent, or what the provider said."""
    known = [form(contents(message)) for message in json.loads(sent)["messages"]]
    known += [form(blocks) for blocks in answers]
    for message in json.loads(left)["messages"]:
        blocks = contents(message)
        if any(block["type"] == THINKING for block in blocks):
            assert form(blocks) in known, "signed thinking in another message"
