"""What providers have said under one credential: a tree of responses, within bounds.

The parent of a response is the newest one that the request it answers had quoted. No content is
kept, only digests. The longest unused responses are forgotten first; what quotes a forgotten one is
not judged by it.
"""

from collections.abc import Iterator

import msgspec

from midstream.dialects.provider_history import Learned, Output
from midstream_addons.history_order import records
from midstream_addons.history_order.index import Index
from midstream_addons.history_order.prefix import Prefixes
from midstream_addons.history_order.records import (
    COMPLETE,
    Head,
    child_digest,
    found_by,
    head_of,
    outputs_of,
    root_digest,
)

RECORD_BYTES = 130
"""What a response takes beside its digests, headers of objects and its place in a dict included."""
MAX_NUMBER = (1 << 32) - 1
MAX_FOUND = 256
"""How many responses may hold one key or follow one response; with more it identifies nothing."""


class Bounds(msgspec.Struct, frozen=True):
    """How much is remembered under one credential, and for how long."""

    max_responses: int
    max_bytes: int
    max_age_s: int


class Begun(msgspec.Struct, frozen=True):
    """A request on its way: the response it goes on from, and the turn; 0 is none, or a new one.

    `sums` are the checksums of its items, see `prefix.py`.
    """

    parent: int = 0
    turn: int = 0
    sums: bytes = b""


class Ledger(msgspec.Struct):
    """Responses by number, the longest unused first."""

    records: dict[int, bytes] = msgspec.field(default_factory=dict)
    index: Index = msgspec.field(default_factory=Index)
    last: int = 0
    record_bytes: int = 0
    prefixes: Prefixes = msgspec.field(default_factory=Prefixes)

    def commit(self, begun: Begun, learned: Learned, now_s: int, bounds: Bounds) -> int:
        """Remember a response and return its number; 0 if it holds nothing, or there is no room.

        The same outputs after the same parent are the same response, sent twice.
        """
        if not learned.outputs or self.last >= MAX_NUMBER:
            return 0
        parent = begun.parent if begun.parent in self.records else 0
        depth = self.head(parent).depth + 1 if parent else 0
        known = self._same(parent, learned.outputs)
        if known:
            if learned.is_complete:
                self.records[known] = records.completed(self.records[known])
            self.prefixes.move(parent, known, begun.sums)
            return known
        self.last = number = self.last + 1
        flags = COMPLETE if learned.is_complete else 0
        head = Head(parent, begun.turn or number, depth, now_s, flags)
        self.records[number] = record = records.pack(head, learned.id, learned.outputs)
        self.record_bytes += len(record)
        self.prefixes.move(parent, number, begun.sums)
        for digest in found_by(record):
            self.index.add(digest, number)
        self._forget(now_s, bounds)
        return number

    def head(self, number: int) -> Head:
        return head_of(self.records[number])

    def outputs(self, number: int) -> Iterator[Output]:
        return outputs_of(self.records[number])

    def holders(self, key: bytes) -> list[int]:
        """Return the responses that hold a strong key."""
        return [n for n in self._find(key) if key in self.records[n]]

    def named(self, response: bytes) -> int:
        """Return the response with this id, or 0 if none or several have it."""
        found = [n for n in self._find(response) if records.id_of(self.records[n]) == response]
        return found[0] if len(found) == 1 else 0

    def children(self, parent: int) -> list[int]:
        """Return the responses to requests that had quoted `parent` last."""
        return [n for n in self._find(child_digest(parent)) if self.head(n).parent == parent]

    def roots(self, text: bytes) -> list[int]:
        """Return the responses without a parent that end in a text."""
        return [
            number
            for number in self._find(root_digest(text))
            if not self.head(number).parent and list(self.outputs(number))[-1].text == text
        ]

    def use(self, numbers: list[int], now_s: int) -> None:
        """Note that a request has quoted these responses, oldest first."""
        for number in numbers:
            self.records[number] = records.used_at(self.records.pop(number), now_s)

    @property
    def size_bytes(self) -> int:
        records_bytes = self.record_bytes + RECORD_BYTES * len(self.records)
        return records_bytes + self.index.size_bytes + self.prefixes.size_bytes

    def _find(self, digest: bytes) -> list[int]:
        found = self.index.find(digest)
        return found if len(found) <= MAX_FOUND else []

    def _same(self, parent: int, outputs: list[Output]) -> int:
        keys = [output.keys[0] for output in outputs if output.keys]
        if parent:
            siblings = self.children(parent)
        elif keys:
            siblings = self.holders(keys[0])
        else:
            siblings = self.roots(outputs[-1].text or b"")
        for number in siblings:
            if self.head(number).parent == parent and list(self.outputs(number)) == outputs:
                return number
        return 0

    def _forget(self, now_s: int, bounds: Bounds) -> None:
        while self.records:
            number = next(iter(self.records))
            is_old = now_s - self.head(number).used_s > bounds.max_age_s
            is_over = len(self.records) > bounds.max_responses or self.size_bytes > bounds.max_bytes
            if not is_old and not is_over:
                return
            self._drop(number)

    def _drop(self, number: int) -> None:
        record = self.records.pop(number)
        self.record_bytes -= len(record)
        self.prefixes.drop(number)
        for digest in found_by(record):
            self.index.discard(digest, number)
