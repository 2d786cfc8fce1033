"""Compares texts in UTF-16 code units, and weighs them.

A peer on the JVM may cut a stream inside a surrogate pair. In code units the first half is still a
prefix of the whole; in characters it is not. A text here is bytes, two for each code unit.
"""

import unicodedata
from hashlib import blake2b
from typing import Final, Self

import msgspec

UNIT_BYTES: Final = 2
_ENCODING: Final = "utf-16-le"
_BLOCK_BYTES: Final = 4096
WEIGHED_BYTES: Final = 256
_ENOUGH_BITS: Final = 40.0
_REPEATED_BITS, _SPACE_BITS, _WIDE_BITS, _WORD_BITS, _OTHER_BITS = 0.3, 0.5, 4.0, 2.0, 1.0
STRIP_SLACK_BYTES: Final = 256
DIGEST_BYTES: Final = 16
_UNFINISHED: Final = "\ufffd"

type Units = bytes | bytearray | memoryview


class Digest(msgspec.Struct, frozen=True):
    """A text that is not kept, by its length and digest."""

    size_bytes: int
    value: bytes

    @classmethod
    def of(cls, text: Units) -> Self:
        return cls(len(text), digest(text))

    def begins(self, text: bytes) -> bool:
        """Tell whether a text begins with this one."""
        return len(text) >= self.size_bytes and Digest.of(text[: self.size_bytes]) == self


def digest(text: Units) -> bytes:
    return blake2b(text, digest_size=DIGEST_BYTES).digest()


def units(text: str) -> bytes:
    return text.encode(_ENCODING, "surrogatepass")


def text_of(given: Units) -> str:
    """Return the text; the halves of a pair that were apart become one character again."""
    return bytes(given).decode(_ENCODING, "surrogatepass")


def information(given: Units) -> float:
    """Return how many bits speak against another text beginning like this one by chance.

    Measured on real text and code in six granularities, of which see the tests. It stops at 40.
    """
    bits, before = 0.0, ""
    for character in text_of(given[:WEIGHED_BYTES]):
        bits += _REPEATED_BITS if character == before else _weight(character)
        before = character
        if bits >= _ENOUGH_BITS:
            break
    return bits


def common_prefix(one: bytes, other: bytearray, start: int) -> int:
    """Return how many bytes `one` has in common with `other` from `start` on, whole code units."""
    length = min(len(one), len(other) - start)
    at = 0
    while at < length and other.startswith(one[at : at + _BLOCK_BYTES], start + at):
        at += _BLOCK_BYTES
    while at < length and one[at] == other[start + at]:
        at += 1
    return min(at, length) // UNIT_BYTES * UNIT_BYTES


def are_alike(one: Units, other: Units) -> bool:
    """Tell whether two texts are equal but for white space around them."""
    if abs(len(one) - len(other)) > STRIP_SLACK_BYTES:
        return False
    return text_of(one).strip() == text_of(other).strip()


def unfinished_bytes(given: Units) -> int:
    """Return how many bytes at the end stand for a character that was cut."""
    last = text_of(given[-UNIT_BYTES:])
    is_cut = last == _UNFINISHED or "\ud800" <= last <= "\udbff"
    return UNIT_BYTES if last and is_cut else 0


def _weight(character: str) -> float:
    if character.isspace():
        return _SPACE_BITS
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE_BITS
    return _WORD_BITS if character.isalnum() else _OTHER_BITS
