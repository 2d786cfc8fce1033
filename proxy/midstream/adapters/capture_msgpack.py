"""Replaces strings of a msgpack document, and keeps every other byte.

Containers say how many items they have, not how many bytes, so that a string of another length
changes nothing but its own header.

Source: the msgpack specification (github.com/msgpack/msgpack, spec.md).
"""

import struct
from collections.abc import Callable
from typing import Final

import msgspec

_ANY: Final = msgspec.msgpack.Decoder(msgspec.Raw)
_LENGTHS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED: Final = {
    0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
    0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17,
}  # fmt: skip
_CONTAINERS: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
_FIX_STRING: Final = range(0xA0, 0xC0)

type Change = Callable[[bytes, str], bytes]
"""Given the bytes of a string and the key it stands under (empty: none), return it changed."""


def is_container(document: bytes) -> bool:
    """Tell whether a document is one msgpack map or array; no JSON text begins like one."""
    if not document or not (0x80 <= document[0] <= 0x9F or 0xDC <= document[0] <= 0xDF):
        return False
    try:
        _ANY.decode(document)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def with_strings(document: bytes, change: Change) -> bytes:
    """Return a document, for which `is_container` holds, with its strings and byte strings changed.

    Keys of maps stay. An element of an array stands under the key that the array stands under.
    """
    pieces: list[bytes] = []
    done = at = 0
    open_: list[_Open] = []
    while at < len(document):
        around = open_[-1] if open_ else _TOP
        is_key = around.width == 2 and around.left % 2 == 0
        first = document[at]
        start, end = _string(document, at, first)
        if start:
            content = document[start:end]
            if is_key:
                around.key = content.decode("utf-8", "replace")
            elif (changed := change(content, around.key)) != content:
                pieces += (document[done:at], _header(first, len(changed)), changed)
                done = end
            at = end
        else:
            count, width, at = _skip(document, at, first)
            if width:
                open_.append(_Open(count * width, width, "" if is_key else around.key))
                _close(open_)
                continue
            if is_key:
                around.key = ""
        around.left -= 1
        _close(open_)
    pieces.append(document[done:])
    return b"".join(pieces)


class _Open(msgspec.Struct):
    """A container whose items are still to come: how many, and the key of the next value."""

    left: int
    width: int
    key: str = ""


_TOP: Final = _Open(1, 1)


def _close(open_: list[_Open]) -> None:
    while open_ and not open_[-1].left:
        open_.pop()
        if open_:
            open_[-1].left -= 1


def _string(document: bytes, at: int, first: int) -> tuple[int, int]:
    """Return where the content of a string or byte string stands; (0, 0) where this is none."""
    if first in _FIX_STRING:
        return at + 1, at + 1 + first - 0xA0
    width = _LENGTHS.get(first)
    if width is None:
        return 0, 0
    start = at + 1 + width
    return start, start + int.from_bytes(document[at + 1 : start])


def _skip(document: bytes, at: int, first: int) -> tuple[int, int, int]:
    """Return how many items of which width a container has, and where what follows starts."""
    if 0x80 <= first <= 0x9F:
        return first & 0x0F, 2 if first < 0x90 else 1, at + 1
    if first in _CONTAINERS:
        size, width = _CONTAINERS[first]
        return int.from_bytes(document[at + 1 : at + 1 + size]), width, at + 1 + size
    if first in _EXTENSIONS:
        size = _EXTENSIONS[first]
        return 0, 0, at + 2 + size + int.from_bytes(document[at + 1 : at + 1 + size])
    return 0, 0, at + 1 + _FIXED.get(first, 0)


def _header(first: int, size: int) -> bytes:
    """Return the header of a string, or of a byte string, for a length."""
    is_binary = 0xC4 <= first <= 0xC6
    if size < 32 and not is_binary:
        return bytes([0xA0 + size])
    if size <= 0xFF:
        return struct.pack(">BB", 0xC4 if is_binary else 0xD9, size)
    if size <= 0xFFFF:
        return struct.pack(">BH", 0xC5 if is_binary else 0xDA, size)
    return struct.pack(">BI", 0xC6 if is_binary else 0xDB, size)
