"""What was recorded lately and is not written: it is, once something happens or somebody asks.

Records wait encoded, so that their size is known to the byte. The oldest go first, by size and by
age. Only the heads of an exchange stay for as long as anything else of it may be written: without
them it could be neither read nor replayed. A `Gap` tells how many others went.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from midstream.core.ports import RecordKind

MAX_DEAD: Final = 1024
WAITING_BYTES: Final = 200
"""What a record takes beside its own bytes (measured: 180 to 200)."""
_HEADS: Final = frozenset({RecordKind.OPEN, RecordKind.HEADERS})

type Place = tuple[str, str]


class Trail:
    """An exchange that is captured.

    `place` is what related exchanges share: their route and path. `waiting` is how many of its
    records the ring holds, `went` how many it let go of, and `heads` are those that stay.
    """

    __slots__ = ("heads", "is_kept", "is_open", "number", "place", "route", "waiting", "went")

    def __init__(self, number: int, route: str, path: str) -> None:
        self.number = number
        self.route = route
        self.place: Place = (route, path)
        self.is_kept = False
        self.is_open = True
        self.heads: list[Waiting] = []
        self.waiting = self.went = 0


class Waiting:
    """A record that waits, encoded. Its block is empty once it is written, or gone."""

    __slots__ = ("at_ns", "block", "kind", "trail")

    def __init__(self, trail: Trail, kind: RecordKind, at_ns: int, block: bytes) -> None:
        self.trail = trail
        self.kind = kind
        self.at_ns = at_ns
        self.block = block

    @property
    def size_bytes(self) -> int:
        return len(self.block) + WAITING_BYTES


class Gap:
    """Stands where `count` records of an exchange are missing."""

    __slots__ = ("count", "trail")

    def __init__(self, trail: Trail) -> None:
        self.trail, self.count = trail, trail.went


type Piece = Waiting | Gap


class Ring:
    """The last records, within `max_bytes` and `max_ns`; heads that stay take as much at most."""

    def __init__(self, max_bytes: int, max_ns: int) -> None:
        self._max_bytes = max_bytes
        self._max_ns = max_ns
        self._order: deque[Waiting] = deque()
        self._at: dict[Place, deque[Waiting]] = {}
        self._bytes = self._head_bytes = self._dead = 0

    def __len__(self) -> int:
        return len(self._order) - self._dead

    @property
    def size_bytes(self) -> int:
        return self._bytes + self._head_bytes

    def add(self, waiting: Waiting) -> None:
        """Add a record; the oldest go to stay within bounds."""
        self._order.append(waiting)
        self._at.setdefault(waiting.trail.place, deque()).append(waiting)
        waiting.trail.waiting += 1
        self._bytes += waiting.size_bytes
        oldest_ns = waiting.at_ns - self._max_ns
        while self._order and (self._bytes > self._max_bytes or self._order[0].at_ns < oldest_ns):
            self._let_go(self._order.popleft())

    def take_all(self) -> Iterator[Piece]:
        """Take out everything, oldest first."""
        taken, self._order = self._order, deque()
        self._at.clear()
        self._bytes = self._dead = 0
        for waiting in taken:
            if waiting.block:
                yield from self._take(waiting)

    def take(self, trail: Trail) -> Iterator[Piece]:
        """Take out what there is of an exchange, and of the others at its place, oldest first."""
        taken = self._at.pop(trail.place, ())
        self._dead += len(taken)
        for waiting in taken:
            self._bytes -= waiting.size_bytes
            yield from self._take(waiting)
        yield from self._heads(trail)
        if self._dead > MAX_DEAD + len(self):
            self._order = deque(waiting for waiting in self._order if waiting.block)
            self._dead = 0

    def close(self, trail: Trail) -> None:
        """Note that an exchange is over: its heads stay for its waiting records only."""
        trail.is_open = False
        self._settle(trail)

    def _take(self, waiting: Waiting) -> Iterator[Piece]:
        trail = waiting.trail
        yield from self._heads(trail)
        yield Waiting(trail, waiting.kind, waiting.at_ns, waiting.block)
        waiting.block = b""
        trail.waiting -= 1

    def _heads(self, trail: Trail) -> Iterator[Piece]:
        """Take the heads of an exchange whose first records went, and tell what is missing."""
        yield from trail.heads
        self._drop_heads(trail)
        if trail.went:
            yield Gap(trail)
            trail.went = 0

    def _let_go(self, waiting: Waiting) -> None:
        if not waiting.block:
            self._dead -= 1
            return
        trail, size = waiting.trail, waiting.size_bytes
        place = self._at[trail.place]
        place.popleft()
        if not place:
            del self._at[trail.place]
        trail.waiting -= 1
        self._bytes -= size
        if waiting.kind in _HEADS and self._head_bytes + size <= self._max_bytes:
            trail.heads.append(waiting)
            self._head_bytes += size
        else:
            trail.went += 1
        self._settle(trail)

    def _settle(self, trail: Trail) -> None:
        if not trail.is_open and not trail.waiting:
            self._drop_heads(trail)

    def _drop_heads(self, trail: Trail) -> None:
        self._head_bytes -= sum(head.size_bytes for head in trail.heads)
        trail.heads.clear()
