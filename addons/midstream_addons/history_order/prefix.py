"""Tells how much of a conversation's last request leads its next one: what prompt caches live on.

Of each item that went upstream, its bytes as they stood there, a checksum is kept until the newest
response of its path has a later one. A checksum is no proof, but here nothing is changed by it.
"""

from collections.abc import Iterable
from itertools import takewhile
from operator import eq
from zlib import crc32

import msgspec

from midstream.core.addon import Prefixed
from midstream.dialects.provider_history import Digests

SUM_BYTES = 4
MAX_ITEMS = 4_096
"""How many items of a request are compared, from its head."""
ENTRY_BYTES = 160
"""What the checksums of a request take beside themselves: headers, number, place in a dict."""


class Prefixes(msgspec.Struct):
    """The checksums of the requests that the newest responses answer, by number of response."""

    sums: dict[int, bytes] = msgspec.field(default_factory=dict)
    sum_bytes: int = 0

    def move(self, parent: int, number: int, sums: bytes) -> None:
        """Note what request a response answers; what its parent answers is wanted no more."""
        self.drop(parent)
        self.drop(number)
        if sums:
            self.sums[number] = sums
            self.sum_bytes += len(sums)

    def drop(self, number: int) -> None:
        self.sum_bytes -= len(self.sums.pop(number, b""))

    def compare(self, parent: int, sums: bytes) -> Prefixed | None:
        """Compare a request with the one before it on its path, if that is known."""
        earlier = self.sums.get(parent)
        if not earlier or not sums:
            return None
        old, new = memoryview(earlier).cast("I"), memoryview(sums).cast("I")
        kept = sum(takewhile(bool, map(eq, old, new)))
        return Prefixed(kept, len(old))

    @property
    def size_bytes(self) -> int:
        return self.sum_bytes + ENTRY_BYTES * len(self.sums)


def sums_of(elements: Iterable[bytes | msgspec.Raw], digests: Digests) -> bytes:
    """Return the checksums of the items of a request, which start from a secret."""
    start = int.from_bytes(digests.of_key("prefix")[:SUM_BYTES], "little")
    sums = [crc32(element, start) for element in elements]
    return b"".join([one.to_bytes(SUM_BYTES, "little") for one in sums[:MAX_ITEMS]])
