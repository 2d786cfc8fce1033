import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from midstream.adapters.capture_format import StoredRecord, read
from midstream.adapters.capture_segments import SegmentWriter
from midstream.adapters.capture_writer import DROP_REASONS, Recorder, RecorderLimits
from midstream.core import metrics
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind

PATIENCE_S = 20


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
    recorder = Recorder(tmp_path / "new" / "captures", "c", counts)
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
    recorder = Recorder(tmp_path / "captures", "c", counts)
    recorder.start()
    recorder.stop()

    assert (tmp_path / "captures").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "captures" / "c-000001.cap").stat().st_mode & 0o777 == 0o600


def test_secrets_never_reach_the_disk_and_records_name_their_route(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = Recorder(tmp_path, "c", counts, redact=["authorization"])
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
    limits = RecorderLimits(max_queue_records=4, write_ms=1)
    recorder = Recorder(tmp_path, "c", counts, limits=limits)
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
    limits = RecorderLimits(max_queue_bytes=10_000)
    recorder = Recorder(tmp_path, "c", counts, limits=limits)
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
    limits = RecorderLimits(max_segment_bytes=2_000)
    recorder = Recorder(tmp_path, "c", counts, limits=limits)
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
    recorder = Recorder(tmp_path / "file" / "captures", "c", counts)
    recorder.start()
    eventually(lambda: not recorder.healthy)
    recorder.write(frame(1))
    recorder.stop()

    assert dropped(counts, "stopped") == 1
    assert "the capture in" in caplog.text


def test_a_full_disk_ends_the_capture_at_a_whole_record(
    tmp_path: Path, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    limits = RecorderLimits(write_ms=1)
    recorder = Recorder(tmp_path, "c", counts, limits=limits)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        recorder.start()
        for seq in range(1, 10_000):
            recorder.write(frame(seq, bytes(100)))
            if not recorder.healthy:
                break
        eventually(lambda: not recorder.healthy)
        recorder.write(frame(0))
        recorder.stop()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    kept = [record.seq for record in stored(tmp_path)]
    assert kept == list(range(1, len(kept) + 1))
    assert kept
    assert dropped(counts, "disk") > 0
    assert dropped(counts, "stopped") >= 1
    assert caplog.text.count("the capture in") == 1


def test_what_cannot_be_encoded_is_counted_and_the_next_record_is_written(
    tmp_path: Path, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(tmp_path, "c", counts)
    recorder.start()
    recorder.write(Record(1, 1, 1, RecordKind.CLOSE, meta={"what": object()}))
    recorder.write(frame(2))
    recorder.stop()

    assert [record.seq for record in stored(tmp_path)] == [2]
    assert dropped(counts, "unwritable") == 1
    assert "not captured" in caplog.text


def test_nothing_is_written_before_the_start_or_after_the_stop(
    tmp_path: Path, counts: Counts
) -> None:
    recorder = Recorder(tmp_path, "c", counts)
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
    Recorder(tmp_path, "c", counts)

    found = {labels for labels, _ in counts.samples(metrics.CAPTURE_DROPPED)}
    assert found >= {(reason,) for reason in DROP_REASONS}
    assert {labels for labels, _ in counts.samples(metrics.CAPTURE_RECORDS)} == {
        (kind.value,) for kind in RecordKind
    }
