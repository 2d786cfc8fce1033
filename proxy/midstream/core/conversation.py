"""Conversations: what outlives an exchange, and is shared by all exchanges of one chat.

A conversation holds one state for each addon that wants one. It is found by a key that nobody can
guess across credentials: route, upstream, path, and a keyed hash of what the client proves itself
with. The registry keeps to its bounds by forgetting the least recently used ones; one that an
exchange is using is never forgotten, so that the bounds give way to the connections open now.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator

import msgspec

from midstream.core.exchange import Exchange, Headers

CREDENTIAL_HEADERS = ("authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key")


class ConversationBounds(msgspec.Struct, frozen=True):
    """How many conversations, and how many bytes of them, are remembered."""

    max_conversations: int = 10_000
    max_bytes: int = 256 << 20


def conversation_key(exchange: Exchange, path: str, secret: bytes) -> bytes:
    """Return 32 bytes that name a conversation. The query is no part of it: tokens rotate there.

    `secret` keys the hash: 1 to 64 bytes.
    """
    digest = hashlib.blake2b(digest_size=32, key=secret)
    credentials = (_values(exchange.head.headers, name) for name in CREDENTIAL_HEADERS)
    for part in (exchange.route, exchange.upstream, path, *credentials):
        encoded = part.encode("utf-8", "surrogateescape")
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.digest()


def _values(headers: Headers, name: str) -> str:
    """Return every value of a header: two clients may differ in the second cookie line alone."""
    return "\n".join(value for key, value in headers if key.lower() == name)


class Conversation:
    """The states of one chat, by addon name.

    `users` are the exchanges that use it now, `version` is that of the stored copy it was read from
    or written to last.
    """

    __slots__ = ("key", "sizes", "states", "users", "version")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.states: dict[str, object] = {}
        self.sizes: dict[str, int] = {}
        self.users = 0
        self.version = 0

    def state[C](self, name: str, new: Callable[[], C]) -> C:
        """Return the state kept under a name; `new` makes it when there is none."""
        if name not in self.states:
            self.states[name] = new()
        return self.states[name]  # type: ignore[return-value]  # a name always holds one type

    @property
    def size_bytes(self) -> int:
        return sum(self.sizes.values())


class Conversations:
    """The conversations in memory. Those that nobody uses are forgotten, longest unused first."""

    def __init__(self, bounds: ConversationBounds | None = None) -> None:
        self._bounds = bounds or ConversationBounds()
        self._known: dict[bytes, Conversation] = {}
        self._unused: OrderedDict[bytes, Conversation] = OrderedDict()
        self.size_bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self._known.values())

    def open(self, key: bytes) -> Conversation:
        """Return the conversation of a key, new or known, and count one more user of it."""
        conversation = self._known.get(key)
        if conversation is None:
            conversation = self._known[key] = Conversation(key)
        self._unused.pop(key, None)
        conversation.users += 1
        self._evict()
        return conversation

    def find(self, key: bytes) -> Conversation | None:
        """Return the conversation of a key if it is in memory."""
        return self._known.get(key)

    def close(self, conversation: Conversation, sizes: dict[str, int]) -> None:
        """Count one user less, note how large the states have grown, and forget the oldest.

        `sizes` are bytes by addon name. Where nobody uses the conversation, nothing happens.
        """
        if conversation.users == 0:
            return
        before = conversation.size_bytes
        conversation.sizes.update(sizes)
        self.size_bytes += conversation.size_bytes - before
        conversation.users -= 1
        if conversation.users == 0:
            self._unused[conversation.key] = conversation
        self._evict()

    def _evict(self) -> None:
        while self._unused and self._is_over():
            key, conversation = self._unused.popitem(last=False)
            del self._known[key]
            self.size_bytes -= conversation.size_bytes
            self.evictions += 1

    def _is_over(self) -> bool:
        return (
            len(self._known) > self._bounds.max_conversations
            or self.size_bytes > self._bounds.max_bytes
        )
