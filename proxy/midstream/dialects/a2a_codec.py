"""JSON text and msgpack behind one set of calls: A2A objects come as either.

`members` and `elements` read one level and leave the values as the bytes they came as, so that what
msgspec refuses in one value (a lone surrogate, 1e400) does not hide the others.
"""

from typing import Any, Final, Protocol

import msgspec

from midstream.core import edit, edit_msgpack, raw
from midstream.core.edit import Edit, Path
from midstream.core.errors import EditError
from midstream.core.raw import Malformed

REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Codec(Protocol):
    """One encoding of objects, lists and scalars."""

    @property
    def null(self) -> bytes: ...

    def decoder[T](self, wanted: type[T], /) -> "Decoder[T]":
        """Return what decodes a document to a type; it raises one of REFUSED."""

    def members(self, document: bytes, /) -> dict[str, bytes]:
        """Return the members of an object, the last of each name. Raises Malformed."""

    def elements(self, document: bytes, /) -> list[bytes]:
        """Return the elements of a list. Raises Malformed."""

    def scalar(self, value: bytes, /) -> object:
        """Return a text, a whole number, a truth value or None; anything else as it stands."""

    def get(self, document: bytes, path: Path, /) -> bytes | None:
        """Return the value at a path, None where it leads nowhere. Raises EditError."""

    def apply(self, document: bytes, /, *edits: Edit) -> bytes:
        """Return the document with the edits made. Raises EditError."""

    def text(self, text: str, /) -> bytes:
        """Return a text as a value. Raises EditError where it cannot be told."""

    def object(self, fields: dict[str, bytes], /) -> bytes:
        """Return an object of these values."""

    def array(self, values: list[bytes], /) -> bytes:
        """Return a list of these values."""

    def flag(self, flag: bool, /) -> bytes:
        """Return a truth value."""


class Decoder[T](Protocol):
    """A typed decoder."""

    def decode(self, document: bytes | msgspec.Raw, /) -> T: ...


class _Json:
    null: Final = b"null"
    _LITERALS: Final = {b"true": True, b"false": False, b"null": None}
    members = staticmethod(raw.members)
    elements = staticmethod(raw.elements)
    get = staticmethod(edit.get)
    apply = staticmethod(edit.apply)
    object = staticmethod(raw.document)
    array = staticmethod(raw.array)

    def decoder[T](self, wanted: type[T]) -> Decoder[T]:
        return msgspec.json.Decoder(wanted)

    def scalar(self, value: bytes) -> Any:
        value = value.strip()
        if value in self._LITERALS:
            return self._LITERALS[value]
        if value[:1] == b'"':
            text = raw.text_of(value)
            return value if text is None else text
        try:
            return int(value)
        except ValueError:
            return value

    def text(self, text: str) -> bytes:
        try:
            return msgspec.json.encode(text)
        except UnicodeEncodeError:  # a lone surrogate: only an escape can tell it
            return raw.quote(text)

    def flag(self, flag: bool) -> bytes:
        return b"true" if flag else b"false"


class _Packed:
    null: Final = b"\xc0"
    _members = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
    _elements = msgspec.msgpack.Decoder(list[msgspec.Raw])
    _scalar = msgspec.msgpack.Decoder(str | int | bool | None)
    apply = staticmethod(edit_msgpack.apply)

    def decoder[T](self, wanted: type[T]) -> Decoder[T]:
        return msgspec.msgpack.Decoder(wanted)

    def members(self, document: bytes) -> dict[str, bytes]:
        try:
            return {key: bytes(value) for key, value in self._members.decode(document).items()}
        except REFUSED as error:
            raise Malformed(f"no msgpack map in {len(document)} bytes: {error}") from None

    def elements(self, document: bytes) -> list[bytes]:
        try:
            return [bytes(value) for value in self._elements.decode(document)]
        except REFUSED as error:
            raise Malformed(f"no msgpack array in {len(document)} bytes: {error}") from None

    def scalar(self, value: bytes) -> Any:
        try:
            return self._scalar.decode(value)
        except REFUSED:
            return value

    def get(self, document: bytes, path: Path) -> bytes | None:
        try:
            for step in path:
                if isinstance(step, str):
                    document = self.members(document)[step]
                elif isinstance(step, int):
                    document = self.elements(document)[step]
                else:
                    return None
        except (Malformed, LookupError):
            return None
        return document

    def text(self, text: str) -> bytes:
        try:
            return msgspec.msgpack.encode(text)
        except UnicodeEncodeError:
            raise EditError("msgpack cannot hold a lone surrogate") from None

    def object(self, fields: dict[str, bytes]) -> bytes:
        return msgspec.msgpack.encode({key: msgspec.Raw(value) for key, value in fields.items()})

    def array(self, values: list[bytes]) -> bytes:
        return msgspec.msgpack.encode([msgspec.Raw(value) for value in values])

    def flag(self, flag: bool) -> bytes:
        return msgspec.msgpack.encode(flag)


JSON: Final[Codec] = _Json()
PACKED: Final[Codec] = _Packed()


def codec_of(payload: bytes) -> Codec:
    """Return how a payload is encoded, by its first byte."""
    return PACKED if edit_msgpack.is_map(payload) else JSON
