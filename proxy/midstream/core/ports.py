"""What the core needs from outside: a sink for capture records, and a store for conversations.

Metrics need no port: the core fills `Counts`, and an adapter reads it.
"""

from enum import StrEnum
from typing import Protocol

import msgspec

from midstream.core.frames import Frame, Side


class RecordKind(StrEnum):
    OPEN = "open"
    HEADERS = "headers"
    FRAME = "frame"
    REPAIR = "repair"
    ASK = "ask"
    CLOSE = "close"
    GAP = "gap"


class Record(msgspec.Struct):
    """One thing that happened in an exchange.

    `frame` is the frame as received (kind `frame`). `sent` is None where that frame went on as it
    came; else it is what left instead, towards either side, and `rules` the (addon, rule) pairs
    that made it so. A `repair` record has no frame at hand: an answer or a timer made frames
    leave. `meta` holds what belongs to the kind: heads, close codes, asks with their answers.
    """

    mono_ns: int
    exchange: int
    seq: int
    kind: RecordKind
    side: Side | None = None
    frame: Frame | None = None
    sent: tuple[Frame, ...] | None = None
    rules: tuple[tuple[str, str], ...] = ()
    skips: tuple[tuple[str, str], ...] = ()
    meta: dict[str, object] = msgspec.field(default_factory=dict)


class Sink(Protocol):
    """Where records go. `write` never blocks and never raises."""

    def write(self, record: Record) -> None: ...


class Store(Protocol):
    """Where conversations outlive the process that saw them. Raises StoreError."""

    async def load(self, key: bytes) -> tuple[bytes, int] | None:
        """Return the value and its version, or None."""

    async def save(self, key: bytes, value: bytes, version: int, ttl_s: float) -> bool:
        """Store a value unless a version as new is there; tell whether it was stored."""

    async def close(self) -> None: ...
