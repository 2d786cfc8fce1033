"""JSON text inside a JSON string: read it without its escapes, and find every place again.

- Offsets of the inner text map to those of the string by counting the escapes in front of them, so
  that an edit inside leaves the spelling of everything else in the string alone.
- While escapes are undone, control characters, which no JSON string holds, stand for what must
  still be told apart. The escapes are undone kind by kind with `bytes.replace`; the kinds that make
  up nearly all of real traffic first, single ones of all others by a callback.
- `\\uXXXX` above ASCII stays as it is: it can only stand in a string of the inner text, where it
  means the same. So neither lone surrogates nor bytes that are no UTF-8 are a problem.

Source: RFC 8259 7; ECMA-262 25.5.2.3 (QuoteJSONString).
"""

import re
from bisect import bisect_left

_BACKSLASH, _SLASH, _REFUSED = b"\x00", b"\x01", b"\x02"
_LONG_QUOTE, _LONG_BACKSLASH = b"\x03", b"\x04"
_MARKS = {
    rb"\/": _SLASH,
    rb"\n": b"\n",
    rb"\r": b"\r",
    rb"\t": b"\t",
    rb"\b": _REFUSED,  # outside a string as inside one: no JSON
    rb"\f": _REFUSED,
    rb"\u005c": _LONG_BACKSLASH,
    rb"\u005C": _LONG_BACKSLASH,
}
_ONE_SHORTER = b'"\n\r\t' + _BACKSLASH + _SLASH + _REFUSED + _LONG_QUOTE + _LONG_BACKSLASH
_UNMARK = bytes.maketrans(_BACKSLASH + _SLASH + _LONG_QUOTE + _LONG_BACKSLASH, b'\\/"\\')
_ASCII_ESCAPE = re.compile(rb"\\(?:[^u]|u00[0-7][0-9a-fA-F])")

_CONTROL = re.compile(rb"[\x00-\x1f]")
_SPELLED = {bytes([code]): b"\\u%04x" % code for code in range(32)} | {
    b"\b": rb"\b",
    b"\t": rb"\t",
    b"\n": rb"\n",
    b"\f": rb"\f",
    b"\r": rb"\r",
}


class Unescaped:
    """The content of a well-formed JSON string, with its escapes undone: `text`."""

    def __init__(self, content: bytes) -> None:
        self._counted = (0, 0)
        self._long = False
        marked = content.replace(rb"\\", _BACKSLASH).replace(rb"\"", b'"')
        if b"\\" in marked:
            self._long = True
            self._singles: list[int] = []
            self._extra = [0]
            marked = self._undo_rarer(marked)
        self._marked = marked
        self.text = marked.translate(_UNMARK)

    def outside(self, offset: int) -> int:
        """Return where in the string the character at an offset of the text begins.

        Linear in the distance to the offset asked for before.
        """
        last, longer = self._counted
        between = self._marked[last:offset] if last <= offset else self._marked[offset:last]
        more = len(between) - len(between.translate(None, _ONE_SHORTER))
        if self._long:
            more += 4 * (between.count(_LONG_QUOTE) + between.count(_LONG_BACKSLASH))
        longer += more if last <= offset else -more
        self._counted = offset, longer
        if self._long:
            longer += self._extra[bisect_left(self._singles, offset)]
        return offset + longer

    def _undo_rarer(self, marked: bytes) -> bytes:
        marked = marked.replace(rb"\u0022", _LONG_QUOTE)  # as .NET spells every one of them
        kinds = set(_ASCII_ESCAPE.findall(marked))
        for kind in kinds & _MARKS.keys():
            marked = marked.replace(kind, _MARKS[kind])
        return _ASCII_ESCAPE.sub(self._undo_single, marked) if kinds - _MARKS.keys() else marked

    def _undo_single(self, escape: re.Match[bytes]) -> bytes:
        char = bytes([int(escape[0][2:], 16)])
        if char < b" " and char not in b"\t\n\r":
            char = _REFUSED
        self._singles.append(escape.start() - 5 * len(self._singles))
        self._extra.append(self._extra[-1] + (4 if char in _ONE_SHORTER else 5))
        return char


def escaped(text: bytes) -> bytes:
    """Escape a text as the content of a JSON string, the way JSON.stringify does."""
    text = text.replace(b"\\", rb"\\").replace(b'"', rb"\"")
    return _CONTROL.sub(_spelled, text)


def _spelled(control: re.Match[bytes]) -> bytes:
    return _SPELLED[control[0]]
