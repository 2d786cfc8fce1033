"""Finds the responses that hold a digest, at some 15 bytes a digest.

A Python dict would take 90 to 120 bytes each (measured). So digests are spread over buckets of
bytes, eight bytes each: the first four of the digest, and the number of the response. The table
grows by one bucket at a time (linear hashing), so that no request ever waits for all of it. A hit
may be wrong once in some 2**28 times: who asks looks into the response.
"""

from struct import Struct

import msgspec

_SLOT = Struct("<II")
FILL = 12
"""How many digests a bucket holds on average."""


class Index(msgspec.Struct):
    """`buckets` by address; `count` digests are in them."""

    buckets: list[bytes] = msgspec.field(default_factory=lambda: [b""])
    count: int = 0

    def add(self, digest: bytes, number: int) -> None:
        slot = digest[:4] + number.to_bytes(4, "little")
        self.buckets[self._address(digest)] += slot
        self.count += 1
        if self.count > FILL * len(self.buckets):
            self._split()

    def discard(self, digest: bytes, number: int) -> None:
        """Take one digest of a response out, if it is there."""
        address = self._address(digest)
        bucket, at = self.buckets[address], 0
        slot = digest[:4] + number.to_bytes(4, "little")
        while (at := bucket.find(slot, at)) >= 0:
            if at % _SLOT.size == 0:
                self.buckets[address] = bucket[:at] + bucket[at + _SLOT.size :]
                self.count -= 1
                return
            at += 1

    def find(self, digest: bytes) -> list[int]:
        """Return the numbers of the responses that seem to hold a digest."""
        bucket, tag = self.buckets[self._address(digest)], digest[:4]
        found = []
        at = bucket.find(tag)
        while at >= 0:
            if not at & 7:  # else these are bytes of two slots, or of a number
                found.append(int.from_bytes(bucket[at + 4 : at + 8], "little"))
            at = bucket.find(tag, at + 1)
        return found

    @property
    def size_bytes(self) -> int:
        return _SLOT.size * self.count + 48 * len(self.buckets)

    def _address(self, digest: bytes) -> int:
        count = len(self.buckets)
        half = 1 << (count.bit_length() - 1)
        word = int.from_bytes(digest[:4], "little")
        address = word & (2 * half - 1)
        return address if address < count else address - half

    def _split(self) -> None:
        """Add a bucket, and move to it what belongs there of the one that it splits."""
        count = len(self.buckets)
        half = 1 << (count.bit_length() - 1)
        bucket = self.buckets[count - half]
        stays: list[bytes] = []
        goes: list[bytes] = []
        for word, number in _SLOT.iter_unpack(bucket):
            (goes if word & half else stays).append(_SLOT.pack(word, number))
        self.buckets[count - half] = b"".join(stays)
        self.buckets.append(b"".join(goes))
