"""JSON for the models: fast, but for the lone surrogates that msgspec refuses."""

import json
from typing import Any

import msgspec

_DECODER = msgspec.json.Decoder()


def dumps(value: Any) -> bytes:
    """Return JSON text as JavaScript writes it."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def loads(text: bytes | str) -> Any:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(text)


def clone(value: Any) -> Any:
    """Return a copy that shares nothing."""
    return loads(dumps(value))
