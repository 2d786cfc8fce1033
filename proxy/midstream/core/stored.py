"""A conversation as a store keeps it: the states of its addons by name, in one msgpack map.

A state is a `msgspec.Struct`. One that a store has and this version cannot read, or that belongs to
an addon which is not there, is left out: the addon starts anew, as it does without a store.
"""

from collections.abc import Mapping

import msgspec

from midstream.core.errors import StoreError

FORMAT = 1


class _Stored(msgspec.Struct, array_like=True):
    format: int
    states: dict[str, msgspec.Raw]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Stored)


def packed(states: Mapping[str, object]) -> bytes:
    """Return states as bytes. Raises StoreError for a state that cannot be written."""
    try:
        raws = {
            name: msgspec.Raw(_encoder.encode(state))
            for name, state in states.items()
            if state is not None
        }
        return _encoder.encode(_Stored(FORMAT, raws))
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"a conversation cannot be written: {type(error).__name__}") from error


def unpacked(value: bytes, types: Mapping[str, type]) -> dict[str, object]:
    """Return the states that can be read, by name; `types` says as what. Raises StoreError."""
    try:
        stored = _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError("a stored conversation is none") from error
    if stored.format != FORMAT:
        return {}
    states: dict[str, object] = {}
    for name, raw in stored.states.items():
        if name in types:
            try:
                states[name] = msgspec.msgpack.decode(raw, type=types[name])
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
    return states
