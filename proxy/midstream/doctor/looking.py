"""What the looks of `doctor` are given, and what they give back.

A look reads frames as received and collects one kind of finding. It is told of every frame, whole
and in order, and of the end of every exchange.
"""

from typing import Protocol

import msgspec

from midstream.core.exchange import RequestHead, Transport
from midstream.core.frames import Frame
from midstream.doctor.report import Finding


class Opened(msgspec.Struct, eq=False):
    """An exchange. `key` names its conversation, `page` the page that a chat client calls itself.

    `begin_ns` and `end_ns` are monotonic; `end_ns` is None while it is open. `follows` is the
    exchange of the same page that ended before this WebSocket began, 0 for none. `replays` are
    the replays after a reconnect: begin, end, chunks.
    """

    capture: int
    number: int
    head: RequestHead
    key: str
    begin_ns: int
    transport: Transport = Transport.HTTP
    page: str = ""
    context: str = ""
    dialect: str = ""
    status: int = 0
    end_ns: int | None = None
    ending: str = ""
    follows: int = 0
    replays: list[tuple[int, int, int]] = []


class Sight(msgspec.Struct, frozen=True):
    """A frame, and where it stands: the record's number and its times in nanoseconds."""

    exchange: Opened
    seq: int
    mono_ns: int
    wall_ns: int
    frame: Frame


class Look(Protocol):
    """One kind of finding."""

    def see(self, sight: Sight) -> None:
        """Take a frame."""

    def closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        """Take the end of an exchange."""

    def findings(self) -> list[Finding]:
        """Return what was found, nothing if there was nothing."""
