"""Records exchanges into a capture, without slowing them.

`write` appends to a list. Some milliseconds later, or when the list is long, the event loop takes
all of it at once: it chooses the records that are wanted, cleans them of secrets, encodes them, and
puts them into a bounded queue or into the ring. One thread writes them (`capture_writer`). Rules of
this file:
- `write` takes no lock that the disk can hold, never blocks and never raises. What the queue has no
  room for is counted, and a `gap` record says how much is missing as soon as there is room.
- Secrets are taken out before a record is queued, or waits in the ring.

Counts are not thread-safe, so each series has one thread that adds to it, and all exist beforehand.
"""

import asyncio
import logging
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from midstream.adapters.capture_choice import Choice, path_of
from midstream.adapters.capture_cleaning import Cleaning
from midstream.adapters.capture_format import StoredRecord, encode, encode_passed
from midstream.adapters.capture_ring import Gap, Piece, Ring, Trail, Waiting
from midstream.adapters.capture_segments import SegmentLimits, SegmentWriter
from midstream.adapters.capture_writer import Batch, Chunk, Queue, Writer, WriterLimits
from midstream.config.schema import CaptureTable
from midstream.core import metrics
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind

logger = logging.getLogger(__name__)

DROP_REASONS = ("queue_full", "stopped", "unwritable", "disk", "disk_low", "secret")
"""The first three before the queue, the others behind it."""

MAX_PENDING = 256
LARGE_BYTES = 4096
"""A frame of more than this is not left pending, and what is before it neither."""
FLUSH_SECONDS = 0.02
NS_PER_S = 1_000_000_000


class Recorder:
    """A `Sink` that writes the capture NAME. One thread writes to it, with or without a loop."""

    def __init__(
        self,
        table: CaptureTable,
        name: str,
        counts: Counts,
        *,
        limits: WriterLimits | None = None,
    ) -> None:
        self._limits = limits or WriterLimits()
        self._counts = counts
        self._cleaning = Cleaning(table)
        self._choice = Choice(table)
        self._ring = Ring(table.ring_bytes, int(table.ring_seconds * NS_PER_S))
        self._queue: Queue = SimpleQueue()
        self._put_records = self._put_bytes = 0
        self._trails: dict[int, Trail | None] = {}
        self._pending: list[Record] = []
        self._due_in: asyncio.AbstractEventLoop | None = None
        self._lost = 0
        self._open = False
        segments = SegmentWriter(Path(table.dir), name, SegmentLimits.of(table))
        self._writer = Writer(
            segments, self._queue, counts, self._limits, table.sync, self._cleaning.check
        )
        counts.start_at_zero(metrics.CAPTURE_RECORDS, tuple(kind.value for kind in RecordKind))
        counts.start_at_zero(metrics.CAPTURE_BYTES)
        counts.start_at_zero(metrics.CAPTURE_DROPPED, DROP_REASONS)

    @property
    def healthy(self) -> bool:
        """False while the disk takes nothing."""
        return not self._writer.failed

    def start(self) -> None:
        """Start the writer thread; it opens the first segment."""
        self._open = True
        self._writer.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Write what is queued and close the segment, within `timeout_s` seconds."""
        if not self._open:
            return
        self._flush()
        self._note_gap()
        self._open = False
        self._writer.stop(timeout_s)

    def write(self, record: Record) -> None:
        """Record something: now, or within some milliseconds where a loop runs."""
        pending = self._pending
        pending.append(record)
        frame = record.frame
        if len(pending) >= MAX_PENDING or (frame is not None and len(frame.wire) > LARGE_BYTES):
            self._flush()
        elif len(pending) == 1:
            self._flush_soon()

    def write_ring(self) -> int:
        """Write what waits in memory, and return how many records that were."""
        self._flush()
        batch = Batch()
        count = self._add_pieces(batch, self._ring.take_all())
        if batch:
            self._enqueue(batch)  # it was in memory before, so there is room for it
            self._writer.hurry()
        return count

    # --- from the list to the queue ---------------------------------------------------------------

    def _flush_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._flush()
            return
        if self._due_in is not loop:
            self._due_in = loop
            loop.call_later(FLUSH_SECONDS, self._flush_due)

    def _flush_due(self) -> None:
        self._due_in = None
        self._flush()

    def _flush(self) -> None:
        """Take what is pending through everything that comes before the queue."""
        records, self._pending = self._pending, []
        if not self._open:
            self._counts.add(metrics.CAPTURE_DROPPED, ("stopped",), len(records))
            return
        try:
            self._put(self._batch(*self._chosen(records)))
        except Exception:  # a capture stops no stream, whatever is wrong with it
            logger.exception("records could not be queued")

    def _chosen(self, records: list[Record]) -> tuple[list[Record], list[Trail]]:
        """Return the records of exchanges that are captured, and the exchange of each."""
        frame, trails = RecordKind.FRAME, self._trails
        found = [
            trails[record.exchange]
            if record.kind is frame and record.exchange in trails
            else self._trail(record)
            for record in records
        ]
        if None in found:
            records = [record for record, trail in zip(records, found, strict=True) if trail]
        return records, [trail for trail in found if trail]

    def _batch(self, records: list[Record], trails: list[Trail]) -> Batch:
        """Clean and encode records, and sort out what waits in the ring."""
        batch = Batch()
        offset_ns = time.time_ns() - time.monotonic_ns()
        suspects = self._cleaning.suspects(records)
        passed = records
        if suspects:
            passed = [record for index, record in enumerate(records) if index not in suspects]
        routes = {trail.number: trail.route for trail in set(trails)}
        blocks = encode_passed(passed, offset_ns, routes)
        if not suspects and self._choice.keeps_all:
            batch.blocks, batch.kinds = blocks, [RecordKind.FRAME] * len(blocks)
            return batch
        encoded = iter(blocks)
        for index, (record, trail) in enumerate(zip(records, trails, strict=True)):
            is_passed = index not in suspects
            block = next(encoded) if is_passed else self._cleaned(record, offset_ns, trail.route)
            if self._choice.keeps_all and block:
                batch.add(record.kind, block)
            elif block:
                self._keep(batch, record, Waiting(trail, record.kind, record.mono_ns, block))
        return batch

    def _cleaned(self, record: Record, offset_ns: int, route: str) -> bytes:
        """Return a record without secrets, encoded; nothing where one of both cannot be done."""
        try:
            clean = self._cleaning.record(record)
            return encode(StoredRecord.of(clean, record.mono_ns + offset_ns, route))
        except Exception as error:  # noqa: BLE001 - the other records are written
            self._counts.add(metrics.CAPTURE_DROPPED, ("unwritable",))
            kind = type(error).__name__
            logger.warning("a record of kind %s is not captured: %s", record.kind, kind)
            return b""

    def _trail(self, record: Record) -> Trail | None:
        """Return the trail of a record's exchange; None where that is not captured."""
        number = record.exchange
        if record.kind is RecordKind.OPEN:
            takes = self._choice.takes(record)
            route = str(record.meta.get("route", ""))
            trail = Trail(number, route, path_of(record)) if takes else None
            self._trails[number] = trail
            return trail
        if record.kind is RecordKind.CLOSE and record.side is None:
            return self._trails.pop(number, None)
        try:
            return self._trails[number]
        except KeyError:  # opened before the recorder was
            return self._trails.setdefault(number, Trail(number, "", str(number)))

    # --- what is kept -----------------------------------------------------------------------------

    def _keep(self, batch: Batch, record: Record, waiting: Waiting) -> None:
        """Add a record to what is written, or to the ring."""
        trail = waiting.trail
        if not trail.is_kept and self._choice.keeps(record):
            trail.is_kept = True
            self._add_pieces(batch, self._ring.take(trail))
        if trail.is_kept:
            batch.add(waiting.kind, waiting.block)
        else:
            self._ring.add(waiting)
        if record.kind is RecordKind.CLOSE and record.side is None:
            self._ring.close(trail)

    def _add_pieces(self, batch: Batch, pieces: Iterable[Piece]) -> int:
        """Add what the ring gave, and return how many records that were."""
        count = 0
        for piece in pieces:
            if isinstance(piece, Gap):
                batch.add(RecordKind.GAP, _gap(piece.count, "ring", piece.trail))
            else:
                batch.add(piece.kind, piece.block)
                count += 1
        return count

    # --- the queue --------------------------------------------------------------------------------

    def _put(self, batch: Batch) -> None:
        if not batch:
            return
        if self._has_room():
            self._note_gap()
            self._enqueue(batch)
        else:
            self._lost += len(batch)
            self._counts.add(metrics.CAPTURE_DROPPED, ("queue_full",), len(batch))

    def _has_room(self) -> bool:
        records, octets = self._queued()
        return records < self._limits.max_queue_records and octets < self._limits.max_queue_bytes

    def _queued(self) -> tuple[int, int]:
        # Each counter has one thread that adds to it, so that no lock is needed to subtract them.
        writer = self._writer
        return self._put_records - writer.taken_records, self._put_bytes - writer.taken_bytes

    def _enqueue(self, batch: Batch) -> None:
        chunk = Chunk(batch)
        self._put_records += chunk.count
        self._put_bytes += len(chunk.data)
        self._queue.put(chunk)
        limits, (records, octets) = self._limits, self._queued()
        if records * 4 > limits.max_queue_records or octets * 4 > limits.max_queue_bytes:
            self._writer.hurry()

    def _note_gap(self) -> None:
        if self._lost:
            batch = Batch()
            batch.add(RecordKind.GAP, _gap(self._lost, "queue_full"))
            self._lost = 0
            self._enqueue(batch)


def recorder(table: CaptureTable, kind: str, counts: Counts) -> Recorder | None:
    """Return the recorder that a configuration asks for; None where it asks for none.

    `kind` begins the name of the capture, which no other process and no other start has.
    """
    if not table.dir:
        return None
    name = f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
    return Recorder(table, name, counts)


def _gap(count: int, reason: str, trail: Trail | None = None) -> bytes:
    """Return an encoded gap: of an exchange, or of all."""
    number, route = (0, "") if trail is None else (trail.number, trail.route)
    meta: dict[str, object] = {"count": count, "reason": reason}
    record = Record(time.monotonic_ns(), number, 0, RecordKind.GAP, meta=meta)
    return encode(StoredRecord.of(record, time.time_ns(), route))
