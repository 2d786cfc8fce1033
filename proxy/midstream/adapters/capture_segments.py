"""Writes the segment files of a capture. Blocks on the disk; raises OSError, DiskLow."""

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from midstream.adapters.capture_format import HEADER, segment_name, segments_in
from midstream.config.schema import CaptureTable
from midstream.core.errors import Error

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
FREE_CHECK_SECONDS: Final = 1.0


class DiskLow(Error):
    """There is less free space than the floor."""


class SegmentLimits(msgspec.Struct, frozen=True):
    """How large and how old a segment grows, how much there is of all, and how much stays free."""

    segment_bytes: int = 64 << 20
    segment_seconds: float = 3600.0
    total_bytes: int = 8 << 30
    min_free_bytes: int = 0
    syncs: bool = True

    @classmethod
    def of(cls, table: CaptureTable) -> Self:
        return cls(
            min(table.segment_bytes, table.total_bytes),
            table.segment_seconds,
            table.total_bytes,
            table.min_free_bytes,
            table.sync != "none",
        )


class SegmentWriter:
    """Appends whole records to NAME-000001.cap and its successors.

    A segment that has reached its size or age is closed before the next records are written. Then
    the oldest segments go, until all that is left of this capture and of earlier ones with names of
    the same form is within bounds. An open segment is locked: no process removes one that another
    writes. Numbers that are taken are passed over, never written to.
    """

    def __init__(self, directory: Path, name: str, limits: SegmentLimits) -> None:
        self.directory = directory
        self._name = name
        self._alike = re.compile(re.sub(r"\d+", r"\\d+", re.escape(name)) + r"-\d{6}\.cap")
        self._limits = limits
        self._fd = -1
        self._number = 0
        self._segment_bytes = 0
        self._opened_at = self._checked_at = 0.0
        self.dirty = False

    def open(self) -> None:
        """Make the directory where there is none, and begin the next segment."""
        if not self.directory.exists():
            self.directory.mkdir(parents=True, mode=DIRECTORY_MODE)
            self.directory.chmod(DIRECTORY_MODE)
        self._check_free(is_due=True)
        path = self._create()
        self._segment_bytes = 0
        self._opened_at = time.monotonic()
        try:
            self._write_whole(HEADER)
        except OSError:
            path.unlink(missing_ok=True)  # else every attempt on a full disk leaves an empty file
            raise
        if self._limits.syncs:
            self._sync_directory()
        self._remove_oldest()

    def parts(self, records: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        """Return records in parts, each to be appended before the next: as much as a segment has
        room for, at least one record.
        """
        first, size = 0, 0
        room = self._limits.segment_bytes - self._segment_bytes
        for number, record in enumerate(records):
            if size and size >= room:
                yield records[first:number]
                first, size, room = number, 0, self._limits.segment_bytes
            size += len(record)
        if first < len(records):
            yield records[first:]

    def append(self, records: bytes) -> None:
        """Write whole records, to a new segment if this one is full or old."""
        self._check_free(is_due=False)
        is_old = time.monotonic() - self._opened_at >= self._limits.segment_seconds
        has_records = self._segment_bytes > len(HEADER)
        if self._segment_bytes >= self._limits.segment_bytes or (is_old and has_records):
            self.close(sync=self._limits.syncs)
            self.open()
        self._write_whole(records)

    def sync(self) -> None:
        """Wait until what was written is on the disk itself."""
        os.fsync(self._fd)
        self.dirty = False

    def close(self, *, sync: bool) -> None:
        if self._fd < 0:
            return
        try:
            if sync and self.dirty:
                self.sync()
        finally:
            os.close(self._fd)
            self._fd = -1
            self.dirty = False

    def _create(self) -> Path:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        while True:
            self._number += 1
            path = self.directory / segment_name(self._name, self._number)
            with contextlib.suppress(FileExistsError):
                self._fd = os.open(path, flags, FILE_MODE)
                break
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path

    def _check_free(self, *, is_due: bool) -> None:
        now = time.monotonic()
        if not self._limits.min_free_bytes or (
            not is_due and now - self._checked_at < FREE_CHECK_SECONDS
        ):
            return
        self._checked_at = now
        free = shutil.disk_usage(self.directory).free
        if free < self._limits.min_free_bytes:
            raise DiskLow(
                f"{free:,} bytes are free, capture.min_free_bytes is "
                f"{self._limits.min_free_bytes:,}"
            )

    def _sync_directory(self) -> None:
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _remove_oldest(self) -> None:
        earlier = sorted(self._earlier())
        total = sum(size for _, _, size in earlier) + self._limits.segment_bytes
        for _, path, size in earlier:
            if total <= self._limits.total_bytes:
                return
            with contextlib.suppress(OSError):
                if _is_locked(path):
                    continue
                path.unlink()
                total -= size

    def _earlier(self) -> Iterator[tuple[float, Path, int]]:
        own = segment_name(self._name, self._number)
        for path in segments_in(self.directory):
            if path.name != own and self._alike.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    found = path.stat()
                    yield found.st_mtime, path, found.st_size

    def _write_whole(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            # What was written in part would end in a torn record: the file ends before it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._segment_bytes)
            raise
        self._segment_bytes += len(data)
        self.dirty = True


def _is_locked(path: Path) -> bool:
    """Tell whether some process writes to a segment. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(fd)
    return False
