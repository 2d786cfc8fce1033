"""Messages that the server makes up when its history is read: the summary of a compacted range.

Such a message has the id `compaction_RECORD`, is an assistant's, and has one text part; it has no
row of its own, and its `createdAt` is the time of the read. A user or an app may make a message of
the same form: who made it first decides, and that is not told here.

Source: cloudflare/agents#1984; `applyCompactions` in agents 0.19.0
(dist/experimental/memory/session/index.js).
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from midstream.core import raw

PREFIX: Final = "compaction_"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:-]*")

type ReadOutline = Callable[[bytes], Outline | None]


class Outline(msgspec.Struct):
    """What tells a message that stands for a compacted range: `is_text` if text is its one part.

    `created` is its `createdAt`, raw, empty if there is none.
    """

    id: str
    role: str
    is_text: bool
    created: bytes

    def is_synthetic(self, prefixes: Collection[str]) -> bool:
        """Tell whether it has the form of such a message; a user or an app may have made it too."""
        return (
            self.role == "assistant"
            and self.is_text
            and any(self.id.startswith(p) and len(self.id) > len(p) for p in prefixes)
        )


class _Part(msgspec.Struct):
    type: str = ""


class _Outlined(msgspec.Struct):
    id: str = ""
    role: str = ""
    parts: list[_Part] = []
    createdAt: msgspec.Raw = msgspec.Raw()


_OUTLINE: Final = msgspec.json.Decoder(_Outlined)
_PACKED_OUTLINE: Final = msgspec.msgpack.Decoder(_Outlined)


def read_outline(message: bytes) -> Outline | None:
    """Read a message as far as its outline needs, or return None if it has no such form."""
    try:
        return _outline(_OUTLINE.decode(message))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        fields = raw.members(message)
        types = [raw.text_of(raw.members(p).get("type")) for p in raw.elements(fields["parts"])]
    except (raw.Malformed, KeyError):
        return None
    identifier, role = raw.text_of(fields.get("id")), raw.text_of(fields.get("role"))
    if identifier is None or role is None:
        return None
    return Outline(identifier, role, types == ["text"], fields.get("createdAt", b""))


def read_packed_outline(message: bytes) -> Outline | None:
    """Read the outline of a message that is a msgpack map."""
    try:
        return _outline(_PACKED_OUTLINE.decode(message))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _outline(message: _Outlined) -> Outline:
    types = [part.type for part in message.parts]
    return Outline(message.id, message.role, types == ["text"], bytes(message.createdAt))


def needles(prefixes: Collection[str]) -> tuple[bytes, ...]:
    """Return what the bytes of a frame must hold if a message with such an id is in it.

    Other characters than these may be escaped in JSON, each writer in its own way.
    """
    return tuple(_PLAIN.match(prefix)[0].encode() for prefix in prefixes)  # type: ignore[index]  # matches always


def first_kept(
    messages: Sequence[bytes],
    prefixes: Collection[str],
    read_outline: ReadOutline = read_outline,
) -> list[int]:
    """Return which messages repeat a synthetic one that stands earlier in the same list.

    A server that has stored its own synthetic message sends it twice: where the range was, and
    where the stored copy stands. No other message counts as a repeat, whatever its id.
    """
    wanted = needles(prefixes)
    seen: set[str] = set()
    repeats = []
    for index, message in enumerate(messages):
        if not any(needle in message for needle in wanted):
            continue
        outline = read_outline(message)
        if outline is None or not outline.is_synthetic(prefixes):
            continue
        if outline.id in seen:
            repeats.append(index)
        seen.add(outline.id)
    return repeats


def without_repeats(messages: Sequence[bytes]) -> list[bytes]:
    """Return the messages of a list without the repeats of a synthetic one."""
    repeats = set(first_kept(messages, (PREFIX,)))
    return [message for index, message in enumerate(messages) if index not in repeats]
