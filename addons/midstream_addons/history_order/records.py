"""One response of the ledger, packed: a long-lived proxy remembers hundreds of thousands of them.

    parent u32 | turn u32 | depth u32 | used_s u32 | flags u8 | id 16 bytes | outputs
    output: kind u8 | keys u8 | has text u8 | keys * 16 bytes | text 16 bytes

A parent of 0 is none. `used_s` is when a request last quoted it. Keys, id and text are digests; the
id is only there if a request may name the response by it.
"""

from collections.abc import Iterable, Iterator
from struct import Struct

import msgspec

from midstream.dialects.provider_history import DIGEST_BYTES, Kind, Output

_HEAD = Struct("<IIIIB")
_OUTPUT = Struct("<BBB")
_KINDS = tuple(Kind)
_CODES = {kind: code for code, kind in enumerate(_KINDS)}
USED_AT = 12
FLAGS_AT = 16
MAX_KEYS = 255
COMPLETE = 1
_NAMED = 2


class Head(msgspec.Struct, frozen=True):
    """What a record says of its response itself."""

    parent: int
    turn: int
    depth: int
    used_s: int
    flags: int

    @property
    def is_complete(self) -> bool:
        return bool(self.flags & COMPLETE)


def pack(head: Head, identifier: bytes, outputs: Iterable[Output]) -> bytes:
    """Return a record. `identifier` is a digest, or empty."""
    flags = head.flags | (_NAMED if identifier else 0)
    pieces = [_HEAD.pack(head.parent, head.turn, head.depth, head.used_s, flags), identifier]
    for output in outputs:
        keys = output.keys[:MAX_KEYS]
        pieces.append(_OUTPUT.pack(_CODES[output.kind], len(keys), output.text is not None))
        pieces += keys
        if output.text is not None:
            pieces.append(output.text)
    return b"".join(pieces)


def head_of(record: bytes) -> Head:
    return Head(*_HEAD.unpack_from(record))


def id_of(record: bytes) -> bytes:
    return record[_HEAD.size : _start(record)]


def used_at(record: bytes, used_s: int) -> bytes:
    """Return the record with the time of its use."""
    return record[:USED_AT] + used_s.to_bytes(4, "little") + record[FLAGS_AT:]


def completed(record: bytes) -> bytes:
    flags = bytes([record[FLAGS_AT] | COMPLETE])
    return record[:FLAGS_AT] + flags + record[_HEAD.size :]


def _start(record: bytes) -> int:
    return _HEAD.size + (DIGEST_BYTES if record[FLAGS_AT] & _NAMED else 0)


def parent_of(record: bytes) -> int:
    return int.from_bytes(record[:4], "little")


def turn_of(record: bytes) -> int:
    return int.from_bytes(record[4:8], "little")


def is_complete(record: bytes) -> bool:
    return bool(record[FLAGS_AT] & COMPLETE)


def depth_of(record: bytes) -> int:
    return int.from_bytes(record[8:12], "little")


def outputs_of(record: bytes) -> Iterator[Output]:
    return (Output(kind, keys, text) for kind, keys, text in said_in(record))


def said_in(record: bytes) -> list[tuple[Kind, tuple[bytes, ...], bytes | None]]:
    """Return kind, keys and text of the outputs."""
    found = []
    at, end = _start(record), len(record)
    while at < end:
        kind, count, has_text = _KINDS[record[at]], record[at + 1], record[at + 2]
        at += _OUTPUT.size
        stop = at + count * DIGEST_BYTES
        keys: tuple[bytes, ...] = ()
        if count == 1:
            keys = (record[at:stop],)
        elif count:
            keys = tuple([record[i : i + DIGEST_BYTES] for i in range(at, stop, DIGEST_BYTES)])
        at = stop + has_text * DIGEST_BYTES
        found.append((kind, keys, record[stop:at] if has_text else None))
    return found


def child_digest(parent: int) -> bytes:
    """Return what the children of a response are found by: spread, but no secret."""
    return (parent * 0x9E3779B1 & 0xFFFFFFFF).to_bytes(4, "little")


def root_digest(text: bytes) -> bytes:
    return text[::-1]


def found_by(record: bytes) -> Iterator[bytes]:
    """Return what a response is found by."""
    last = None
    for output in outputs_of(record):
        yield from output.keys
        last = output.text
    if identifier := id_of(record):
        yield identifier
    if parent := parent_of(record):
        yield child_digest(parent)
    elif last:
        yield root_digest(last)
