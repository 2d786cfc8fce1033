"""Records exchanges into a capture, without slowing them.

`write` appends to a list. Some milliseconds later, or when the list is long, all of it is looked at
together: what is wanted is cleaned of secrets and encoded (`capture_batch`), and goes into a
bounded queue, or waits in a ring (`capture_ring`). One thread writes what is queued
(`capture_writer`). Rules of this file:
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
from typing import cast

from midstream.adapters.capture_batch import Batches
from midstream.adapters.capture_choice import Choice, path_of
from midstream.adapters.capture_format import StoredRecord, encode, split
from midstream.adapters.capture_ring import Gap, Piece, Ring, Trail, Waiting
from midstream.adapters.capture_segments import SegmentLimits, SegmentWriter
from midstream.adapters.capture_writer import Chunk, Queue, Writer, WriterLimits
from midstream.config.schema import CaptureTable
from midstream.core import metrics
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind

logger = logging.getLogger(__name__)

DROP_REASONS = ("queue_full", "stopped", "unwritable", "disk", "disk_low", "secret")
"""The first three before the queue, the others behind it."""

MAX_PENDING = 1024
LARGE_BYTES = 4096
"""A frame of more than this is not left pending, nor what came before it."""
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
        self._choice = Choice(table)
        self._batches = Batches(table)
        self._pending: list[Record] = []
        self._ring = Ring(table.ring_bytes, int(table.ring_seconds * NS_PER_S))
        self._queue: Queue = SimpleQueue()
        self._put_records = self._put_bytes = self._lost = 0
        self._trails: dict[int, Trail | None] = {}
        self._due_in: asyncio.AbstractEventLoop | None = None
        self._open = self._is_failure_told = False
        segments = SegmentWriter(Path(table.dir), name, SegmentLimits.of(table))
        self._writer = Writer(
            segments, self._queue, counts, self._limits, table.sync, self._batches.check
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
        pending, frame = self._pending, record.frame
        pending.append(record)
        if len(pending) >= MAX_PENDING or (frame is not None and len(frame.wire) > LARGE_BYTES):
            self._flush()
        elif self._due_in is None or len(pending) == 1:
            self._flush_soon()

    def write_ring(self) -> int:
        """Write what waits in memory, and return how many records that were."""
        self._flush()
        blocks: list[bytes] = []
        kinds: list[RecordKind] = []
        count = _add(blocks, kinds, self._ring.take_all())
        if blocks:
            self._enqueue(Chunk(b"".join(blocks), kinds))  # it was in memory before: there is room
            self._writer.hurry()
        return count

    # --- from a record to the queue ---------------------------------------------------------------

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
        """Take what is pending to the queue, or to the ring."""
        records, self._pending = self._pending, []
        if not self._open:
            self._counts.add(metrics.CAPTURE_DROPPED, ("stopped",), len(records))
            return
        try:
            records, trails = self._chosen(records)
            data, left_out = self._batches.encoded(records, trails)
            if left_out:
                self._counts.add(metrics.CAPTURE_DROPPED, ("unwritable",), len(left_out))
                for index in reversed(left_out):
                    del records[index], trails[index]
            if self._choice.keeps_all:
                self._put(Chunk(data, [record.kind for record in records]))
            else:
                self._put(self._kept(records, trails, data))
        except Exception:  # a capture stops no stream, whatever is wrong with it
            self._counts.add(metrics.CAPTURE_DROPPED, ("unwritable",), len(records))
            if not self._is_failure_told:
                logger.exception("records are not captured")
            self._is_failure_told = True

    def _chosen(self, records: list[Record]) -> tuple[list[Record], list[Trail]]:
        """Return the records of exchanges that are captured, and the trail of each."""
        get = self._trails.get
        found = [
            (record.frame and get(record.exchange)) or self._trail(record) for record in records
        ]
        if None not in found:
            return records, cast("list[Trail]", found)  # it was just looked at: a pass less
        records = [record for record, trail in zip(records, found, strict=True) if trail]
        return records, [trail for trail in found if trail]

    def _trail(self, record: Record) -> Trail | None:
        """Return the trail of a record's exchange; None where that is not captured."""
        number = record.exchange
        if record.kind is RecordKind.OPEN:
            takes = self._choice.takes(record)
            route = str(record.meta.get("route", ""))
            self._trails[number] = Trail(number, route, path_of(record)) if takes else None
        elif number not in self._trails:  # opened before the recorder was
            self._trails[number] = Trail(number, "", str(number))
        return self._trails.pop(number) if _is_last(record) else self._trails[number]

    def _kept(self, records: list[Record], trails: list[Trail], data: bytes) -> Chunk:
        """Return what is written, and leave the rest to the ring."""
        blocks: list[bytes] = []
        kinds: list[RecordKind] = []
        for record, trail, block in zip(records, trails, split(data), strict=True):
            if not trail.is_kept and self._choice.keeps(record):
                trail.is_kept = True
                _add(blocks, kinds, self._ring.take(trail))
            if trail.is_kept:
                blocks.append(block)
                kinds.append(record.kind)
            else:
                self._ring.add(Waiting(trail, record.kind, record.mono_ns, block))
            if _is_last(record):
                self._ring.close(trail)
        return Chunk(b"".join(blocks), kinds)

    # --- the queue --------------------------------------------------------------------------------

    def _put(self, chunk: Chunk) -> None:
        count = len(chunk.kinds)
        if not count:
            return
        records, octets = self._queued()
        limits = self._limits
        if records < limits.max_queue_records and octets < limits.max_queue_bytes:
            self._note_gap()
            self._enqueue(chunk)
        else:
            self._lost += count
            self._counts.add(metrics.CAPTURE_DROPPED, ("queue_full",), count)

    def _queued(self) -> tuple[int, int]:
        # Each counter has one thread that adds to it, so that no lock is needed to subtract them.
        writer = self._writer
        return self._put_records - writer.taken_records, self._put_bytes - writer.taken_bytes

    def _enqueue(self, chunk: Chunk) -> None:
        self._put_records += len(chunk.kinds)
        self._put_bytes += len(chunk.data)
        self._queue.put(chunk)
        limits, (records, octets) = self._limits, self._queued()
        if records * 4 > limits.max_queue_records or octets * 4 > limits.max_queue_bytes:
            self._writer.hurry()

    def _note_gap(self) -> None:
        if self._lost:
            gap = _gap(self._lost, "queue_full")
            self._lost = 0
            self._enqueue(Chunk(gap, [RecordKind.GAP]))


def recorder(table: CaptureTable, kind: str, counts: Counts) -> Recorder | None:
    """Return the recorder that a configuration asks for; None where it asks for none.

    `kind` begins the name of the capture, which no other process and no other start has.
    """
    if not table.dir:
        return None
    name = f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
    return Recorder(table, name, counts)


def _is_last(record: Record) -> bool:
    """Tell whether a record ends its exchange."""
    return record.kind is RecordKind.CLOSE and record.side is None


def _add(blocks: list[bytes], kinds: list[RecordKind], pieces: Iterable[Piece]) -> int:
    """Add what the ring gave, and return how many records that were."""
    count = 0
    for piece in pieces:
        if isinstance(piece, Gap):
            blocks.append(_gap(piece.count, "ring", piece.trail))
            kinds.append(RecordKind.GAP)
        else:
            blocks.append(piece.block)
            kinds.append(piece.kind)
            count += 1
    return count


def _gap(count: int, reason: str, trail: Trail | None = None) -> bytes:
    """Return an encoded gap: of an exchange, or of all."""
    number, route = (0, "") if trail is None else (trail.number, trail.route)
    meta: dict[str, object] = {"count": count, "reason": reason}
    record = Record(time.monotonic_ns(), number, 0, RecordKind.GAP, meta=meta)
    return encode(StoredRecord.of(record, time.time_ns(), route))
