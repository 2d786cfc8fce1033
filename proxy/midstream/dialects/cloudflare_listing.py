"""A list of chat messages wherever a frame carries one, read and rewritten alike.

The same shapes come as JSON text and as msgpack maps (binary WebSocket messages, request bodies):

    where                              path to the list
    a turn of the client               init, body, (inside the text) messages
    a list, of the client or server    messages
    a bare map, as in a request body   messages
    the answer of get-messages         (the document itself)

In a msgpack turn `init.body` may be JSON text or a map. A rewritten frame keeps every byte that
does not belong to a message taken out or put in, and carries its own reading, so that the next
reader need not decode it again.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from midstream.core import edit, edit_msgpack, raw
from midstream.core.edit import INNER
from midstream.core.frames import Frame, Kind
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_compaction import (
    Outline,
    ReadOutline,
    read_outline,
    read_packed_outline,
)


class Listing(msgspec.Struct):
    """The messages of a frame as they stand there: raw JSON, or raw msgpack if `is_packed`.

    `is_turn` tells an upload that starts a turn from a list that only states what there is.
    """

    messages: list[bytes]
    path: edit.Path
    is_turn: bool = False
    trigger: str = ""
    is_packed: bool = False

    @property
    def read_outline(self) -> ReadOutline:
        return read_packed_outline if self.is_packed else read_outline

    def outlines(self, needles: Collection[bytes]) -> dict[int, Outline]:
        """Read the outlines of the messages that hold one of these, by their place in the list."""
        found: dict[int, Outline] = {}
        for index, message in enumerate(self.messages):
            if any(needle in message for needle in needles):
                outline = self.read_outline(message)
                if outline is not None:
                    found[index] = outline
        return found


class Unlisted(msgspec.Struct):
    """A frame of this protocol that should hold a list and cannot be read."""


_TYPES: Final = ("cf_agent_use_chat_request", "cf_agent_chat_messages")
_BARE_PATH: Final = ("messages",)
_TURN_PATH: Final = ("init", "body", "messages")
_TURN_TEXT_PATH: Final = ("init", "body", INNER, "messages")


def read_listing(frame: Frame) -> Listing | Unlisted | None:
    """Read the messages of a frame once, or return None if the frame is none that has some."""
    if frame.kind is Kind.WS_TEXT:
        return _read_text(frame)
    if isinstance(frame.reading, Listing | Unlisted):
        return frame.reading
    if edit_msgpack.is_map(frame.wire):
        listing = _read_packed(frame.wire)
    else:
        listing = _read_body(frame.wire) if frame.kind is Kind.BODY else None
    if listing is not None:
        frame.remember(listing)
    return listing


def rewrite(
    frame: Frame, listing: Listing, gone: Collection[int], put: Mapping[int, bytes]
) -> Frame:
    """Return the frame without some of its messages, and with others in their place.

    Raises EditError.
    """
    path = listing.path
    edits: list[edit.Edit] = [edit.Delete((*path, index)) for index in gone]
    edits += [edit.Set((*path, index), message) for index, message in put.items()]
    module = edit_msgpack if edit_msgpack.is_map(frame.wire) else edit
    messages = [put.get(i, m) for i, m in enumerate(listing.messages) if i not in gone]
    left = msgspec.structs.replace(listing, messages=messages)
    return frame.with_payload(module.apply(frame.wire, *edits), _reading(frame, left))


def _reading(frame: Frame, listing: Listing) -> object:
    """Return what the readers of this kind of frame would read from it."""
    if frame.kind is not Kind.WS_TEXT:
        return listing
    message = chat.read(frame)
    if isinstance(message, chat.ChatRequest):
        upload = chat.Upload(listing.messages, listing.trigger)
        return chat.ChatRequest.holding(message.id, upload)
    return chat.MessageList([msgspec.Raw(message) for message in listing.messages])


def _read_text(frame: Frame) -> Listing | Unlisted | None:
    message = chat.read(frame)
    if isinstance(message, chat.ChatRequest):
        if message.init.method != "POST":
            return None
        upload = message.upload
        if upload is None:
            return Unlisted()
        return Listing(upload.messages, _TURN_TEXT_PATH, is_turn=True, trigger=upload.trigger)
    if isinstance(message, chat.MessageList):
        return Listing([bytes(document) for document in message.messages], _BARE_PATH)
    if isinstance(message, chat.Unreadable) and message.type in _TYPES:
        return Unlisted()
    return None


def _read_body(body: bytes) -> Listing | None:
    upload = chat.read_upload_body(body)
    if upload is not None:
        return Listing(upload.messages, _BARE_PATH, is_turn=True, trigger=upload.trigger)
    try:
        return Listing(raw.elements(body), ())
    except raw.Malformed:
        return None


# --- msgpack --------------------------------------------------------------------------------------


class _PackedInit(msgspec.Struct):
    body: msgspec.Raw
    method: str = "GET"


class _PackedTurn(msgspec.Struct, tag_field="type", tag="cf_agent_use_chat_request"):
    init: _PackedInit


class _PackedList(msgspec.Struct, tag_field="type", tag="cf_agent_chat_messages"):
    messages: list[msgspec.Raw]


class _PackedBody(msgspec.Struct):
    messages: list[msgspec.Raw]
    trigger: str = ""
    type: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _PackedType(msgspec.Struct):
    type: str


_PACKED: Final = msgspec.msgpack.Decoder(_PackedTurn | _PackedList)
_PACKED_BODY: Final = msgspec.msgpack.Decoder(_PackedBody)
_PACKED_TYPE: Final = msgspec.msgpack.Decoder(_PackedType)
_REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _read_packed(wire: bytes) -> Listing | Unlisted | None:
    try:
        message = _PACKED.decode(wire)
    except _REFUSED:
        return _read_packed_bare(wire)
    if isinstance(message, _PackedList):
        return Listing([bytes(m) for m in message.messages], _BARE_PATH, is_packed=True)
    return _read_packed_turn(message)


def _read_packed_turn(turn: _PackedTurn) -> Listing | Unlisted | None:
    body = bytes(turn.init.body)
    if turn.init.method != "POST":
        return None
    if edit_msgpack.is_map(body):
        try:
            found = _PACKED_BODY.decode(body)
        except _REFUSED:
            return Unlisted()
        messages = [bytes(message) for message in found.messages]
        return Listing(messages, _TURN_PATH, is_turn=True, trigger=found.trigger, is_packed=True)
    try:
        upload = chat.read_upload_body(msgspec.msgpack.decode(body, type=str).encode())
    except _REFUSED:
        return Unlisted()
    if upload is None:
        return Unlisted()
    return Listing(upload.messages, _TURN_TEXT_PATH, is_turn=True, trigger=upload.trigger)


def _read_packed_bare(wire: bytes) -> Listing | Unlisted | None:
    """Read a map without a type that has messages; of a map of another type, nothing is known."""
    try:
        found = _PACKED_BODY.decode(wire)
    except _REFUSED:
        found = None
    if found is not None and found.type is msgspec.UNSET:
        messages = [bytes(message) for message in found.messages]
        return Listing(messages, _BARE_PATH, is_turn=True, trigger=found.trigger, is_packed=True)
    try:
        return Unlisted() if _PACKED_TYPE.decode(wire).type in _TYPES else None
    except _REFUSED:
        return None
