"""What a diagnosis says: faults, findings, pairs, and the captures they were seen in.

A fault is an addon's: `count` is what the addon counts in observe mode. A finding was read from the
wire without an addon. Both tell where they were seen, and how much of it was mended at the time.
All texts that come from a capture are data: whoever shows them escapes them.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import msgspec

NS_PER_MS = 1_000_000
RUN = 1_000_000_000
"""Exchange numbers begin again when a proxy is started again and goes on with its capture. Here
those of the second run are a `RUN` higher, and so on; people are shown the number in the file."""


class Level(StrEnum):
    """A fault makes `doctor` exit 1; a note is only told."""

    FAULT = "fault"
    NOTE = "note"


class Place(msgspec.Struct):
    """An exchange in which something was seen, how often, and the record where it was first."""

    capture: int
    exchange: int
    seq: int
    count: int = 0
    mended: int = 0

    @property
    def shown(self) -> int:
        """The number of the exchange in its file."""
        return self.exchange % RUN


class Rule(msgspec.Struct):
    """A word of an addon, how often it was counted, and what it means, if anybody says."""

    word: str
    count: int
    meaning: str


class Seen(msgspec.Struct):
    """Where and when something was seen; times are nanoseconds since 1970, 0 for never."""

    by_exchange: dict[tuple[int, int], Place] = {}
    first_ns: int = 0
    last_ns: int = 0

    @property
    def places(self) -> list[Place]:
        return list(self.by_exchange.values())

    @property
    def count(self) -> int:
        return sum(place.count for place in self.places)

    @property
    def mended(self) -> int:
        return sum(place.mended for place in self.places)

    def note(self, capture: int, exchange: int, seq: int, wall_ns: int, count: int = 1) -> None:
        """Count something seen at a record."""
        key = capture, exchange
        if key not in self.by_exchange:
            self.by_exchange[key] = Place(capture, exchange, seq)
        self.by_exchange[key].count += count
        self.first_ns = min(self.first_ns, wall_ns) if self.first_ns else wall_ns
        self.last_ns = max(self.last_ns, wall_ns)


class Fault(msgspec.Struct):
    """What one addon mends, as often as it counts it in observe mode."""

    addon: str
    meaning: str
    mend: str
    rules: list[Rule]
    seen: Seen


class Finding(msgspec.Struct):
    """Something read from the wire. `mends` is the addon that mends it, empty where nothing does.

    `count` is in `unit`; `detail` has the sizes.
    """

    name: str
    title: str
    level: Level
    unit: str
    meaning: str
    detail: str
    mends: str
    mend: str
    seen: Seen


class Declined(msgspec.Struct):
    """How often an addon left something alone, and why."""

    addon: str
    reason: str
    count: int
    meaning: str


class PairRow(msgspec.Struct):
    """Pairs of a text and a later call in the requests of one conversation.

    A conversation's requests repeat its history, so `comparable` and `inverted` count a pair as
    often as it was sent; `largest` is how many pairs its largest request has.
    """

    capture: int
    conversation: str
    requests: int = 0
    comparable: int = 0
    inverted: int = 0
    after: int = 0
    largest: int = 0
    largest_inverted: int = 0

    @property
    def rate(self) -> float | None:
        """The share of the comparable pairs that are inverted; None where there are none."""
        return self.inverted / self.comparable if self.comparable else None


class Frame(msgspec.Struct):
    """One frame on a timeline: when (ms since the capture began), how large, what became of it.

    `sent` is None where it went on as it came. `faults` and `declined` are what observe mode says,
    `mended` what the capture says was done; `why` explains both.
    """

    exchange: int
    seq: int
    at_ms: float
    side: str
    kind: str
    size: int
    sent: int | None
    text: str
    faults: list[str] = []
    mended: list[str] = []
    declined: list[str] = []
    why: list[str] = []


class Exchange(msgspec.Struct):
    """One lane of a timeline. `replays` are replays after a reconnect: begin, end, chunks."""

    number: int
    label: str
    transport: str
    begin_ms: float
    end_ms: float | None = None
    ending: str = ""
    status: int = 0
    frames: int = 0
    size: int = 0
    follows: int = 0
    replays: list[tuple[float, float, int]] = []

    @property
    def shown(self) -> int:
        """The number of the exchange in its file."""
        return self.number % RUN


class Talk(msgspec.Struct):
    """A conversation: its exchanges in their order. `left_out` frames are not on the timeline."""

    capture: int
    title: str
    exchanges: list[Exchange]
    frames: list[Frame] = []
    left_out: int = 0
    faults: int = 0


class Capture(msgspec.Struct):
    """One capture that was read. `damage` tells the byte where it stops being readable."""

    path: str
    records: int = 0
    exchanges: int = 0
    frames: int = 0
    size: int = 0
    first_ns: int = 0
    last_ns: int = 0
    was_mended: bool = False
    damage: str = ""
    problems: list[str] = []


class Report(msgspec.Struct):
    """A diagnosis of some captures."""

    captures: list[Capture]
    faults: list[Fault]
    findings: list[Finding]
    declined: list[Declined]
    pairs: list[PairRow]
    talks: list[Talk]

    @property
    def is_clean(self) -> bool:
        return not self.faults and not any(f.level is Level.FAULT for f in self.findings)


def total(rows: Iterable[PairRow]) -> PairRow:
    """Return the sum of the rows."""
    sum_ = PairRow(0, "all")
    for row in rows:
        sum_.requests += row.requests
        sum_.comparable += row.comparable
        sum_.inverted += row.inverted
        sum_.after += row.after
        sum_.largest += row.largest
        sum_.largest_inverted += row.largest_inverted
    return sum_


def name_of(path: Path | str) -> str:
    """Return what a capture is called: its file name without number and ending."""
    stem = Path(path).name
    for ending in (".cap", ".har", ".mitm"):
        stem = stem.removesuffix(ending)
    head, _, number = stem.rpartition("-")
    return head if head and number.isdigit() and len(number) == 6 else stem
