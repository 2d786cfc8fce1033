"""One lane: the text of one artifact, as its client has it, and what its server seems to send.

    UNKNOWN     nothing speaks for either reading yet
    DELTA       each update carries new text; only whole repeats of what was said are taken out
    SNAPSHOT    each update carries the text so far; its tail is what is new

A lane that went over to SNAPSHOT on little evidence keeps the other reading in `doubt`: what its
text would be if all its updates had been new text. Should an update contradict SNAPSHOT, the text
is set right in one correction, and nothing is lost.

Texts are UTF-16 code units (see `text`).
"""

from array import array
from typing import Final

from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.step import KEEP, Reading, Step, Way
from midstream_addons.snapshot_to_delta.text import STRIP_SLACK_BYTES, WEIGHED_BYTES, information

FIRM_LOCKS: Final = 3
"""SNAPSHOT is beyond doubt with this many times `lock_bits`."""


class Lane:
    """The state of one lane, and the moves that keep it in step with what the client has.

    `segment` is where the text begins that the next snapshot would repeat: a server that works in
    several turns starts anew with each. `withheld` is the end of a snapshot that is cut inside a
    character, `replay` a text that an update put in the place of all, as long as that is known.
    """

    __slots__ = (
        "aggregates", "bits", "bounds", "can_reset", "doubt", "has_chunks", "held", "is_declared",
        "is_open", "options", "reading", "replay", "segment", "text", "withheld",
    )  # fmt: skip

    def __init__(self, options: Options, declared: Reading | None = None, prior: float = 0) -> None:
        self.options = options
        self.reading = declared or Reading.UNKNOWN
        self.is_declared = declared is not None
        self.bits = prior
        self.text = bytearray()
        self.segment = 0
        self.bounds = array("Q")
        self.doubt: bytearray | None = None
        self.held: bytes | None = None
        self.withheld = b""
        self.replay: bytearray | None = None
        self.aggregates = 0
        self.is_open = False
        self.has_chunks = False
        self.can_reset = True

    @property
    def size_bytes(self) -> int:
        waiting = len(self.doubt or b"") + len(self.held or b"") + len(self.replay or b"")
        return len(self.text) + waiting + self.bounds.itemsize * len(self.bounds)

    @property
    def firm_bits(self) -> float:
        return FIRM_LOCKS * self.options.lock_bits

    @property
    def locking_bits(self) -> float:
        """How much evidence locks: all of it where no correction could set a mistake right."""
        return self.options.lock_bits if self.can_reset else self.firm_bits

    @property
    def current(self) -> bytes:
        """A copy of the segment's text."""
        return bytes(memoryview(self.text)[self.segment :])

    @property
    def current_bytes(self) -> int:
        return len(self.text) - self.segment

    @property
    def is_repeated(self) -> bool:
        """Tell whether the segment came in two updates or more, so that one can repeat it."""
        return len(self.bounds) > 1 and self.bounds[-2] > self.segment

    def current_near(self, new: bytes) -> bytes:
        """A copy of the segment's text where it is about as long as another, else nothing."""
        is_near = abs(len(new) - self.current_bytes) <= STRIP_SLACK_BYTES
        return self.current if is_near else b""

    def extends(self, new: bytes) -> bool:
        """Tell whether a text begins with the whole segment."""
        with memoryview(self.text)[self.segment :] as current:
            return new.startswith(current)

    def contains_as_prefix(self, new: bytes) -> bool:
        return self.text.startswith(new, self.segment)

    def current_information(self) -> float:
        return information(self.text[self.segment : self.segment + WEIGHED_BYTES])

    def declare(self, reading: Reading) -> None:
        """Take the server's own word for what it sends."""
        self.reading, self.is_declared, self.doubt = reading, True, None

    def end_segment(self) -> None:
        """Let the next snapshot begin here."""
        self.segment = len(self.text)
        self.doubt = None

    # --- moves ----------------------------------------------------------------------------------

    def keep(self, new: bytes) -> Step:
        """Deliver the update as it came."""
        if new:
            self._deliver(new)
        return KEEP

    def tail(self, new: bytes, rule: str, start: int, end: int | None = None) -> Step:
        """Deliver what an update has from `start` on."""
        end = len(new) if end is None else end
        if end <= start:
            return Step(Way.NOTHING, rule)
        self._deliver(new[start:end])
        return Step(Way.TAIL, rule, start, end)

    def reset(self, segment: bytes, rule: str) -> Step:
        """Deliver another text in the place of the segment; what lies before it stays."""
        del self.text[self.segment :]
        while self.bounds and self.bounds[-1] > self.segment:
            self.bounds.pop()
        self._deliver(segment)
        return Step(Way.RESET, rule, text=bytes(self.text))

    def lock(self, reading: Reading, doubt: bytes = b"") -> None:
        """Take a reading; `doubt` is what the segment would be in the other one."""
        self.reading = reading
        self.doubt = bytearray(doubt) if doubt and self.bits < self.firm_bits else None

    def _deliver(self, text: bytes) -> None:
        self.text += text
        self.bounds.append(len(self.text))
