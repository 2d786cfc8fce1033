"""Plays what a capture received through the addons in observe mode, and tells what they count.

Rules of this file:
- Only the bytes as received are played, so that a fault is found whether it was mended or not.
- The numbers are those of the metrics: an addon may count several frames with one verdict.
- The upstream of each exchange is the one recorded, so that two servers with the same paths do not
  share a conversation.
- What is judged when a side ends belongs to the last frame of that side: a body has ended by then.
"""

from typing import ClassVar

import msgspec

from midstream import wiring
from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_heads import text
from midstream.config import Config
from midstream.core import metrics
from midstream.core.addon import AnyAddon
from midstream.core.engine import Engine, Route
from midstream.core.metrics import Counts, Metric
from midstream.core.ports import Record, RecordKind
from midstream.hosts.replay_run import Replayer
from midstream.hosts.replay_script import Script

LOST = "records lost in the capture"


class Note(msgspec.Struct, frozen=True):
    """One thing counted: `metric` tells what kind, `words` are its labels without the route."""

    metric: Metric
    words: tuple[str, ...]
    amount: int


class Step(msgspec.Struct):
    """What came of one record.

    `notes` is what was counted, by exchange. `observed` are the records that the sessions made, in
    which bodies are whole; `numbers` leads from their exchange numbers to those of the capture.
    """

    record: StoredRecord
    notes: dict[int, list[Note]]
    observed: list[Record]
    numbers: dict[int, int]


class Tally(Counts):
    """Counts, and notes what is counted with the addons' words."""

    __slots__ = ("notes",)

    _NOTED: ClassVar[dict[str, slice]] = {
        metrics.REPAIRS.name: slice(1, 3),
        metrics.SKIPPED.name: slice(0, 2),
        metrics.ERRORS.name: slice(0, 1),
        metrics.HISTORY_PAIRS.name: slice(1, 2),
        metrics.RECONNECTS.name: slice(1, 2),
    }

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[Note] = []

    def add(self, metric: Metric, labels: tuple[str, ...] = (), amount: float = 1) -> None:
        super().add(metric, labels, amount)
        words = self._NOTED.get(metric.name)
        if words is not None:
            self.notes.append(Note(metric, labels[words], int(amount)))

    def take(self) -> list[Note]:
        taken, self.notes = self.notes, []
        return taken


class Kept:
    """A sink that keeps records until they are taken."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, record: Record) -> None:
        self.records.append(record)

    def take(self) -> list[Record]:
        taken, self.records = self.records, []
        return taken


class Nothing(Script):
    """What lies ahead is of no interest in observe mode: nothing is asked, held or paced."""

    def passed(self, record: StoredRecord) -> None:
        """Nothing was known of it."""


class Observer:
    """Plays the records of one capture. `is_given`: the configuration was named by the user."""

    def __init__(self, config: Config, *, is_given: bool = False) -> None:
        self._tally = Tally()
        self._sink = Kept()
        self.engine: Engine = wiring.engine(
            config, counts=self._tally, sink=self._sink, observe=True
        )
        self._routes: tuple[Route, ...] = self.engine.routes
        self._is_given = is_given
        self._replayer = Replayer(self.engine, Nothing())

    @property
    def problems(self) -> dict[str, int]:
        """What could not be played, by reason, but for gaps: those are a finding."""
        problems = self._replayer.problems
        return {reason: problems[reason] for reason in problems if reason != LOST}

    @property
    def addons(self) -> dict[str, AnyAddon]:
        return {addon.name: addon for route in self._routes for addon, _ in route.addons}

    def play(self, record: StoredRecord) -> Step:
        """Play one record, and before it what time has brought."""
        if record.kind is RecordKind.OPEN:
            self._lead_to(record)
        notes: dict[int, list[Note]] = {}
        if record.kind is not RecordKind.ASK:
            for left in self._replayer.feed(_bare(record)):
                notes.setdefault(left.exchange, []).extend(self._tally.take())
        notes.setdefault(record.exchange, []).extend(self._tally.take())
        return Step(record, notes, self._sink.take(), self._replayer.numbers)

    def _lead_to(self, record: StoredRecord) -> None:
        """Let the routes lead where this exchange went."""
        upstream = record.meta.get("upstream")
        where = text(upstream) if isinstance(upstream, str | bytes) else ""
        routes = [msgspec.structs.replace(route, upstream=where) for route in self._routes]
        if not self._is_given and record.route:
            routes = [msgspec.structs.replace(route, name=record.route) for route in routes]
        self.engine.routes = tuple(routes)


def _bare(record: StoredRecord) -> StoredRecord:
    """Leave out what a close says beside its ending: odd keys there could not be played."""
    if record.kind is not RecordKind.CLOSE:
        return record
    meta = {key: record.meta[key] for key in ("ending",) if key in record.meta}
    return msgspec.structs.replace(record, meta=meta)
