"""Records exchanges into a capture, without slowing them.

The event loop puts records into a bounded queue; one thread encodes and writes them. Rules of this
file:
- `write` takes no lock that the disk can hold, never blocks and never raises. What the queue has no
  room for is counted, and a `gap` record says how much is missing as soon as there is room.
- Secrets are taken out before a record is queued.
- Records are written in small batches, each ended by a system call: it gives up the interpreter
  lock, so that a busy writer delays the loop by no more than one batch.
- A disk that fails ends the capture, never a stream: the rest is counted, `healthy` turns false.

Counts are not thread-safe, so each series has one thread that adds to it, and all exist beforehand.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from midstream.adapters.capture_format import StoredRecord, encode
from midstream.adapters.capture_redact import Redactor
from midstream.adapters.capture_segments import SegmentWriter
from midstream.core import metrics
from midstream.core.addon import Answer
from midstream.core.errors import CaptureError
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind

logger = logging.getLogger(__name__)

DROP_REASONS = ("queue_full", "stopped", "disk", "unwritable")
"""`queue_full` and `stopped` before the queue; `disk` and `unwritable` behind it."""

BATCH_RECORDS = 64
BATCH_BYTES = 1 << 20
RECORD_OVERHEAD_BYTES = 256
NS_PER_MS = 1_000_000


class Queued(msgspec.Struct, frozen=True):
    """A record on its way to the writer, with about how many bytes it takes."""

    record: Record
    wall_ns: int
    route: str
    size: int


class RecorderLimits(msgspec.Struct, frozen=True):
    """What may wait in memory, how soon it is on disk, and how large a segment grows."""

    max_queue_records: int = 65_536
    max_queue_bytes: int = 64 << 20
    max_segment_bytes: int = 64 << 20
    write_ms: int = 250
    sync_ms: int = 1_000


class Recorder:
    """A `Sink` that writes the capture NAME into a directory. One event loop writes to it."""

    def __init__(
        self,
        directory: Path,
        name: str,
        counts: Counts,
        *,
        redact: Iterable[str] = (),
        limits: RecorderLimits | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._limits = limits or RecorderLimits()
        self._counts = counts
        self._redactor = Redactor(redact)
        self._wall_ns = wall_ns
        self._queue: queue.SimpleQueue[Queued] = queue.SimpleQueue()
        self._put_records = self._put_bytes = 0
        self._routes: dict[int, str] = {}
        self._lost = 0
        self._open = False
        segments = SegmentWriter(directory, name, self._limits.max_segment_bytes)
        self._writer = _Writer(segments, self._queue, counts, self._limits)
        kinds = tuple(kind.value for kind in RecordKind)
        counts.start_at_zero(metrics.CAPTURE_RECORDS, kinds)
        counts.start_at_zero(metrics.CAPTURE_BYTES)
        counts.start_at_zero(metrics.CAPTURE_DROPPED, DROP_REASONS)

    @property
    def healthy(self) -> bool:
        """False once the disk has failed: nothing is captured any more."""
        return not self._writer.failed

    def start(self) -> None:
        """Start the writer thread; it opens the first segment."""
        self._open = True
        self._writer.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Write what is queued and close the segment, within `timeout_s` seconds."""
        if not self._open:
            return
        self._note_gap()
        self._open = False
        self._writer.stop(timeout_s)

    def write(self, record: Record) -> None:
        """Queue a record, or count that there was no room for it."""
        try:
            if not self._open or self._writer.failed:
                self._counts.add(metrics.CAPTURE_DROPPED, ("stopped",))
            elif self._has_room():
                self._note_gap()
                self._put(self._redactor.record(record), self._route(record))
            else:
                self._lost += 1
                self._counts.add(metrics.CAPTURE_DROPPED, ("queue_full",))
        except Exception:  # a capture never stops a stream, whatever is wrong with it
            logger.exception("a record could not be queued")

    def _has_room(self) -> bool:
        # Each counter has one thread that adds to it, so that no lock is needed to subtract them.
        records = self._put_records - self._writer.taken_records
        octets = self._put_bytes - self._writer.taken_bytes
        return records < self._limits.max_queue_records and octets < self._limits.max_queue_bytes

    def _put(self, record: Record, route: str) -> None:
        size = _size(record)
        self._put_records += 1
        self._put_bytes += size
        self._queue.put(Queued(record, self._wall_ns(), route, size))
        if self._put_records - self._writer.taken_records > self._limits.max_queue_records // 2:
            self._writer.hurry()

    def _note_gap(self) -> None:
        if not self._lost:
            return
        meta: dict[str, object] = {"count": self._lost, "reason": "queue_full"}
        self._lost = 0
        self._put(Record(time.monotonic_ns(), 0, 0, RecordKind.GAP, meta=meta), "")

    def _route(self, record: Record) -> str:
        number = record.exchange
        if record.kind is RecordKind.OPEN:
            self._routes[number] = str(record.meta.get("route", ""))
        elif record.kind is RecordKind.CLOSE and record.side is None:
            return self._routes.pop(number, "")
        return self._routes.get(number, "")


class _Writer:
    """The thread behind the queue."""

    def __init__(
        self,
        segments: SegmentWriter,
        source: "queue.SimpleQueue[Queued]",
        counts: Counts,
        limits: RecorderLimits,
    ) -> None:
        self.failed = False
        self.taken_records = self.taken_bytes = 0
        self._segments = segments
        self._queue = source
        self._counts = counts
        self._limits = limits
        self._synced_ns = 0
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="capture-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            logger.error("the capture is not written after %s s; its end is lost", timeout_s)

    def hurry(self) -> None:
        """Write now instead of at the next interval."""
        self._wake.set()

    def _run(self) -> None:
        self._attempt(self._segments.open)
        while not self._stopping:
            self._wake.wait(self._limits.write_ms / 1000)
            self._wake.clear()
            self._write_queued()
            if self._segments.dirty and not self.failed:
                self._sync_if_due()
        self._write_queued()
        self._attempt(self._segments.close)

    def _write_queued(self) -> None:
        while batch := self._take():
            blocks = [(record.kind, data) for record, data in self._encode(batch)]
            if blocks:
                self._append(blocks)
            self.taken_records += len(batch)
            self.taken_bytes += sum(queued.size for queued in batch)

    def _take(self) -> list[Queued]:
        batch: list[Queued] = []
        octets = 0
        while len(batch) < BATCH_RECORDS and octets < BATCH_BYTES:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
            octets += batch[-1].size
        return batch

    def _encode(self, batch: list[Queued]) -> Iterator[tuple[Record, bytes]]:
        for queued in batch:
            record = queued.record
            try:
                yield record, encode(StoredRecord.of(record, queued.wall_ns, queued.route))
            except (CaptureError, TypeError, ValueError, OverflowError) as error:
                logger.warning("a record of kind %s is not captured: %s", record.kind, error)
                self._counts.add(metrics.CAPTURE_DROPPED, ("unwritable",))

    def _append(self, blocks: list[tuple[RecordKind, bytes]]) -> None:
        data = b"".join(block for _, block in blocks)
        self._attempt(lambda: self._segments.append(data))
        if self.failed:
            self._counts.add(metrics.CAPTURE_DROPPED, ("disk",), len(blocks))
            return
        for kind, _ in blocks:
            self._counts.add(metrics.CAPTURE_RECORDS, (kind.value,))
        self._counts.add(metrics.CAPTURE_BYTES, (), len(data))

    def _sync_if_due(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns - self._synced_ns >= self._limits.sync_ms * NS_PER_MS:
            self._synced_ns = now_ns
            self._attempt(self._segments.sync)

    def _attempt(self, step: Callable[[], None]) -> None:
        """Do one thing to the disk; the first that fails ends the capture."""
        if self.failed:
            return
        try:
            step()
        except OSError as error:
            self.failed = True
            logger.error("the capture in %s ends: %s", self._segments.directory, error.strerror)
            with contextlib.suppress(OSError):
                self._segments.close()


def _size(record: Record) -> int:
    size = RECORD_OVERHEAD_BYTES
    if record.frame is not None:
        size += len(record.frame.wire)
    if record.sent:
        size += sum(len(frame.wire) for frame in record.sent)
    answer = record.meta.get("answer")
    if isinstance(answer, Answer):
        size += len(answer.body)
    return size
