"""What a lane is read as, and what becomes of one update of it."""

from enum import StrEnum
from typing import Final

import msgspec


class Reading(StrEnum):
    UNKNOWN = "unknown"
    DELTA = "delta"
    SNAPSHOT = "snapshot"


class Way(StrEnum):
    """What becomes of one update of a lane."""

    KEEP = "keep"  # all of its text is new
    TAIL = "tail"  # the text from `start` to `end` is new
    NOTHING = "nothing"  # its text is contained in what was delivered
    RESET = "reset"  # `text` takes the place of all that was delivered
    HOLD = "hold"  # the next update will tell


class Step(msgspec.Struct, frozen=True):
    """What becomes of one update: offsets in bytes of code units, and the word it counts under."""

    way: Way
    rule: str = ""
    start: int = 0
    end: int = 0
    text: bytes = b""


KEEP: Final = Step(Way.KEEP)
HOLD: Final = Step(Way.HOLD)
