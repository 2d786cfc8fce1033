"""What a conversation is to those in it, whatever API they speak: who said what, and when.

Nothing here knows how the repair works. `order` is the truth that every check goes by.
"""

import json
import random
from typing import Any, Protocol

import msgspec

type Fields = dict[str, Any]

USER, SYSTEM, TEXT, THINKING = "user", "system", "text", "thinking"
CALL, RESULT, HOSTED = "call", "result", "hosted"
SPOKEN = frozenset({TEXT, THINKING, CALL, HOSTED})
"""The kinds that a provider says."""
EDITED = " (edited)"
"""How a text ends that no provider has said."""


class Said(msgspec.Struct, eq=False):
    """One thing that was said. `order` counts through the conversation, `answer` names a response.

    `word` is what it says: a text, a call's id, an id of another item. `name` is its own in all
    conversations. `ids` are the item ids that it was streamed under, `item` is how the client
    writes it, once it has.
    """

    kind: str
    order: int
    word: str
    name: str = ""
    turn: int = 0
    answer: int = 0
    ids: list[str] = []
    item: bytes = b""


class Step(msgspec.Struct, eq=False):
    """A response, and the results of its calls in the order in which they came."""

    said: list[Said]
    results: list[Said]


class Turn(msgspec.Struct, eq=False):
    """What a user asked, and the steps taken for it."""

    asked: Said
    steps: list[Step]


class Style(msgspec.Struct):
    """The habits of one client and its provider, drawn once for a conversation.

    `ids` is how it names what it quotes: `none`, `kept`, or `reference` to what the provider keeps.
    `silent` is how a message without a text is written; `joint` is what stands between elements.
    """

    ids: str = "none"
    rotates: bool = False
    interleaves: bool = False
    parts: bool = False
    silent: str = "null"
    fused: bool = True
    separate: bool = False
    thinks: bool = False
    joint: bytes = b","
    colon: str = ":"

    def written(self, value: object) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", self.colon)).encode()

    def array(self, elements: list[bytes]) -> bytes:
        return b"[" + self.joint.join(elements) + b"]"


class Token(msgspec.Struct, frozen=True):
    """One thing as a body has it: where, its kind, its call's id, and its JSON in one form."""

    message: int
    kind: str
    call: str
    form: str


class Wire(Protocol):
    """How one API writes and reads."""

    api: str
    path: str
    fuses: bool
    """Whether text and calls of one message have no order."""

    def events(self, said: list[Said], style: Style, rnd: random.Random) -> list[bytes]:
        """Return the payloads of a response that is streamed."""

    def whole(self, said: list[Said], style: Style) -> bytes:
        """Return a response that is not."""

    def body(self, said: list[Said], style: Style) -> bytes:
        """Return a request."""

    def tokens(self, body: bytes) -> list[Token]:
        """Read a request, in its order."""

    def spread(self, said: list[Said]) -> list[Said]:
        """Return what each token of a body is, in the same order."""

    def faults(self, tokens: list[Token]) -> set[tuple[str, str]]:
        """Return what the API would refuse."""


def form(value: object) -> str:
    """Return the one way to write a JSON value."""
    return json.dumps(value, sort_keys=True)


def names(said: Said, style: Style, rnd: random.Random, size: int) -> list[str]:
    """Return the item ids that `size` events of one item carry, and note them."""
    base = said.name
    if not style.rotates:
        said.ids = [base]
        return [base] * size
    said.ids = [f"{base}_{rnd.getrandbits(32):08x}" for _ in range(size)]
    return said.ids


def pieces(text: str, rnd: random.Random) -> list[str]:
    """Cut a text into the pieces of a stream."""
    cuts = sorted(rnd.randrange(len(text) + 1) for _ in range(rnd.choice((0, 1, 2))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
