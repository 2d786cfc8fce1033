"""Where the values of a JSON text begin and end, at the speed of msgspec.

- A text is never decoded: msgspec checks it and gives the raw bytes of each value of a container,
  and the offsets follow from their lengths. In a text without white space they only have to be
  added up; the sum proves that there is none (white space, a repeated key or an escape in a key
  would make the text longer). Otherwise the separators are walked.
- msgspec refuses lone surrogates, and invalid UTF-8 in keys. Then it reads a copy of equal length
  without them.
- What JSON.parse refuses is an error, and so is what is nested deeper than the recursion limit.

Source: RFC 8259; ECMA-262 25.5.1 (JSON.parse).
"""

import json
import re
from collections.abc import Callable, Container, Iterable
from itertools import accumulate
from operator import call
from typing import ClassVar

import msgspec
from msgspec import Raw

from midstream.core.errors import EditError
from midstream.core.json_string import Unescaped, escaped

BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\n\r"
OBJECT, ARRAY, STRING = b'{["'

_ELEMENT = re.compile(rb"[ \t\n\r,]*+()")
_MEMBER = re.compile(rb'[ \t\n\r,]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r:]*+')
_SURROGATE = re.compile(rb"\\u[dD](?=[89a-fA-F])")
_ONLY_ASCII = bytes([*range(128), *b"x" * 128])


class _Occurrence:
    """A key, equal only to itself: so a dict keeps every member of an object."""

    def __init__(self, key: str) -> None:
        pass


_decode_any = msgspec.json.Decoder(Raw).decode
_decode_array = msgspec.json.Decoder(list[Raw]).decode
_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_members = msgspec.json.Decoder(dict[_Occurrence, Raw], dec_hook=call).decode


def check(text: bytes) -> None:
    """Check that a text is one JSON value.

    Raises:
        EditError: it is not, or it is nested too deeply to tell.
    """
    _decoded(_decode_any, text)


class Text:
    """One JSON text: the document, or what a string of another text holds."""

    _mark: ClassVar = BOM  # which only a document may begin with

    def __init__(self, content: bytes) -> None:
        self.content = content

    def root(self, *, entered: bool = False) -> "Value":
        """Return the outermost value; `entered`: the caller goes on to its items, which checks it.

        Raises:
            EditError: this is no JSON text.
        """
        body = self.content.removeprefix(self._mark).lstrip(_SPACE)
        start = len(self.content) - len(body)
        body = body.rstrip(_SPACE)
        if not (entered and body.startswith((b"{", b"["))):
            check(body)
        return Value(self, start, start + len(body), body)

    def place(self, start: int, end: int, text: bytes) -> tuple[int, int, bytes]:
        """Translate a span and its new text to offsets and spelling of the document."""
        return start, end, text


class _Inner(Text):
    _mark = b""

    def __init__(self, string: Unescaped, around: Text, at: int) -> None:
        """Read the content of a string, which begins at an offset of the text around."""
        self.content = string.text
        self._string = string
        self._around = around
        self._at = at

    def place(self, start: int, end: int, text: bytes) -> tuple[int, int, bytes]:
        outside = self._string.outside
        return self._around.place(self._at + outside(start), self._at + outside(end), escaped(text))


class Item(msgspec.Struct, frozen=True, eq=False):
    """An element or member: `step` is its index or key, `start` where that element or key begins.

    `before` is the end of the item before it, `after` the start of the next; at the edges of the
    container they are its brackets.
    """

    step: str | int
    index: int
    start: int
    before: int
    after: int
    value: "Value"


class Items(msgspec.Struct, frozen=True, eq=False):
    """What was found in a container: the items asked for, how many it has, and where they end."""

    wanted: list[Item]
    count: int
    end: int


class Value(msgspec.Struct, frozen=True, eq=False):
    """One value of a text. `raw` has its bytes."""

    text: Text
    start: int
    end: int
    raw: bytes | Raw

    @property
    def opening(self) -> int:
        """Return its first byte: one of OBJECT, ARRAY, STRING, or that of another scalar."""
        return self.text.content[self.start]

    def inner(self) -> Text:
        """Return the text that this string holds."""
        at = self.start + 1
        return _Inner(Unescaped(self.text.content[at : self.end - 1]), self.text, at)

    def members(self, keys: Container[object]) -> Items:
        """Find the members of this object with one of these keys, each time they occur.

        Raises:
            EditError: this is malformed.
        """
        try:
            members = _decode_object(self.raw)
        except (msgspec.DecodeError, RecursionError):
            return self._walked(list(_decoded(_decode_members, self.raw).values()), keys)
        wanted = []
        at = self.start
        for index, (key, raw) in enumerate(members.items()):
            end = at + len(key) + len(raw) + 4  # {"key":raw  or  ,"key":raw
            if key in keys:
                value = Value(self.text, end - len(raw), end, raw)
                wanted.append(Item(key, index, at + 1, at, end + 1, value))
            at = end
        if at == self.end - 1 and members:
            return Items(wanted, len(members), at)
        return self._walked(list(_decoded(_decode_members, self.raw).values()), keys)

    def elements(self, indices: Iterable[int] | None = None) -> Items:
        """Find the elements of this array with these indices (negative: from the end), or all.

        Raises:
            EditError: this is malformed.
        """
        try:
            raws, readable = _decode_array(self.raw), True
        except (msgspec.DecodeError, RecursionError):
            raws, readable = _decoded(_decode_array, self.raw), False
        count = len(raws)
        places = range(count) if indices is None else sorted({i + count * (i < 0) for i in indices})
        ends = list(accumulate(map(len, raws), initial=self.start))
        if not readable or not raws or ends[-1] + count != self.end - 1:
            return self._walked(raws, set(places))
        wanted = []
        for index in places:
            if 0 <= index < count:
                start, end = ends[index] + index + 1, ends[index + 1] + index + 1
                value = Value(self.text, start, end, raws[index])
                wanted.append(Item(index, index, start, start - 1, end + 1, value))
        return Items(wanted, count, self.end - 1)

    def _walked(self, raws: list[Raw], steps: Container[object]) -> Items:
        """Find items by what stands between them, which is sure to be well formed.

        Only the lengths of `raws` are used: they may come from the copy that msgspec could read.
        """
        content = self.text.content
        pattern = _MEMBER if self.opening == OBJECT else _ELEMENT
        found: list[tuple[str | int, int, int, int]] = []
        end = self.start + 1
        for index, raw in enumerate(raws):
            separator = _past(pattern, content, end)
            key = separator[1]
            at = separator.end()
            end = at + len(raw)
            found.append((_read_key(key) if key else index, separator.start(1), at, end))
        wanted = []
        for index, (step, start, at, end) in enumerate(found):
            if step in steps:
                before = found[index - 1][3] if index else self.start + 1
                after = found[index + 1][1] if index + 1 < len(found) else self.end
                value = Value(self.text, at, end, content[at:end])
                wanted.append(Item(step, index, start, before, after, value))
        return Items(wanted, len(raws), end)


def _decoded[T](decode: Callable[[bytes | Raw], T], raw: bytes | Raw) -> T:
    try:
        try:
            return decode(raw)
        except msgspec.DecodeError:
            return decode(_SURROGATE.sub(rb"\\u0", bytes(raw)).translate(_ONLY_ASCII))
    except msgspec.DecodeError as error:
        raise EditError(f"no JSON text: {error}") from None
    except RecursionError:
        raise EditError("JSON is nested too deeply") from None


def _past(pattern: re.Pattern[bytes], content: bytes, at: int) -> re.Match[bytes]:
    found = pattern.match(content, at)
    if found is None:
        raise EditError(f"JSON is malformed at byte {at}")
    return found


def _read_key(token: bytes) -> str:
    text = token.decode("utf-8", "replace")
    return str(json.loads(text)) if "\\" in text else text[1:-1]
