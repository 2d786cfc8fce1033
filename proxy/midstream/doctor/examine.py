"""Examines captures, one after the other: plays each, lets the looks read it, adds up."""

from collections.abc import Callable, Mapping

import msgspec

from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_open import Source
from midstream.config import Config
from midstream.core import metrics
from midstream.core.addon import AnyAddon
from midstream.core.frames import Side
from midstream.core.ports import Record, RecordKind
from midstream.doctor.agents import AgentStreams
from midstream.doctor.chat import RepeatedIds, ReplayBursts, SecondAcks
from midstream.doctor.exchanges import Exchanges
from midstream.doctor.looking import Look, Opened, Sight
from midstream.doctor.observe import Note, Observer
from midstream.doctor.pairs import PairTable
from midstream.doctor.report import RUN, Capture, Finding, Level, Report, Talk
from midstream.doctor.streams import Broken, Gaps, Stalled
from midstream.doctor.sums import Deeds, Sums, settle_findings
from midstream.doctor.talks import Timeline
from midstream.doctor.words import reasons


class Doctor:
    """Takes captures with `take`, and tells with `report` what they show.

    `is_given`: the configuration was named by the user, so that its routes count and not those of
    the captures. `is_drawn`: keep the frames that a timeline shows.
    """

    def __init__(self, config: Config, *, is_given: bool = False, is_drawn: bool = False) -> None:
        self._config, self._is_given, self._is_drawn = config, is_given, is_drawn
        self.sums, self.gaps, self.pairs, self.agents = Sums(), Gaps(), PairTable(), AgentStreams()
        self.looks: tuple[Look, ...] = (
            ReplayBursts(), SecondAcks(), RepeatedIds(), self.agents, Broken(), Stalled(),
        )  # fmt: skip
        self._captures: list[Capture] = []
        self._deeds: list[Deeds] = []
        self._talks: list[Talk] = []
        self._addons: dict[str, AnyAddon] = {}

    def take(
        self, path: str, source: Source, tick: Callable[[StoredRecord], None] = lambda _record: None
    ) -> None:
        """Read one capture to its end, or to where it is damaged; `tick` hears of each record."""
        observer = Observer(self._config, is_given=self._is_given)
        patient = Patient(Capture(path), len(self._captures), observer, self, self._is_drawn)
        for record in source:
            patient.take(record)
            tick(record)
        patient.end()
        self._addons |= observer.addons
        if source.damage is not None:
            damage = source.damage
            patient.capture.damage = (
                f"{damage.path}: damaged at byte {damage.offset}: {damage.reason}"
            )
        self._captures.append(patient.capture)
        self._deeds.append(patient.deeds)
        self._talks += patient.timeline.talks()

    def report(self) -> Report:
        """Return all that was found so far."""
        findings = self._findings()
        for number, deeds in enumerate(self._deeds):
            self.sums.settle(number, deeds)
            settle_findings(number, deeds, findings)
        faults = self.sums.faults(self._addons)
        report = Report(
            self._captures,
            faults,
            findings,
            self.sums.left_alone(),
            self.pairs.rows(self._talks),
            self._talks,
        )
        _count_by_talk(report)
        _mark_findings(report)
        return report

    def _findings(self) -> list[Finding]:
        found = [*self.pairs.findings()]
        for look in self.looks:
            found += look.findings()
        found += self.gaps.findings()
        return sorted(found, key=lambda finding: finding.level.value)


class Patient:
    """One capture while it is played."""

    def __init__(
        self, capture: Capture, number: int, observer: Observer, doctor: Doctor, is_drawn: bool
    ) -> None:
        self.capture = capture
        self.deeds = Deeds()
        self._number = number
        self._observer = observer
        self._doctor = doctor
        self._exchanges = Exchanges(number)
        self._ids: dict[int, int] = {}
        self._last: dict[tuple[int, Side | None], StoredRecord] = {}
        self.timeline = Timeline(number, self._exchanges, is_drawn=is_drawn)

    def take(self, record: StoredRecord) -> None:
        """Take the next record."""
        record = self._numbered(record)
        self._count(record)
        if record.kind is RecordKind.FRAME:
            self._last[record.exchange, record.side] = self._last[record.exchange, None] = record
        if record.kind is RecordKind.OPEN:
            self._exchanges.opened(record)
        elif record.kind is RecordKind.HEADERS:
            self._exchanges.answered(record)
        elif record.kind is RecordKind.GAP:
            self._doctor.gaps.lacks(self._number, record)
        self.deeds.record(record)
        self.timeline.record(record)
        step = self._observer.play(record)
        for seen in step.observed:
            self._look(seen, step.numbers.get(seen.exchange, 0), record)
        for number, notes in step.notes.items():
            self._note(record, number, notes, step.observed)
        if record.kind is RecordKind.CLOSE:
            self._close(record)

    def end(self) -> None:
        """Take the end of the capture: what is still open was cut off by it."""
        for exchange in self._exchanges.all.values():
            if exchange.end_ns is None:
                self._closed(exchange, 0, self.capture.last_ns)
        self.capture.problems = [
            f"{reason}: {count}" for reason, count in self._observer.problems.items()
        ]

    def _numbered(self, record: StoredRecord) -> StoredRecord:
        """Tell exchanges apart that have one number: the proxy was started again between them."""
        if record.kind is RecordKind.OPEN:
            number = self._ids.get(record.exchange)
            self._ids[record.exchange] = record.exchange if number is None else number + RUN
        number = self._ids.get(record.exchange, record.exchange)
        if number == record.exchange:
            return record
        return msgspec.structs.replace(record, exchange=number)

    def _count(self, record: StoredRecord) -> None:
        capture = self.capture
        capture.records += 1
        capture.exchanges += record.kind is RecordKind.OPEN
        capture.frames += record.kind is RecordKind.FRAME
        capture.size += len(record.data)
        capture.first_ns = capture.first_ns or record.wall_ns
        capture.last_ns = max(capture.last_ns, record.wall_ns)
        if record.rules and record.sent is not None:
            capture.was_mended = True

    def _look(self, seen: Record, number: int, record: StoredRecord) -> None:
        """Show a frame, whole as the session made it, to every look."""
        exchange = self._exchanges.all.get(number)
        if exchange is None or seen.frame is None:
            return
        self._exchanges.heard(exchange, seen.frame)
        at = self._place(record, number, seen.side)
        sight = Sight(exchange, at.seq, record.mono_ns, record.wall_ns, seen.frame)
        for look in self._doctor.looks:
            look.see(sight)

    def _note(
        self, record: StoredRecord, number: int, notes: list[Note], observed: list[Record]
    ) -> None:
        """Add up what the addons counted at a record."""
        sums = self._doctor.sums
        marks: list[str] = []
        side = next((one.side for one in reversed(observed) if one.rules), record.side)
        at = self._place(record, number, side)
        for note in notes:
            if note.metric is metrics.REPAIRS:
                sums.counted(self._number, at, number, note.words, note.amount)
                self.deeds.counted(at, note.words[0], note.amount)
                self._doctor.agents.counted(self._number, number, note.words[1])
                marks.append(" ".join(note.words))
            elif note.metric is metrics.SKIPPED:
                sums.declined(note.words)
            elif note.metric is metrics.ERRORS:
                sums.failures[note.words[0]] += 1
        self._doctor.pairs.note(self._number, number, at.seq, at.wall_ns, notes)
        if marks:
            why = [line for one in observed for line in reasons(one)]
            self.timeline.told(number, side, marks, why)

    def _place(self, record: StoredRecord, number: int, side: Side | None) -> StoredRecord:
        """Return the frame that was judged at a record: a body is judged when it has ended."""
        if record.kind is RecordKind.FRAME and record.exchange == number:
            return record
        return self._last.get((number, side)) or self._last.get((number, None)) or record

    def _close(self, record: StoredRecord) -> None:
        exchange = self._exchanges.closed(record)
        if exchange is not None:
            self._closed(exchange, record.seq, record.wall_ns)

    def _closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        for look in self._doctor.looks:
            look.closed(exchange, seq, wall_ns)
        for side in (*Side, None):  # frames may be large, and nothing more comes of this exchange
            self._last.pop((exchange.number, side), None)


def _count_by_talk(report: Report) -> None:
    owners: Mapping[tuple[int, int], Talk] = {
        (talk.capture, exchange.number): talk
        for talk in report.talks
        for exchange in talk.exchanges
    }
    for fault in report.faults:
        for place in fault.seen.places:
            owners[place.capture, place.exchange].faults += place.count


def _mark_findings(report: Report) -> None:
    """Mark on the timeline where faults were read from the wire."""
    marks: dict[tuple[int, int, int], list[str]] = {}
    for finding in report.findings:
        if finding.level is Level.FAULT:
            for place in finding.seen.places:
                key = place.capture, place.exchange, place.seq
                marks.setdefault(key, []).append(finding.name)
    for talk in report.talks if marks else ():
        for frame in talk.frames:
            frame.faults += marks.get((talk.capture, frame.exchange, frame.seq), [])
