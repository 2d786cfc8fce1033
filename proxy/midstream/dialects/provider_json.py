"""Reads JSON of providers leniently: one odd value makes one item unknown, not the whole body.

msgspec does the work. It refuses lone surrogates, which a text cut by a client may hold; only then
the slower reader of the standard library is asked.
"""

import json
from collections.abc import Sequence

import msgspec

from midstream.core import raw


class Shape[T]:
    """A type to read JSON as; `read` returns None for what has another shape."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def read(self, document: bytes | msgspec.Raw) -> T | None:
        try:
            return self._decoder.decode(document)
        except msgspec.ValidationError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._read_leniently(bytes(document))

    def _read_leniently(self, document: bytes) -> T | None:
        if b"\\u" not in document:
            return None
        try:
            found = json.loads(document.decode("utf-8", "surrogatepass"), strict=True)
            return msgspec.convert(found, self._kind)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors, too
            return None


_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])


def read_elements(array: bytes | msgspec.Raw) -> Sequence[bytes | msgspec.Raw] | None:
    """Return the elements of an array as raw JSON, or None if it is none."""
    try:
        return _ELEMENTS.decode(array)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return raw.elements(bytes(array))
    except raw.Malformed:
        return None


class Part(msgspec.Struct):
    """A part of a content that may hold text."""

    text: str | None = None


type Content = str | list[Part] | None


def text_of(content: Content) -> str:
    """Return the texts of a content, joined."""
    if isinstance(content, str):
        return content
    return "".join([part.text or "" for part in content or ()])


class Messages[T]:
    """Reads the list of messages under a key of a request body, each as a type."""

    def __init__(self, key: str, kind: type[T]) -> None:
        self._key = key
        self._shape = Shape(kind)
        self._whole = msgspec.json.Decoder(msgspec.defstruct("Body", [(key, list[kind])]))  # type: ignore[valid-type]  # made at run time
        self._raw = msgspec.json.Decoder(msgspec.defstruct("Body", [(key, list[msgspec.Raw])]))

    def read(self, body: bytes) -> Sequence[T | None] | None:
        """Return the messages, None for one of another shape; None if there is no such list."""
        try:
            found: list[T | None] = getattr(self._whole.decode(body), self._key)
            return found
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # one odd message shall not make all of them unknown
        elements = self.elements(body)
        return None if elements is None else [self._shape.read(element) for element in elements]

    def elements(self, body: bytes) -> Sequence[bytes | msgspec.Raw] | None:
        """Return the messages as raw JSON; None if there is no such list."""
        try:
            found: list[msgspec.Raw] = getattr(self._raw.decode(body), self._key)
            return found
        except msgspec.ValidationError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            return read_elements(raw.members(body).get(self._key, b"null"))
        except raw.Malformed:
            return None
