"""Draws conversations, and the ways in which a client may send their history.

An author makes up what was said. A client sends it in order, or with its texts behind later calls
of their turn (the shape of the report), or damaged. Everything comes from one seed.
"""

import os
import random
from collections.abc import Iterator

import msgspec
from tests.addons.history_order.model import (
    CALL,
    EDITED,
    HOSTED,
    RESULT,
    SYSTEM,
    TEXT,
    THINKING,
    USER,
    Said,
    Step,
    Style,
    Turn,
    Wire,
)
from tests.addons.history_order.model_anthropic import Anthropic
from tests.addons.history_order.model_chat import Chat
from tests.addons.history_order.model_responses import Responses

CASES = int(os.environ.get("MIDSTREAM_CASES", "0")) or 300
"""How many conversations of each kind are tried, over all APIs together."""
WIRES: tuple[Wire, ...] = (Responses(), Chat(), Anthropic())
JOINTS = (b",", b", ", b",\n    ")


class Shape(msgspec.Struct):
    """How a client loses the order: `thinking` stays, moves along with its text, or moves always.

    A text goes behind the last call of its turn, or, `scattered`, behind any later step.
    """

    thinking: str
    scattered: bool
    shuffled: bool
    behind: bool
    """Whether what is late stands even behind the final answer."""


class Asked(msgspec.Struct):
    """A request: the turns it holds, and what the provider will answer: lost ones, then the one."""

    turns: list[Turn]
    lost: list[list[Said]]
    answer: list[Said]


class Author:
    """Makes up one conversation, its style and its shape."""

    def __init__(self, wire: Wire, seed: int, *, inverts: bool) -> None:
        self.rnd = rnd = random.Random(f"{wire.api} {seed}")
        self.wire = wire
        self.is_alone = rnd.random() < 0.7
        """Whether its credential is its own; else every text is said once in all conversations."""
        self.prefix = f"{seed}"
        self.branches = rnd.random() < 0.3
        """Whether the user goes back once and asks something else; and answers get lost."""
        self._orders = 0
        self._answers = 0
        thinks = wire.api == "anthropic" and rnd.random() < 0.4
        moves = rnd.choice(("stays", "along", "all")) if wire.api == "openai-responses" else "stays"
        self.shape = Shape(
            moves, not thinks and rnd.random() < 0.4, rnd.random() < 0.3, rnd.random() < 0.3
        )
        self.style = Style(
            ids=rnd.choice(("none", "kept", "reference")),
            rotates=rnd.random() < 0.3,
            interleaves=rnd.random() < 0.4,
            parts=rnd.random() < 0.3,
            silent=rnd.choice(("null", "absent", "empty")),
            fused=inverts or rnd.random() < 0.7,
            separate=thinks and rnd.random() < 0.7,
            thinks=thinks,
            joint=rnd.choice(JOINTS),
            colon=rnd.choice((":", ": ")),
        )

    def say(self, kind: str, word: str = "", turn: int = 0, answer: int = 0) -> Said:
        self._orders += 1
        name = f"{self.prefix}.{self._orders}"
        said = word or f"{kind} {name}"
        return Said(kind, self._orders, said, f"{kind}_{name}", turn, answer)

    def turns(self, count: int, first: int = 1) -> list[Turn]:
        return [self._turn(number) for number in range(first, first + count)]

    def lost(self, like: list[Said]) -> list[list[Said]]:
        """Return answers that the client never keeps: none, another one, or the same one."""
        chance = self.rnd.random()
        if chance < 0.05:
            return [like]
        if not self.branches or chance > 0.25:
            return []
        return [self._said(like[0].turn, is_last=False, goes_on=False)]

    def _turn(self, number: int) -> Turn:
        asked = self.say(USER, turn=number)
        steps: list[Step] = []
        goes_on = False
        for left in range(self.rnd.randint(0, 3), -1, -1):
            was, goes_on = goes_on, left > 0 and not self.style.thinks and self.rnd.random() < 0.1
            said = self._said(number, is_last=not left or goes_on, goes_on=goes_on or was)
            results = [self.say(RESULT, one.word, number) for one in said if one.kind == CALL]
            self.rnd.shuffle(results)
            steps.append(Step(said, results))
        if self.rnd.random() < 0.2 and steps[-2:-1] and steps[-2].results:
            steps.pop()  # the user had something to say before the model was done
        return Turn(asked, steps)

    def _said(self, turn: int, *, is_last: bool, goes_on: bool) -> list[Said]:
        """Make up a response. One that `goes_on`, or follows such a one, is kept simple."""
        rnd, wire = self.rnd, self.wire
        self._answers += 1
        kinds: list[str] = []
        is_chat = wire.api == "openai-chat"
        is_plain = is_chat or (goes_on and self.shape.thinking == "stays")
        may_think = wire.api == "openai-responses" and not is_plain
        if self.style.thinks or (may_think and rnd.random() < 0.35):
            kinds.append(THINKING)
        if not is_chat and not goes_on and rnd.random() < 0.15:
            kinds.insert(0 if self.shape.thinking == "all" else len(kinds), HOSTED)
        texts = rnd.choice((0, 1, 1, 1, 1 if is_chat else 2))
        kinds += [TEXT] * (max(texts, 1) if is_last else texts)
        if not is_last:
            kinds += [THINKING] if may_think and rnd.random() < 0.15 else []
            kinds += [CALL] * rnd.choice((1, 1, 2, 3))
        return [self.say(kind, self._word(kind), turn, self._answers) for kind in kinds]

    def _word(self, kind: str) -> str:
        # Of equal texts nobody can tell which one is late, or of another branch: so they have to
        # stay in their order, and there is no other branch.
        stays = not (self.shape.scattered or self.shape.behind or self.branches)
        is_common = kind == TEXT and self.is_alone and stays and self.rnd.random() < 0.25
        return self.rnd.choice(("ok", "käse 🧀")) if is_common else ""


def requests(author: Author) -> Iterator[Asked]:
    """Yield every request of a conversation, in some of a branch of it, and a last one."""
    rnd = author.rnd
    turns = author.turns(rnd.randint(1, 3))
    yield from _requests(author, turns, 0)
    if len(turns) > 1 and author.branches:
        kept = rnd.randrange(1, len(turns))
        yield from _requests(author, [*turns[:kept], *author.turns(1, kept + 100)], kept)


def _requests(author: Author, turns: list[Turn], first: int) -> Iterator[Asked]:
    for number in range(first, len(turns)):
        turn = turns[number]
        for step, following in enumerate(turn.steps):
            so_far = [*turns[:number], Turn(turn.asked, turn.steps[:step])]
            yield Asked(so_far, author.lost(following.said), following.said)
    yield Asked([*turns, Turn(author.say(USER), [])], [], [])


def in_order(turns: list[Turn]) -> list[Said]:
    return [
        one
        for turn in turns
        for one in (turn.asked, *(x for s in turn.steps for x in (*s.said, *s.results)))
    ]


def inverted(turns: list[Turn], shape: Shape, rnd: random.Random) -> list[Said]:
    """Return what was said, the texts of a turn behind later calls of it."""
    return [one for turn in turns for one in _inverted(turn, shape, rnd)]


def _inverted(turn: Turn, shape: Shape, rnd: random.Random) -> Iterator[Said]:
    calling = [index for index, step in enumerate(turn.steps) if step.results]
    last = calling[-1] if calling else -1
    tail = len(turn.steps) - 1 if shape.behind else last
    late: dict[int, list[list[Said]]] = {}
    yield turn.asked
    for index, step in enumerate(turn.steps):
        for unit in _units(step.said, shape):
            if unit[-1].kind not in (TEXT, THINKING) or index > last or _stays(unit, shape):
                yield from unit
            else:
                soonest = next(later for later in calling if later >= index)
                slot = rnd.randint(soonest, tail) if shape.scattered else tail
                late.setdefault(slot, []).append(unit)
        yield from step.results
        units = late.get(index, [])
        if shape.shuffled:
            rnd.shuffle(units)
        yield from (one for unit in units for one in unit)


def _units(said: list[Said], shape: Shape) -> Iterator[list[Said]]:
    """Cut a response into what moves as one."""
    unit: list[Said] = []
    for one, after in zip(said, [*said[1:], None], strict=True):
        unit.append(one)
        is_bound = shape.thinking == "along" and one.kind == THINKING
        if not (is_bound and after is not None and after.kind == TEXT):
            yield unit
            unit = []


def _stays(unit: list[Said], shape: Shape) -> bool:
    return unit[-1].kind == THINKING and shape.thinking != "all"


def damaged(said: list[Said], other: list[Said], author: Author) -> list[Said]:
    """Return a history with one to four faults; `other` is one of another branch."""
    rnd = author.rnd
    said = list(said)
    for _ in range(rnd.randint(1, 4)):
        at, to = rnd.randrange(len(said)), rnd.randrange(len(said))
        one = said[at]
        fault = rnd.choice(("drop", "twice", "edit", "steer", "swap", "move", "merge"))
        if fault == "drop" and len(said) > 1:
            del said[at]
        elif fault == "twice":
            said.insert(to, one)
        elif fault == "edit" and one.kind == TEXT:
            said[at] = Said(TEXT, one.order, one.word + EDITED, one.name, one.turn, one.answer)
        elif fault == "steer":
            is_system = author.wire.api != "anthropic" and rnd.random() < 0.3
            said.insert(at, author.say(SYSTEM if is_system else USER))
        elif fault == "swap" and at:
            said[at - 1], said[at] = said[at], said[at - 1]
        elif fault == "move":
            said.insert(to, said.pop(at))
        elif fault == "merge" and other:
            start = rnd.randrange(len(other))
            taken = other[start : start + rnd.randint(1, 4)]
            said[at:at] = [one for one in taken if one not in said]
    return said
