"""Opens a capture in whatever form it comes: segments, a browser's HAR, or mitmproxy flows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from midstream.adapters import capture_format
from midstream.adapters.capture_format import Damage, StoredRecord


class Source(Protocol):
    """A capture to read, as often as needed; `damage` tells after that why it ended early."""

    @property
    def paths(self) -> tuple[Path, ...]: ...

    @property
    def damage(self) -> Damage | None: ...

    def __iter__(self) -> Iterator[StoredRecord]: ...


def open_capture(path: Path | str) -> Source:
    """Open a capture. Raises CaptureError if it is missing, foreign or newer."""
    return capture_format.read(path)
