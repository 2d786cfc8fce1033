"""Reads one level of a JSON document and leaves the values as the bytes they came as.

Decoding and encoding a value changes what nobody meant to touch: `1e400`, a 23-digit integer, an
escape, a lone surrogate (a streamed answer may cut an emoji in two). So readers take the members or
elements they need and hand the rest on raw. msgspec does the work; it refuses lone surrogates, and
only then the slower scanner of the standard library is asked.

Text is kept escaped, as it stands between its quotes: joining two escaped texts gives the escaped
text of their concatenation, so text can be collected without decoding it at all.
"""

import json
from json.decoder import JSONDecoder, scanstring  # type: ignore[attr-defined]  # typeshed lacks it

import msgspec

from midstream.core.errors import WireError

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_LENIENT = JSONDecoder(strict=False)
_SCAN = _LENIENT.raw_decode
_QUOTE = json.JSONEncoder().encode
_SPACE = " \t\n\r"


class Malformed(WireError):
    """A document that is no JSON object, or no JSON array, where one was due."""


def members(document: bytes) -> dict[str, bytes]:
    """Return the members of a JSON object, each value as its bytes. Raises Malformed."""
    try:
        return {key: bytes(value) for key, value in _MEMBERS.decode(document).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return dict(_scan(document, "{", "}"))


def elements(document: bytes) -> list[bytes]:
    """Return the elements of a JSON array, each as its bytes. Raises Malformed."""
    try:
        return [bytes(value) for value in _ELEMENTS.decode(document)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [value for _, value in _scan(document, "[", "]")]


def text_of(value: bytes | None) -> str | None:
    """Return the text of a JSON string, or None if the value is something else."""
    if not value or value[:1] != b'"':
        return None
    try:
        return _TEXT.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        decoded = _LENIENT.decode(value.decode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return decoded if isinstance(decoded, str) else None


def quote(text: str) -> bytes:
    """Return a text as a JSON string in ASCII, as `JSON.stringify` escapes it but for that."""
    return _QUOTE(text).encode()


def document(fields: dict[str, bytes]) -> bytes:
    """Return the JSON object with these members."""
    return b"{" + b",".join([_key(key) + b":" + value for key, value in fields.items()]) + b"}"


def _key(key: str) -> bytes:
    return f'"{key}"'.encode() if key.isascii() and key.isidentifier() else quote(key)


def array(values: list[bytes]) -> bytes:
    """Return the JSON array with these elements."""
    return b"[" + b",".join(values) + b"]"


def _scan(document: bytes, opening: str, closing: str) -> list[tuple[str, bytes]]:
    try:
        return _scan_text(document.decode("utf-8", "surrogateescape"), opening, closing)
    except (ValueError, IndexError, RecursionError) as error:
        what = "object" if opening == "{" else "array"
        raise Malformed(f"no JSON {what} in {len(document)} bytes: {error}") from None


def _scan_text(text: str, opening: str, closing: str) -> list[tuple[str, bytes]]:
    at = _skip_space(text, 0)
    if text[at] != opening:
        raise ValueError(f"starts with {text[at]!r}, expected {opening!r}")
    found: list[tuple[str, bytes]] = []
    at = _skip_space(text, at + 1)
    while text[at] != closing or found:
        key = ""
        if opening == "{":
            if text[at] != '"':
                raise ValueError(f"a key starts with {text[at]!r}")
            key, at = scanstring(text, at + 1, False)
            key = key if key.isascii() else _whole(key)
            at = _skip_space(text, at)
            if text[at] != ":":
                raise ValueError(f"a key is followed by {text[at]!r}")
            at = _skip_space(text, at + 1)
        _, end = _SCAN(text, at)
        found.append((key, text[at:end].encode("utf-8", "surrogateescape")))
        at = _skip_space(text, end)
        if text[at] == closing:
            break
        if text[at] != ",":
            raise ValueError(f"a value is followed by {text[at]!r}")
        at = _skip_space(text, at + 1)
    if text[at + 1 :].strip(_SPACE):
        raise ValueError("text follows the document")
    return found


def _whole(key: str) -> str:
    """Return a key with the surrogates that stood in it as bytes, not as escapes."""
    try:
        return key.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass")
    except UnicodeError:
        return key


def _skip_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
