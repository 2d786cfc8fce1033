import asyncio
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from midstream.adapters.capture_batch import Batches
from midstream.adapters.capture_format import StoredRecord, read
from midstream.adapters.capture_recorder import DROP_REASONS, Recorder
from midstream.adapters.capture_segments import SegmentWriter
from midstream.adapters.capture_writer import WriterLimits
from midstream.config.schema import CaptureTable
from midstream.core import metrics
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind

PATIENCE_S = 20


def recording(
    directory: Path, counts: Counts, *, limits: WriterLimits | None = None, **settings: Any
) -> Recorder:
    """Return a recorder of the capture `c`, on a disk of any size."""
    table = CaptureTable(**{"dir": str(directory), "min_free_bytes": 0, **settings})
    return Recorder(table, "c", counts, limits=limits)


def frame(seq: int, wire: bytes = b"payload", exchange: int = 1) -> Record:
    received = Frame(Side.SERVER, Kind.WS_TEXT, wire)
    return Record(seq, exchange, seq, RecordKind.FRAME, Side.SERVER, received)


def opened(exchange: int, route: str) -> Record:
    headers = (("Authorization", "Bearer s3cret"),)
    return Record(0, exchange, 1, RecordKind.OPEN, meta={"route": route, "headers": headers})


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def dropped(counts: Counts, reason: str) -> float:
    return counts.get(metrics.CAPTURE_DROPPED, (reason,))


def stored(directory: Path) -> list[StoredRecord]:
    reader = read(directory / "c")
    records = list(reader)
    assert reader.damage is None
    return records


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A disk that takes nothing until the event is set."""
    may_write = threading.Event()
    append = SegmentWriter.append

    def wait_and_append(self: SegmentWriter, records: bytes) -> None:
        assert may_write.wait(PATIENCE_S)
        append(self, records)

    monkeypatch.setattr(SegmentWriter, "append", wait_and_append)
    yield may_write
    may_write.set()


def test_records_are_on_disk_without_a_stop_and_in_order(tmp_path: Path, counts: Counts) -> None:
    recorder = recording(tmp_path / "new" / "captures", counts)
    recorder.start()
    for seq in range(1, 301):
        recorder.write(frame(seq))

    file = tmp_path / "new" / "captures" / "c-000001.cap"
    eventually(lambda: file.exists() and len(list(read(file))) == 300)
    recorder.stop()

    assert [record.seq for record in stored(file.parent)] == list(range(1, 301))
    assert counts.get(metrics.CAPTURE_RECORDS, ("frame",)) == 300
    assert counts.get(metrics.CAPTURE_BYTES) == file.stat().st_size - 16
    assert recorder.healthy


def test_files_and_directory_are_for_the_owner_alone(tmp_path: Path, counts: Counts) -> None:
    recorder = recording(tmp_path / "captures", counts)
    recorder.start()
    recorder.stop()

    assert (tmp_path / "captures").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "captures" / "c-000001.cap").stat().st_mode & 0o777 == 0o600


def test_secrets_never_reach_the_disk_and_records_name_their_route(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = recording(tmp_path, counts)
    recorder.start()
    recorder.write(opened(1, "chat"))
    recorder.write(opened(2, "agents"))
    recorder.write(frame(2, exchange=1))
    recorder.write(Record(3, 1, 3, RecordKind.CLOSE, Side.CLIENT))
    recorder.write(Record(4, 1, 4, RecordKind.CLOSE))
    recorder.write(frame(2, exchange=2))
    recorder.stop()

    assert b"s3cret" not in (tmp_path / "c-000001.cap").read_bytes()
    routes = [record.route for record in stored(tmp_path)]
    assert routes == ["chat", "agents", "chat", "chat", "chat", "agents"]


def test_a_full_queue_never_blocks_and_becomes_a_gap_where_records_are_missing(
    tmp_path: Path, counts: Counts, blocked: threading.Event
) -> None:
    limits = WriterLimits(max_queue_records=4, write_ms=1)
    recorder = recording(tmp_path, counts, limits=limits)
    recorder.start()
    for seq in range(1, 11):
        recorder.write(frame(seq))
    blocked.set()
    eventually(lambda: counts.get(metrics.CAPTURE_RECORDS, ("frame",)) == 4)
    recorder.write(frame(11))
    recorder.stop()

    records = stored(tmp_path)
    assert [record.seq for record in records] == [1, 2, 3, 4, 0, 11]
    assert records[4].kind is RecordKind.GAP
    assert records[4].meta == {"count": 6, "reason": "queue_full"}
    assert dropped(counts, "queue_full") == 6


def test_the_queue_is_bounded_in_bytes_and_a_stop_writes_the_gap(
    tmp_path: Path, counts: Counts, blocked: threading.Event
) -> None:
    limits = WriterLimits(max_queue_bytes=10_000)
    recorder = recording(tmp_path, counts, limits=limits)
    recorder.start()
    for seq in range(1, 6):
        recorder.write(frame(seq, bytes(6_000)))
    blocked.set()
    recorder.stop()

    kinds = [record.kind for record in stored(tmp_path)]
    assert kinds == [RecordKind.FRAME, RecordKind.FRAME, RecordKind.GAP]
    assert dropped(counts, "queue_full") == 3


def test_segments_rotate_by_size_and_read_as_one_capture(tmp_path: Path, counts: Counts) -> None:
    (tmp_path / "c-000002.cap").write_bytes(b"of someone else")
    recorder = recording(tmp_path, counts, segment_bytes=2_000)
    recorder.start()
    for seq in range(1, 200):
        recorder.write(frame(seq))
    recorder.stop()

    assert (tmp_path / "c-000002.cap").read_bytes() == b"of someone else"
    (tmp_path / "c-000002.cap").unlink()
    assert len(list(tmp_path.iterdir())) > 2
    assert [record.seq for record in stored(tmp_path)] == list(range(1, 200))


def test_a_directory_that_cannot_be_made_stops_the_capture_and_nothing_else(
    tmp_path: Path, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    recorder = recording(tmp_path / "file" / "captures", counts)
    recorder.start()
    eventually(lambda: not recorder.healthy)
    recorder.write(frame(1))
    recorder.stop()

    assert dropped(counts, "disk") == 1
    assert "the capture in" in caplog.text


def test_a_full_disk_stops_at_a_whole_record_and_goes_on_with_a_gap_when_there_is_room(
    tmp_path: Path, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    limits = WriterLimits(write_ms=1)
    recorder = recording(tmp_path, counts, limits=limits)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        recorder.start()
        for seq in range(1, 10_000):
            recorder.write(frame(seq, bytes(100)))
            if not recorder.healthy:
                break
        eventually(lambda: not recorder.healthy)
        eventually(lambda: dropped(counts, "disk") > 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for seq in range(20_000, 30_000):
        recorder.write(frame(seq))
        time.sleep(0.01)
        if recorder.healthy:
            break
    recorder.write(frame(30_000))
    recorder.stop()

    records = stored(tmp_path)
    kept = [record.seq for record in records]
    gap = kept.index(0)
    assert kept[:gap] == list(range(1, gap + 1))
    assert records[gap].kind is RecordKind.GAP
    assert records[gap].meta == {"count": dropped(counts, "disk"), "reason": "disk"}
    assert kept[gap + 1] >= 20_000
    assert caplog.text.count("stops: ") == 1
    assert caplog.text.count("goes on") == 1


def test_under_the_floor_of_free_space_nothing_is_written(
    tmp_path: Path, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = recording(tmp_path, counts, min_free_bytes=1 << 50)
    recorder.start()
    eventually(lambda: not recorder.healthy)
    recorder.write(frame(1))
    recorder.stop()

    assert list(tmp_path.iterdir()) == []
    assert dropped(counts, "disk_low") == 1
    assert "bytes are free, capture.min_free_bytes is" in caplog.text


def test_old_segments_rotate_and_the_oldest_of_all_go(tmp_path: Path, counts: Counts) -> None:
    old = tmp_path / "run-20250101-000000-7-000001.cap"
    old.write_bytes(bytes(90_000))
    (tmp_path / "mine-000001.cap").write_bytes(bytes(90_000))
    os.utime(old, (1, 1))
    limits = WriterLimits(write_ms=1)
    table = CaptureTable(
        dir=str(tmp_path), min_free_bytes=0, segment_bytes=70_000, total_bytes=150_000,
        segment_seconds=0.2,
    )  # fmt: skip
    recorder = Recorder(table, "run-20260101-000000-8", counts, limits=limits)
    recorder.start()
    for seq in range(1, 2_000):
        recorder.write(frame(seq, bytes(300)))
    eventually(lambda: counts.get(metrics.CAPTURE_RECORDS, ("frame",)) == 1_999)
    time.sleep(0.3)
    recorder.write(frame(2_000))  # to a new one, by age
    recorder.stop()

    assert not old.exists()
    assert (tmp_path / "mine-000001.cap").exists()
    left = sorted(tmp_path.glob("run-2026*.cap"))
    assert sum(path.stat().st_size for path in left) <= 150_000 + 70_000
    assert [record.seq for record in read(left[-1])] == [2_000]


# --- what is kept ---------------------------------------------------------------------------------


def exchange(
    number: int, *, rules: tuple[tuple[str, str], ...] = (), **end: object
) -> list[Record]:
    head = Record(0, number, 1, RecordKind.OPEN, meta={"route": "chat", "target": f"/{number}?x"})
    said = frame(2, exchange=number)
    mended = Record(3, number, 3, RecordKind.FRAME, Side.SERVER, said.frame, (), rules)
    return [head, said, mended, Record(4, number, 4, RecordKind.CLOSE, meta=dict(end))]


def exchanges_in(directory: Path) -> list[int]:
    return sorted({record.exchange for record in stored(directory)})


def captured(directory: Path, counts: Counts, *exchanges: list[Record], **table: Any) -> list[int]:
    recorder = recording(directory, counts, **table)
    recorder.start()
    for records in exchanges:
        for record in records:
            recorder.write(record)
    recorder.stop()
    return exchanges_in(directory)


def test_kept_are_the_mended_ones_with_what_came_before(tmp_path: Path, counts: Counts) -> None:
    kept = captured(
        tmp_path, counts, exchange(1), exchange(2, rules=(("a", "cut"),)), exchange(3),
        keep="mended",
    )  # fmt: skip
    assert kept == [2]
    assert [record.seq for record in stored(tmp_path)] == [1, 2, 3, 4]


def test_kept_are_the_failed_ones(tmp_path: Path, counts: Counts) -> None:
    broken = exchange(2, ending="aborted")
    refused = exchange(3, ending="complete")
    refused.insert(1, Record(1, 3, 9, RecordKind.HEADERS, Side.SERVER, meta={"status": 502}))
    kept = captured(
        tmp_path, counts, exchange(1, ending="complete"), broken, refused, keep="errors"
    )
    assert kept == [2, 3]


def test_a_ring_is_written_when_it_is_asked_for_and_not_before(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = recording(tmp_path, counts, keep="ring")
    recorder.start()
    for record in [*exchange(1), *exchange(2)]:
        recorder.write(record)
    assert counts.get(metrics.CAPTURE_RECORDS, ("frame",)) == 0
    assert recorder.write_ring() == 8
    assert recorder.write_ring() == 0
    recorder.stop()
    assert exchanges_in(tmp_path) == [1, 2]


def test_a_ring_keeps_to_its_bounds(tmp_path: Path, counts: Counts) -> None:
    recorder = recording(tmp_path, counts, keep="ring", ring_bytes=1 << 16)
    recorder.start()
    for number in range(1, 200):
        recorder.write(frame(number, bytes(2_000), exchange=number))
    assert 0 < recorder.write_ring() < 40
    recorder.stop()
    assert exchanges_in(tmp_path)[-1] == 199


def test_routes_paths_and_a_share_choose_whole_exchanges(tmp_path: Path, counts: Counts) -> None:
    some = [exchange(number) for number in range(1, 101)]
    assert captured(tmp_path / "a", counts, *some, routes=("other",)) == []
    assert captured(tmp_path / "b", counts, *some, paths=("/1*",)) == [1, *range(10, 20), 100]
    share = captured(tmp_path / "c", counts, *some, sample=0.3)
    assert 10 < len(share) < 60
    assert len(stored(tmp_path / "c")) == 4 * len(share)


def test_a_process_that_is_killed_leaves_everything_but_its_last_moment(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from midstream.adapters.capture_recorder import Recorder\n"
        "from midstream.config.schema import CaptureTable\n"
        "from midstream.core.frames import Frame, Kind, Side\n"
        "from midstream.core.metrics import Counts\n"
        "from midstream.core.ports import Record, RecordKind\n"
        "recorder = Recorder(CaptureTable(dir=sys.argv[1], min_free_bytes=0), 'c', Counts())\n"
        "recorder.start()\n"
        "for seq in range(1, 10**9):\n"
        "    frame = Frame(Side.SERVER, Kind.WS_TEXT, b'x' * (seq % 3000))\n"
        "    recorder.write(Record(seq, 1, seq, RecordKind.FRAME, Side.SERVER, frame))\n"
        "    if seq % 50 == 0:\n"
        "        print(seq, flush=True)\n"
        "        time.sleep(0.005)\n"
    )
    for number in range(4):
        folder = tmp_path / str(number)
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder)], stdout=subprocess.DEVNULL
        )
        time.sleep(1.0 + 0.13 * number)
        process.kill()
        process.wait(30)
        seqs = [record.seq for record in read(folder / "c")]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) > 100


def test_cut_at_any_byte_everything_before_is_read(tmp_path: Path, counts: Counts) -> None:
    recorder = recording(tmp_path, counts)
    recorder.start()
    for seq in range(1, 301):
        recorder.write(frame(seq, bytes(seq % 97)))
    recorder.stop()
    path = tmp_path / "c-000001.cap"
    whole = path.read_bytes()
    ends = [16]
    while ends[-1] < len(whole):
        ends.append(ends[-1] + 8 + int.from_bytes(whole[ends[-1] : ends[-1] + 4], "little"))
    for size in random.Random(5).sample(range(16, len(whole)), 200):
        path.write_bytes(whole[:size])
        reader = read(path)
        before = sum(end <= size for end in ends) - 1
        assert len(list(reader)) == before
        assert (reader.damage is None) is (size in ends)
        assert reader.damage is None or reader.damage.offset == ends[before]


def test_what_cannot_be_encoded_is_counted_and_the_next_record_is_written(
    tmp_path: Path, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = recording(tmp_path, counts)
    recorder.start()
    recorder.write(Record(1, 1, 1, RecordKind.HEADERS, meta={"what": object()}))
    recorder.write(frame(2))
    recorder.stop()

    assert [record.seq for record in stored(tmp_path)] == [2]
    assert dropped(counts, "unwritable") == 1
    assert "not captured" in caplog.text


def test_nothing_is_written_before_the_start_or_after_the_stop(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = recording(tmp_path, counts)
    recorder.stop()
    recorder.write(frame(1))
    recorder.start()
    recorder.write(frame(2))
    recorder.stop()
    recorder.stop()
    recorder.write(frame(3))

    assert [record.seq for record in stored(tmp_path)] == [2]
    assert dropped(counts, "stopped") == 2


def test_every_series_of_the_capture_exists_from_the_start(tmp_path: Path, counts: Counts) -> None:
    recording(tmp_path, counts)

    found = {labels for labels, _ in counts.samples(metrics.CAPTURE_DROPPED)}
    assert found >= {(reason,) for reason in DROP_REASONS}
    assert {labels for labels, _ in counts.samples(metrics.CAPTURE_RECORDS)} == {
        (kind.value,) for kind in RecordKind
    }


# --- in a loop, and when things go wrong ----------------------------------------------------------


async def test_in_a_loop_records_are_queued_together_a_moment_later(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = recording(tmp_path, counts)
    recorder.start()
    for seq in range(1, 4_001):
        recorder.write(frame(seq, bytes(seq % 50)))
    await asyncio.sleep(0)
    file = tmp_path / "c-000001.cap"
    deadline = time.monotonic() + PATIENCE_S
    while not file.exists() or len(list(read(file))) < 4_000:
        assert time.monotonic() < deadline, "not all was written without a stop"
        await asyncio.sleep(0.01)
    recorder.write(frame(4_001))
    recorder.stop()
    assert [record.seq for record in stored(tmp_path)] == list(range(1, 4_002))


async def test_wall_time_is_that_of_the_record_and_not_of_the_write(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = recording(tmp_path, counts)
    recorder.start()
    began_ns = time.time_ns()
    made = time.monotonic_ns()
    recorder.write(Record(made, 1, 1, RecordKind.CLOSE))
    recorder.write(Record(made - 5_000_000_000, 1, 2, RecordKind.CLOSE))
    recorder.stop()
    first, second = stored(tmp_path)
    assert first.wall_ns - second.wall_ns == 5_000_000_000
    assert abs(first.wall_ns - began_ns) < 2_000_000_000


def test_what_goes_wrong_before_the_queue_is_counted_and_told_once(
    tmp_path: Path,
    counts: Counts,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = recording(tmp_path, counts)
    recorder.start()
    with monkeypatch.context() as patch:
        patch.setattr(Batches, "encoded", lambda *_: 1 / 0)
        recorder.write(frame(1))
        recorder.write(frame(2))
    recorder.write(frame(3))
    recorder.stop()
    assert [record.seq for record in stored(tmp_path)] == [3]
    assert dropped(counts, "unwritable") == 2
    assert caplog.text.count("records are not captured") == 1


def test_a_record_that_still_holds_a_secret_is_not_written_and_the_others_are(
    tmp_path: Path, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = recording(tmp_path, counts)
    recorder.start()
    secret = "Zx81qPlain0word77"
    head = (("Authorization", f"Bearer {secret}"),)
    recorder.write(Record(1, 1, 1, RecordKind.OPEN, meta={"route": "chat", "headers": head}))
    for seq in range(2, 50):
        recorder.write(frame(seq, b"it is Bearer " + secret.encode() if seq == 20 else b"fine"))
        recorder.write(frame(seq + 100, secret.encode() if seq == 30 else b"fine"))
    recorder.stop()
    assert secret.encode() not in (tmp_path / "c-000001.cap").read_bytes()
    assert len(stored(tmp_path)) + dropped(counts, "secret") == 97
    assert dropped(counts, "secret") <= 1


def test_a_disk_with_room_again_is_used_again_without_any_traffic(
    tmp_path: Path, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [0]
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=free[0]))
    limits = WriterLimits(write_ms=1, retry_ms=20)
    recorder = recording(tmp_path, counts, limits=limits, min_free_bytes=1_000)
    recorder.start()
    eventually(lambda: not recorder.healthy)
    for seq in range(1, 6):
        recorder.write(frame(seq))
    eventually(lambda: dropped(counts, "disk_low") == 5)
    free[0] = 2_000
    eventually(lambda: recorder.healthy)
    recorder.write(frame(6))
    recorder.stop()
    gap, after = stored(tmp_path)
    assert (gap.kind, gap.meta) == (RecordKind.GAP, {"count": 5, "reason": "disk_low"})
    assert after.seq == 6


def test_what_was_let_go_of_before_a_mend_is_a_gap_behind_the_head(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = recording(tmp_path, counts, keep="mended", ring_bytes=1 << 16)
    recorder.start()
    head, *_ = exchange(1)
    recorder.write(head)
    for seq in range(2, 102):
        recorder.write(frame(seq, bytes(2_000)))
    mended = frame(102)
    mended.rules = (("a", "cut"),)
    recorder.write(mended)
    recorder.write(frame(103))
    recorder.stop()
    records = stored(tmp_path)
    assert [record.kind for record in records[:2]] == [RecordKind.OPEN, RecordKind.GAP]
    seqs = [record.seq for record in records[2:]]
    assert seqs == list(range(seqs[0], 104))
    assert records[1].meta == {"count": seqs[0] - 2, "reason": "ring"}
    assert records[1].exchange == 1


def test_memory_stays_flat_while_a_hundred_thousand_frames_are_captured(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = recording(tmp_path, counts, segment_bytes=1 << 20, total_bytes=2 << 20)
    recorder.start()
    tracemalloc.start()
    peaks: list[int] = []
    try:
        for number in range(10):
            for record in exchange(number):
                recorder.write(record)
            for seq in range(10_000):
                recorder.write(frame(seq, b"some text", exchange=100 + number))
            recorder.write(Record(1, 100 + number, 10_000, RecordKind.CLOSE))
            eventually(lambda: not any(recorder._queued()))
            peaks.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        recorder.stop()
    assert dropped(counts, "queue_full") == 0
    assert peaks[-1] < peaks[1] + (256 << 10)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 3 << 20
