"""What a client has been told so far, without keeping the text: lengths and digests.

A final message repeats the answer, perhaps with other white space around it. So a digest is of the
text without white space at its ends; what stands at the end so far may turn out to be in the
middle, and waits. Texts are UTF-16 code units, as half of a surrogate pair may come alone.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

_ENCODING: Final = "utf-16-le"
_DIGEST_BYTES: Final = 16
_MAX_SPACE_CHARS: Final = 4096


class Said:
    """One text as it grows: `length` bytes without the white space around it.

    `space` is what stands at its end; over 4,096 characters it counts as text. `began` tells which
    of several texts was the first to say something.
    """

    __slots__ = ("_digest", "began", "length", "space")

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self.space = ""
        self.length = 0
        self.began = 0

    def add(self, text: str) -> None:
        """Go on with the text."""
        if not self.length:
            text = text.lstrip()
        core = text.rstrip()
        if not core:
            self.space += text
            if len(self.space) <= _MAX_SPACE_CHARS:
                return
            core, text = self.space, self.space
            self.space = ""
        self._take(self.space + core)
        self.space = text[len(core) :]

    def _take(self, text: str) -> None:
        units = _units(text)
        self._digest.update(units)
        self.length += len(units)

    def begins(self, text: bytes) -> bool:
        """Tell whether a text in code units begins with this one."""
        return len(text) >= self.length and _digest(text[: self.length]) == self._digest.digest()


def repeats(message: str, parts: Iterable[Said]) -> bool:
    """Tell whether a message says what the parts have said together, in their order."""
    text = _units(message.rstrip())
    spoken = False
    for part in parts:
        if part.length:
            text, spoken = _without_space(text), True
            if not part.begins(text):
                return False
            text = text[part.length :]
    return spoken and not text


def beyond(message: str, part: Said) -> str:
    """Return what a message says beyond the part that it begins with, else nothing."""
    text = _without_space(_units(message))
    if not part.length or not part.begins(text):
        return ""
    rest = text[part.length :].removeprefix(_units(part.space))
    if part.begins(_without_space(rest)):
        return ""  # the same once more: a message that repeats itself is no longer answer
    return rest.decode(_ENCODING, "surrogatepass")


def _without_space(text: bytes) -> bytes:
    at = 0
    while text[at : at + 2].decode(_ENCODING, "surrogatepass").isspace():
        at += 2
    return text[at:]


def _units(text: str) -> bytes:
    return text.encode(_ENCODING, "surrogatepass")


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()
