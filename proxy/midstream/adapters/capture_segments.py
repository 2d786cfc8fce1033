"""Writes the segment files of a capture. Blocks on the disk, raises OSError."""

import contextlib
import os
from pathlib import Path
from typing import Final

from midstream.adapters.capture_format import HEADER, segment_name

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


class SegmentWriter:
    """Appends whole records to NAME-000001.cap and its successors.

    A segment that has reached `max_segment_bytes` is closed before the next records are written.
    Numbers that are taken are passed over, never written to.
    """

    def __init__(self, directory: Path, name: str, max_segment_bytes: int) -> None:
        self.directory = directory
        self._name = name
        self._max_segment_bytes = max_segment_bytes
        self._fd = -1
        self._number = 0
        self._segment_bytes = 0
        self.dirty = False

    def open(self) -> None:
        """Make the directory where there is none, and begin the next segment."""
        if not self.directory.exists():
            self.directory.mkdir(parents=True, mode=DIRECTORY_MODE)
            self.directory.chmod(DIRECTORY_MODE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        while self._fd < 0:
            self._number += 1
            path = self.directory / segment_name(self._name, self._number)
            with contextlib.suppress(FileExistsError):
                self._fd = os.open(path, flags, FILE_MODE)
        self._segment_bytes = 0
        self._write_whole(HEADER)

    def append(self, records: bytes) -> None:
        """Write whole records, to a new segment if this one is full."""
        if self._segment_bytes >= self._max_segment_bytes:
            self.close()
            self.open()
        self._write_whole(records)

    def sync(self) -> None:
        """Wait until what was written is on the disk itself."""
        os.fsync(self._fd)
        self.dirty = False

    def close(self) -> None:
        if self._fd < 0:
            return
        try:
            if self.dirty:
                self.sync()
        finally:
            os.close(self._fd)
            self._fd = -1

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
