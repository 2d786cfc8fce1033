"""What a provider said, and what a request says it said: the view that all provider dialects share.

A request carries the history as items in wire order; a response brings outputs in the provider's
own order. Both are known by strong keys (ids, signatures, encrypted content) and by their text.
No content is kept of a response: keys and texts become keyed digests at once.
"""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Protocol

import msgspec

from midstream.core.dialect import Dialect
from midstream.core.errors import Error

DIGEST_BYTES = 16


class Kind(StrEnum):
    """What an item is. HOSTED is what the provider ran itself, REFERENCE stands for another item.

    OPAQUE is whatever a dialect does not know: nothing moves past it.
    """

    USER = "user"
    SYSTEM = "system"
    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    RESULT = "result"
    HOSTED = "hosted"
    REFERENCE = "reference"
    OPAQUE = "opaque"

    __hash__ = str.__hash__  # an Enum's own is written in Python: sets of kinds would be slow


class Item(msgspec.Struct, frozen=True, gc=False):
    """One element of a request's history.

    `at` is where it stands: the index of its message, and the place inside it. `keys` are what
    identifies it for sure, `text` is what it says where it has no such key.
    """

    kind: Kind
    at: tuple[int, int]
    keys: tuple[str, ...] = ()
    text: str | None = None
    call_id: str = ""


class History(msgspec.Struct, frozen=True):
    """The history of one request. `is_delta`: the provider holds what came before.

    `previous` is the response that it says it continues, `stream` the one of several streams on a
    connection that it belongs to.
    """

    body: bytes
    items: list[Item]
    is_delta: bool = False
    previous: str = ""
    stream: str = ""


class Output(msgspec.Struct, frozen=True, gc=False):
    """One item of a response: digests of its strong keys, and of its text."""

    kind: Kind
    keys: tuple[bytes, ...] = ()
    text: bytes | None = None


class Learned(msgspec.Struct, frozen=True):
    """The outputs of a response that were completed, in the provider's order.

    `id` is the digest under which a later request may name the response, empty where it cannot.
    """

    id: bytes
    outputs: list[Output]
    is_complete: bool


class Refused(Error):
    """An order that the wire format cannot say, or must not; the message is the reason's word."""


class Digests:
    """Turns keys and texts into 128-bit digests. `key` has at most 64 bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(digest_size=DIGEST_BYTES, key=key, person=b"key")
        self._text = blake2b(digest_size=DIGEST_BYTES, key=key, person=b"text")

    def of_key(self, key: str) -> bytes:
        digest = self._key.copy()
        digest.update(key.encode("utf-8", "surrogatepass"))
        return digest.digest()

    def of_text(self, text: str) -> bytes:
        digest = self._text.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()

    def text(self) -> "TextDigest":
        """Return the digest of a text that comes in pieces."""
        return TextDigest(self._text.copy())


class TextDigest:
    """The digest of a text that comes in pieces, of which no more than half a character is kept."""

    __slots__ = ("_digest", "_half")

    def __init__(self, digest: blake2b) -> None:
        self._digest = digest
        self._half = ""

    def add(self, piece: str) -> None:
        try:
            if not self._half:
                self._digest.update(piece.encode())
                return
        except UnicodeEncodeError:
            pass
        self._add_halves(self._half + piece)

    def digest(self) -> bytes:
        whole = self._digest.copy()
        whole.update(self._half.encode("utf-8", "surrogatepass"))
        return whole.digest()

    def _add_halves(self, text: str) -> None:
        """Take a text with lone surrogates: the next piece may bring the other half of the last."""
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        is_cut = bool(text) and "\ud800" <= text[-1] <= "\udbff"
        self._half = text[-1] if is_cut else ""
        whole = text[:-1] if is_cut else text
        self._digest.update(whole.encode("utf-8", "surrogatepass"))


class Listener(Protocol):
    """Follows one response as it streams past."""

    def receive(self, payload: bytes) -> bool:
        """Take the payload of one event, and tell whether the response is over."""

    def learned(self) -> Learned:
        """Return what was completed so far."""


class Bonds(Protocol):
    """What is known of where the items of a request come from; items are named by index."""

    def is_one_response(self, item: int, other: int) -> bool:
        """Tell whether both came in one response."""

    def is_whole_response(self, items: Sequence[int]) -> bool:
        """Tell whether these are all outputs of one response, in its order."""


class Rules(msgspec.Struct, frozen=True):
    """What an API demands of the order of items.

    `splits` are the kinds that must not stand between a call and its result; with `follows`, what
    comes next after reasoning has to be the model's own.
    """

    splits: frozenset[Kind]
    follows: bool = False


class Provider(Dialect, Protocol):
    """The dialect of a model provider's API."""

    @property
    def api(self) -> str:
        """Return the name of the API, as `midstream history --api` knows it."""

    @property
    def rules(self) -> Rules: ...

    @property
    def fuses(self) -> bool:
        """Tell whether text and calls of one message have no order among themselves."""

    @property
    def permutes(self) -> bool:
        """Tell whether every item is an element of one array, so that reordering changes none."""

    def read_request(self, body: bytes) -> History | None:
        """Read the history of a request, or return None if it holds none."""

    def elements(self, body: bytes) -> Sequence[bytes | msgspec.Raw]:
        """Return the elements of the array that holds the history, raw; none if there is none."""

    def stream_of(self, payload: bytes) -> str:
        """Return which of several streams on a connection an event belongs to."""

    def listen(self, digests: Digests) -> Listener:
        """Return what follows a streamed response."""

    def read_response(self, body: bytes, digests: Digests) -> Learned | None:
        """Read a response that came whole, or return None if it is none."""

    def reorder(
        self, history: History, order: Sequence[int], moved: Sequence[int], bonds: Bonds
    ) -> bytes:
        """Return the body with its items in another order. Raises Refused, EditError.

        `order` has the index of every item, `moved` of those that moved towards the head.
        """
