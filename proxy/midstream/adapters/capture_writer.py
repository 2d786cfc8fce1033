"""The thread that writes a capture.

- Records come encoded, many at a time, so that this thread does little but wait for the disk: what
  it does under the interpreter lock, the streams wait for.
- A disk that fails, or has less free space than the floor, stops no stream. Records are counted
  until it takes them again, which is tried every few seconds; a `gap` says how many are missing.
- What is about to be written is searched for the secrets that were taken out of records: a record
  that still holds one is not written, and counted.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Literal

import msgspec

from midstream.adapters.capture_format import StoredRecord, encode, split
from midstream.adapters.capture_segments import DiskLow, SegmentWriter
from midstream.adapters.capture_selfcheck import SelfCheck
from midstream.core import metrics
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind

logger = logging.getLogger(__name__)

NS_PER_MS = 1_000_000


class Chunk:
    """Encoded records in one piece, and what kind each is of.

    What waits is few and large, so that the small memory of each record is used again at once.
    """

    __slots__ = ("data", "kinds")

    def __init__(self, data: bytes, kinds: list[RecordKind]) -> None:
        self.data, self.kinds = data, kinds


type Queue = queue.SimpleQueue[Chunk]


class WriterLimits(msgspec.Struct, frozen=True):
    """What may wait in memory, how soon it is on disk, and when a failed disk is tried again."""

    max_queue_records: int = 65_536
    max_queue_bytes: int = 64 << 20
    write_ms: int = 250
    sync_ms: int = 1_000
    retry_ms: int = 2_000


class Writer:
    """Takes records out of a queue and writes them. `check` knows the last secrets taken out."""

    def __init__(
        self,
        segments: SegmentWriter,
        source: Queue,
        counts: Counts,
        limits: WriterLimits,
        sync: Literal["none", "interval", "segment"],
        check: SelfCheck,
    ) -> None:
        self.failed = False
        self.taken_records = self.taken_bytes = 0
        self._segments = segments
        self._queue = source
        self._counts = counts
        self._limits = limits
        self._sync = sync
        self._check = check
        self._synced_ns = self._retry_ns = 0
        self._missing = 0
        self._reason = ""
        self._told = ""
        self._is_leak_told = False
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
            self._try_again()
            self._sync_if_due()
        self._write_queued()
        if not self.failed:
            self._attempt(lambda: self._segments.close(sync=self._sync != "none"))

    def _write_queued(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                chunk = self._queue.get_nowait()
                self._try_again()
                if self.failed:
                    self._drop(len(chunk.kinds))
                else:
                    self._write(chunk)
                self.taken_records += len(chunk.kinds)
                self.taken_bytes += len(chunk.data)

    def _write(self, chunk: Chunk) -> None:
        data, kinds = chunk.data, chunk.kinds
        if not self._check.is_clean(data):
            data, kinds = self._clean(chunk)
        if not self._attempt(lambda: self._segments.append(data)):
            self._drop(len(kinds))
            return
        for kind in RecordKind:
            if count := kinds.count(kind):
                self._counts.add(metrics.CAPTURE_RECORDS, (kind.value,), count)
        self._counts.add(metrics.CAPTURE_BYTES, (), len(data))

    def _clean(self, chunk: Chunk) -> tuple[bytes, list[RecordKind]]:
        """Leave out the records that still hold a secret."""
        both = zip(split(chunk.data), chunk.kinds, strict=True)
        left = [(block, kind) for block, kind in both if self._check.is_clean(block)]
        self._counts.add(metrics.CAPTURE_DROPPED, ("secret",), len(chunk.kinds) - len(left))
        if not self._is_leak_told:
            logger.error("a record still held a secret that was taken out of another: not written")
        self._is_leak_told = True
        return b"".join([block for block, _ in left]), [kind for _, kind in left]

    # --- a disk that fails ------------------------------------------------------------------------

    def _drop(self, count: int) -> None:
        self._missing += count
        self._counts.add(metrics.CAPTURE_DROPPED, (self._reason,), count)

    def _try_again(self) -> None:
        """Begin a new segment, which says how much is missing before it."""
        if not self.failed or time.monotonic_ns() < self._retry_ns:
            return
        if self._attempt(self._segments.open) and self._note_missing():
            self.failed = False
            self._told = ""
            logger.warning("the capture in %s goes on", self._segments.directory)

    def _note_missing(self) -> bool:
        if not self._missing:
            return True
        meta: dict[str, object] = {"count": self._missing, "reason": self._reason}
        gap = Record(time.monotonic_ns(), 0, 0, RecordKind.GAP, meta=meta)
        block = encode(StoredRecord.of(gap, time.time_ns()))
        if not self._attempt(lambda: self._segments.append(block)):
            return False
        self._missing = 0
        self._counts.add(metrics.CAPTURE_RECORDS, (RecordKind.GAP.value,))
        self._counts.add(metrics.CAPTURE_BYTES, (), len(block))
        return True

    def _sync_if_due(self) -> None:
        if self._sync != "interval" or self.failed or not self._segments.dirty:
            return
        now_ns = time.monotonic_ns()
        if now_ns - self._synced_ns >= self._limits.sync_ms * NS_PER_MS:
            self._synced_ns = now_ns
            self._attempt(self._segments.sync)

    def _attempt(self, step: Callable[[], None]) -> bool:
        """Do one thing to the disk, and tell whether it took it."""
        try:
            step()
        except (OSError, DiskLow) as error:
            self._fail(error)
            return False
        return True

    def _fail(self, error: OSError | DiskLow) -> None:
        self.failed = True
        self._reason = "disk_low" if isinstance(error, DiskLow) else "disk"
        if self._told != self._reason:
            text = str(error) if isinstance(error, DiskLow) else error.strerror
            logger.error("the capture in %s stops: %s", self._segments.directory, text)
            self._told = self._reason
        self._retry_ns = time.monotonic_ns() + self._limits.retry_ms * NS_PER_MS
        with contextlib.suppress(OSError):
            self._segments.close(sync=False)
