"""Frames: the unit every addon sees.

A frame is one complete application message: one SSE event, one reassembled WebSocket message, one
HTTP body. It is immutable, and `wire` is the exact bytes received, so that a frame nobody edits
leaves byte for byte as it came.
"""

from enum import StrEnum
from typing import Self

import msgspec

from midstream.core import sse


class Side(StrEnum):
    """Who sent a frame: one from CLIENT goes on to the server, one from SERVER to the client."""

    CLIENT = "client"
    SERVER = "server"

    @property
    def other(self) -> "Side":
        return Side.SERVER if self is Side.CLIENT else Side.CLIENT


class Kind(StrEnum):
    """How a frame is delimited on the wire."""

    SSE = "sse"
    WS_TEXT = "ws_text"
    WS_BINARY = "ws_binary"
    BODY = "body"


class Frame(msgspec.Struct, frozen=True, eq=False):
    """One application message.

    `wire` is what was received; `reading` is a place where the dialect keeps what it has read from
    this frame, so that several addons do not decode the same bytes again. It is no part of the
    frame's value. A Struct and not a dataclass because a frozen dataclass costs ten times as much
    to make (measured), and one is made for every message that passes.
    """

    sender: Side
    kind: Kind
    wire: bytes
    reading: object = None

    @property
    def payload(self) -> bytes:
        """The message itself: the joined data lines of an SSE event, else the wire bytes."""
        return sse.data_of(self.wire) if self.kind is Kind.SSE else self.wire

    def with_payload(self, payload: bytes, reading: object = None) -> "Frame":
        """Return a frame like this one that carries another payload."""
        wire = sse.with_data(self.wire, payload) if self.kind is Kind.SSE else payload
        return Frame(self.sender, self.kind, wire, reading)

    def remember(self, reading: object) -> Self:
        """Keep what a dialect read from this frame; the frame's value does not change."""
        msgspec.structs.force_setattr(self, "reading", reading)
        return self

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Frame)
            and self.sender is other.sender
            and self.kind is other.kind
            and self.wire == other.wire
        )

    def __ne__(self, other: object) -> bool:  # a Struct's own would still compare identities
        return not self == other

    def __hash__(self) -> int:
        return hash((self.sender, self.kind, self.wire))
