"""What the repair remembers: of one exchange, and of the chat that all exchanges share."""

import msgspec

ID_BYTES = 64


class Kept(msgspec.Struct):
    """A message of an earlier list: raw JSON, or raw msgpack if `is_packed`."""

    id: str
    document: bytes
    is_packed: bool


class Chat(msgspec.Struct):
    """The chat. What it shows of the server stays when it is emptied; its messages do not.

    `delivered` are synthetic ids that a server list showed first, `claimed` ids with such a prefix
    that a client showed first; once `is_overfull`, a claim may have been forgotten and nothing more
    is proven. `created` is the `createdAt` of each at the last read, `stale` that of a stored copy
    that stands alone. `tail` is the end of the last list, `range_ends` the last real message of
    each compacted range. `turns`, `continuations`, `syncs` count what makes a server send lists.
    """

    delivered: dict[str, None] = msgspec.field(default_factory=dict)
    claimed: dict[str, None] = msgspec.field(default_factory=dict)
    is_overfull: bool = False
    created: dict[str, bytes] = msgspec.field(default_factory=dict)
    stale: dict[str, bytes] = msgspec.field(default_factory=dict)
    tail: list[bytes] = msgspec.field(default_factory=list)
    range_ends: dict[str, Kept] = msgspec.field(default_factory=dict)
    turns: int = 0
    continuations: int = 0
    syncs: int = 0
    synced: list[str] | None = None
    is_settled: bool = False
    pushes_lists: bool = False
    stays_silent: bool = False
    takes_lists: bool = False

    def forget(self) -> None:
        """Forget the messages: the chat was emptied."""
        for kept in (self.delivered, self.claimed, self.created, self.stale, self.range_ends):
            kept.clear()
        self.tail.clear()
        self.is_overfull = False
        self.synced = None

    def deliver(self, identifier: str, limit: int) -> None:
        """Note a synthetic message in a server list: proof, unless a client had it first."""
        if identifier in self.claimed or (self.is_overfull and identifier not in self.delivered):
            return
        remember(self.delivered, identifier, None, limit)

    def claim(self, identifier: str, limit: int) -> None:
        """Note that a client showed an id that no server list had shown."""
        if identifier in self.delivered or identifier in self.claimed:
            return
        if len(self.claimed) < limit:
            self.claimed[identifier] = None
        else:
            self.is_overfull = True

    @property
    def size_bytes(self) -> int:
        ids = (self.delivered, self.claimed, self.created, self.stale, self.range_ends)
        count = sum(len(kept) for kept in ids) + len(self.synced or ())
        tail = sum(len(document) for document in self.tail)
        return count * ID_BYTES + tail + sum(len(k.document) for k in self.range_ends.values())


class Socket(msgspec.Struct):
    """One exchange. `turns` and the like are those of the chat when it was opened, or last asked.

    `is_busy` tells that a stream which this socket did not ask for explains a list, `is_running`
    that it has not ended.
    """

    turns: int = 0
    continuations: int = 0
    syncs: int = 0
    own_sync: int = 0
    has_asked: bool = False
    has_list: bool = False
    is_busy: bool = False
    is_running: bool = False
    is_answered: bool = False


def remember[V](kept: dict[str, V], key: str, value: V, limit: int) -> None:
    """Keep a value as the newest of a bounded number."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > limit:
        del kept[next(iter(kept))]
