import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from midstream.adapters.capture_format import HEADER
from midstream.adapters.capture_segments import SegmentLimits, SegmentWriter

RECORD = bytes(10_000)


def full(writer: SegmentWriter, records: int) -> None:
    writer.open()
    for _ in range(records):
        writer.append(RECORD)
    writer.close(sync=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_oldest_of_earlier_starts_go_and_foreign_captures_stay(tmp_path: Path):
    limits = SegmentLimits(segment_bytes=50_000, total_bytes=120_000)
    full(SegmentWriter(tmp_path, "run-20260101-000000-11", limits), 4)
    for other in ("run-mine", "mitm-20260101-000000-11", "run-20260101-000000"):
        full(SegmentWriter(tmp_path, other, limits), 4)
    full(SegmentWriter(tmp_path, "run-20260102-000000-222", limits), 16)
    kept = names(tmp_path)
    assert not [name for name in kept if name.startswith("run-20260101-000000-11")]
    assert "run-20260102-000000-222-000001.cap" not in kept
    assert len([name for name in kept if name.startswith("run-20260102")]) == 2
    for other in ("run-mine", "mitm-20260101-000000-11", "run-20260101-000000"):
        assert f"{other}-000001.cap" in kept


def test_a_segment_that_another_process_writes_is_never_removed(tmp_path: Path):
    limits = SegmentLimits(segment_bytes=50_000, total_bytes=60_000)
    busy = SegmentWriter(tmp_path, "run-20260101-000000-11", limits)
    busy.open()
    busy.append(RECORD)
    os.utime(tmp_path / "run-20260101-000000-11-000001.cap", (1, 1))
    full(SegmentWriter(tmp_path, "run-20260101-000000-12", limits), 20)
    assert "run-20260101-000000-11-000001.cap" in names(tmp_path)
    busy.close(sync=False)
    full(SegmentWriter(tmp_path, "run-20260101-000000-13", limits), 1)
    assert "run-20260101-000000-11-000001.cap" not in names(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)],
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(writer: SegmentWriter) -> int:
    """Append until the disk takes no more, and return how many records it took."""
    for count in range(100):
        try:
            writer.append(RECORD)
        except OSError:
            return count
    raise AssertionError("the disk is not small")


def test_a_full_disk_leaves_whole_records_and_no_empty_files(small_disk: Path):
    filler = small_disk / "filler"
    filler.write_bytes(bytes(40 << 10))
    writer = SegmentWriter(small_disk, "c", SegmentLimits())
    writer.open()
    written = fill(writer)
    writer.close(sync=False)
    assert (small_disk / "c-000001.cap").stat().st_size == len(HEADER) + written * len(RECORD)
    with (small_disk / "rest").open("wb", buffering=0) as rest, contextlib.suppress(OSError):
        while rest.write(bytes(4096)):
            pass
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            writer.open()
        writer.close(sync=False)
    assert names(small_disk) == ["c-000001.cap", "filler", "rest"]
    filler.unlink()
    writer.open()
    writer.append(RECORD)
    writer.close(sync=True)
    assert names(small_disk) == ["c-000001.cap", "c-000005.cap", "rest"]
