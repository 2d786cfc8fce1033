"""The looks at streams of any kind: broken off, silent, missing in the capture."""

from tests.doctor.build import SERVER, Tape, examine, finding

from midstream.core.frames import Kind
from midstream.core.ports import RecordKind
from midstream.doctor.report import Level
from midstream.doctor.streams import NS_PER_S, STALL_SECONDS


def test_what_was_broken_off_is_told_by_side_and_code_and_is_no_fault():
    tape = Tape()
    tape.socket(1)
    tape.break_off(1, side="server", code=1006)
    tape.stream(2)
    tape.break_off(2, error="reset")
    report = examine(tape)
    found = finding(report, "broken-off")
    assert found is not None
    assert found.detail == "server 1006: 1, reset: 1"
    assert (found.level, found.mends) == (Level.NOTE, "")
    assert report.is_clean


def test_a_silence_of_thirty_seconds_is_a_stall_and_a_comment_does_not_end_it():
    tape = Tape()
    tape.stream(1)
    tape.event(1, {"type": "x"})
    for _ in range(3):
        tape.now_ns += (STALL_SECONDS // 2) * NS_PER_S
        tape.add(1, RecordKind.FRAME, SERVER, frame=Kind.SSE, data=b": ping\n\n")
    tape.event(1, {"type": "y"})
    tape.end(1)
    found = finding(examine(tape), "stalled")
    assert found is not None
    assert (found.seen.count, found.detail) == (1, "the longest for 45 s")


def test_a_stream_that_goes_on_in_time_does_not_stall():
    tape = Tape()
    tape.stream(1)
    for _ in range(4):
        tape.now_ns += (STALL_SECONDS - 1) * NS_PER_S
        tape.event(1, {"type": "x"})
    tape.end(1)
    assert finding(examine(tape), "stalled") is None


def test_a_socket_may_be_silent_for_as_long_as_it_likes():
    tape = Tape()
    tape.socket(1)
    tape.now_ns += 10 * STALL_SECONDS * NS_PER_S
    tape.end(1)
    assert not examine(tape).findings


def test_missing_records_are_counted_by_reason():
    tape = Tape()
    tape.socket(1)
    tape.add(0, RecordKind.GAP, meta={"count": 40, "reason": "queue_full"})
    tape.add(0, RecordKind.GAP, meta={"count": 2, "reason": "disk"})
    report = examine(tape)
    found = finding(report, "gap")
    assert found is not None
    assert (found.seen.count, found.detail) == (42, "queue_full: 40, disk: 2")
    assert report.captures[0].problems == []
