"""Opens a capture in whatever form it comes: segments, a browser's HAR, or mitmproxy flows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from midstream.adapters import capture_format
from midstream.adapters.capture_format import MAGIC, Damage, StoredRecord
from midstream.adapters.capture_har_read import read_har
from midstream.adapters.capture_mitm import read_flows
from midstream.adapters.capture_script import records_of
from midstream.core.errors import CaptureError

BOM = b"\xef\xbb\xbf"
SNIFFED_BYTES = 64


class Source(Protocol):
    """A capture to read, as often as needed; `damage` tells after that why it ended early."""

    @property
    def paths(self) -> tuple[Path, ...]: ...

    @property
    def damage(self) -> Damage | None: ...

    def __iter__(self) -> Iterator[StoredRecord]: ...


class Foreign:
    """A file of another tool, read whole."""

    def __init__(
        self, path: Path, records: list[StoredRecord], damage: Damage | None = None
    ) -> None:
        self.paths = (path,)
        self.damage = damage
        self._records = records

    def __iter__(self) -> Iterator[StoredRecord]:
        return iter(self._records)


def open_capture(path: Path | str) -> Source:
    """Open a capture. Raises CaptureError if it is missing, foreign or newer."""
    path = Path(path)
    start = _start_of(path) if path.is_file() else MAGIC
    if start.removeprefix(BOM).lstrip()[:1] == b"{":
        return Foreign(path, records_of(read_har(path)))
    if _is_tnetstring(start):
        scenes, damage = read_flows(path)
        records = records_of(scenes)
        if damage is not None:
            damage = msgspec.structs.replace(damage, whole=len(records))
        return Foreign(path, records, damage)
    return capture_format.read(path)


def _start_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SNIFFED_BYTES)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from None


def _is_tnetstring(start: bytes) -> bool:
    """Tell whether a file starts as mitmproxy's do: a length in digits and a colon."""
    length, colon, _ = start.partition(b":")
    return bool(colon) and length.isdigit()
