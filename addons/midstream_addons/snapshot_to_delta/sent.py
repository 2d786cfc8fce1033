"""What leaves at one moment, and what it accounts for."""

import msgspec

from midstream.core.addon import NO_FACTS, Facts, Note, Verdict, Wait
from midstream.core.frames import Frame
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.state import Stream

HOLD = "hold"
TRAILER = "trailer"


class Sent(msgspec.Struct):
    """What leaves at this moment, the word it counts under, and what it accounts for.

    `at_hand` is the frame that is judged, if any: it is not among those that the chain holds.
    """

    options: Options
    now_ns: int
    at_hand: Frame | None = None
    frames: list[Frame] = []
    settled: list[Frame] = []
    notes: list[Note] = []
    rule: str = ""
    repairs: int = 0
    why: Facts = NO_FACTS

    def add(self, frame: Frame | None, rule: str) -> None:
        """Send a frame, or nothing, for a received one; an empty word: it is as it came."""
        if frame is not None:
            self.frames.append(frame)
        if rule:
            self.rule = rule if rule != TRAILER else self.rule or rule
            self.repairs += 1

    def settle(self, frame: Frame) -> None:
        """Note that all is said for a received frame: it waits no longer, if it did."""
        if frame is not self.at_hand:
            self.settled.append(frame)

    def verdict(self, *, hold: bool = False, asks: tuple[Wait, ...] = ()) -> Verdict:
        return Verdict(
            tuple(self.frames),
            self.rule,
            hold,
            tuple(self.settled),
            repairs=max(self.repairs, 1),
            asks=asks,
            notes=tuple(self.notes),
            why=self.why,
        )


def asks(stream: Stream, options: Options) -> tuple[Wait, ...]:
    """Ask to be woken when the first of what waits is due; once for all of it."""
    if stream.is_waiting:
        return ()
    stream.is_waiting = True
    return (Wait(options.hold_ms, HOLD),)
