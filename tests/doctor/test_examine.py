"""What doctor says of every capture of the corpus, of odd captures, and of several at once."""

import random
from pathlib import Path

import msgspec
import pytest
from tests.doctor.build import CLIENT, SERVER, Tape, chunk, delta, examine, faults, finding
from tests.doctor.test_agents import TEXTS, completed, played, update

from midstream import wiring
from midstream.adapters.capture_format import Damage, StoredRecord, read
from midstream.config import load
from midstream.core import metrics
from midstream.core.metrics import Counts
from midstream.core.ports import RecordKind
from midstream.doctor.examine import Doctor
from midstream.doctor.report import Level
from midstream.doctor.sums import Sums
from midstream.explaining import explain
from midstream.hosts.replay import replay

CAPTURES = Path(__file__).parents[1] / "captures"
ALL = sorted(CAPTURES.rglob("*.cap"))
SNAPSHOTS, FINAL = "snapshot-to-delta", "final-message-once"

CLEAN = {
    "adk2.13-legacysse.delta", "adk2.13-newnone.delta", "agentscope-runtime-1.1.6",
    "aichat-01-normal-turn", "aichat-07-two-tabs", "aisdk-chat", "aisdk-nostore",
    "aisdk-reason-anthropic", "aisdk-reason-store", "aisdk-store", "g4-default-ends-away",
    "sdk03-rpc03.delta", "sdk03-rpc03.final_task", "sdk03-rpc03.fresh_ids",
    "sdk03-rpc03.haha_delta", "sdk03-rpc03.status_delta",
    "sdk03-rpc03.status_snapshot_then_artifact", "sdk03-rpc03.unicode_delta",
    "sdk1-compat03.delta", "sdk1-compat03.final_task", "sdk1-rest03.delta", "sdk1-rest1.delta",
    "sdk1-rpc1.append_first", "sdk1-rpc1.delta", "sdk1-rpc1.final_task", "sdk1-rpc1.haha_delta",
    "sdk1-rpc1.input_required", "sdk1-rpc1.status_delta", "strands1.62-compliant.delta",
    "think-01-normal-turn",
    *(
        f"agentscope-java-{version}.{variant}"
        for version in ("1.0.12", "2.0.2")
        for variant in ("constant_id", "no_ids", "cut_emoji", "cut_emoji_ollama")
        if (version, variant) not in {("2.0.2", "no_ids")}
    ),
    "agentscope-java-2.0.2.no_ids",
}  # fmt: skip

EXPECTED = {
    "aichat-03-midcontinuation-reconnect": {"replay-overlap"},
    "think-02-compaction-then-turns": {"strip-compaction"},
    "think-06-natural-compaction-no-forced-broadcast": {"strip-compaction"},
    "aisdk-chat-inverted": {"history-order"},
    "agentscope-java-1.0.12.ollama_message": {SNAPSHOTS, FINAL},
    "sdk1-rpc1.final_message_multipart": {FINAL},
    "sdk1-rpc1.snapshot_append_true": {SNAPSHOTS},
    "sdk03-rpc03.mixed_delta_then_full": {SNAPSHOTS},
}


def name_of(path: Path) -> str:
    return path.name.removesuffix("-000001.cap")


def diagnosed(path: Path):
    doctor = Doctor(load(environ={}, needs_upstream=False), is_drawn=True)
    doctor.take(str(path), read(path))
    return doctor.report()


def observed(path: Path) -> dict[str, int]:
    """Return what observe mode counts by addon, by the metric."""
    counts = Counts()
    config = load(environ={}, needs_upstream=False)
    replay(read(path), wiring.engine(config, counts=counts, observe=True))
    found: dict[str, int] = {}
    for (_route, addon, _rule, _mode), value in counts.samples(metrics.REPAIRS):
        found[addon] = found.get(addon, 0) + int(value)
    return {addon: count for addon, count in found.items() if count}


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_a_capture_shows_what_observe_mode_counts(path: Path):
    report = diagnosed(path)
    assert faults(report) == observed(path)
    assert report.is_clean is (name_of(path) in CLEAN)
    if report.is_clean:
        assert all(one.level is Level.NOTE for one in report.findings)
    assert set(faults(report)) >= EXPECTED.get(name_of(path), set())
    assert all(fault.seen.mended == 0 for fault in report.faults)
    assert report.captures[0].problems == []
    frames = sum(len(talk.frames) for talk in report.talks)
    assert frames == report.captures[0].frames
    marked = sum(bool(frame.faults) for talk in report.talks for frame in talk.frames)
    assert bool(marked) is bool(report.faults)


def test_inverted_histories_have_the_pairs_of_the_metric():
    report = diagnosed(CAPTURES / "history/aisdk-store-inverted-000001.cap")
    [row] = report.pairs
    assert (row.requests, row.comparable, row.inverted, row.after) == (2, 4, 3, 0)
    assert (row.largest, row.largest_inverted) == (3, 2)
    assert row.rate == 0.75
    found = finding(report, "inverted-history")
    assert found is not None
    assert (found.seen.count, found.mends) == (3, "history-order")


def test_two_servers_with_the_same_paths_share_no_conversation():
    tape = played(update("one", append=False))
    tape.open(2, "/", headers=[["Content-Type", "application/json"]], upstream="http://other.test")
    report = examine(tape)
    assert [[lane.number for lane in talk.exchanges] for talk in report.talks] == [[1], [2]]


def test_what_was_mended_at_the_time_is_told():
    tape = Tape()
    tape.stream(1, "/", {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {}})
    tape.event(1, update("one ", append=False))
    tape.event(1, update("two"))
    sent = ((SERVER, "sse", b"data: {}\n\n"),)
    rules = ((FINAL, "final_message"),)
    tape.event(1, completed("one two"), sent=sent, rules=rules)
    tape.end(1)
    report = examine(tape, is_drawn=True)
    assert report.captures[0].was_mended
    assert [(fault.seen.mended, fault.seen.count) for fault in report.faults] == [(1, 1)]
    found = finding(report, "repeated-final")
    assert found is not None
    assert found.seen.mended == 1
    frame = report.talks[0].frames[-1]
    assert frame.faults == [f"{FINAL} final_message", "repeated-final"]
    assert frame.mended == [f"{FINAL} final_message"]
    assert frame.sent == len(b"data: {}\n\n")


def test_what_observe_mode_only_counted_at_the_time_is_not_called_mended():
    tape = played(update("one ", append=False), update("two"))
    tape.records = tape.records[:-2]
    tape.event(1, completed("one two"), rules=((FINAL, "final_message"),))
    tape.end(1)
    report = examine(tape)
    assert not report.captures[0].was_mended
    assert [(fault.seen.mended, fault.seen.count) for fault in report.faults] == [(0, 1)]


def test_a_frame_that_the_addon_declined_is_not_called_mended():
    tape = played(update("one ", append=False), update("two"))
    tape.records = tape.records[:-2]
    sent = ((SERVER, "sse", b""),)
    tape.event(1, {"x": 1}, sent=sent, rules=((FINAL, "final_message"),))
    tape.event(1, completed("one two"), skips=((FINAL, "not_editable"),))
    tape.end(1)
    [fault] = examine(tape).faults
    assert (fault.seen.mended, fault.seen.count) == (0, 1)


def test_captures_add_up_and_each_fault_knows_its_own():
    snapshots = [update(text, append=i > 0) for i, text in enumerate(TEXTS)]
    report = examine(played(*snapshots), played(*snapshots))
    [fault] = report.faults
    assert [place.capture for place in fault.seen.places] == [0, 1]
    assert [talk.faults for talk in report.talks] == [fault.seen.count // 2] * 2


def test_a_damaged_capture_is_read_up_to_the_byte_that_is_told():
    tape = played(update("one ", append=False), update("two"), completed("one two"))
    tape.damage = Damage(1234, "record is cut at 1 of 2 bytes", Path("x-000001.cap"))
    report = examine(tape)
    assert faults(report) == {FINAL: 1}
    assert report.captures[0].damage == (
        "x-000001.cap: damaged at byte 1234: record is cut at 1 of 2 bytes"
    )


def test_requests_that_quote_each_other_are_one_session():
    report = diagnosed(CAPTURES / "history/aisdk-chat-000001.cap")
    assert [len(talk.exchanges) for talk in report.talks] == [3]


def test_an_exchange_that_the_capture_does_not_end_stays_open():
    tape = Tape()
    tape.socket(1)
    tape.say(1, delta("R", "x"))
    [talk] = examine(tape).talks
    assert talk.exchanges[0].end_ms is None


def test_more_frames_than_a_page_can_show_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("midstream.doctor.talks.MAX_FRAMES", 3)
    tape = Tape()
    tape.socket(1)
    for number in range(5):
        tape.say(1, chunk("R", {"type": f"data-{number}"}))
    [talk] = examine(tape, is_drawn=True).talks
    assert (len(talk.frames), talk.left_out, talk.exchanges[0].frames) == (3, 2, 5)


def test_a_route_of_the_configuration_decides_which_addons_count(tmp_path: Path):
    file = tmp_path / "midstream.toml"
    file.write_text('[addon.final-message-once]\nmode = "off"\n')
    doctor = Doctor(load(str(file), environ={}, needs_upstream=False), is_given=True)
    doctor.take("x", played(update("one ", append=False), update("two"), completed("one two")))
    report = doctor.report()
    assert report.faults == []
    assert finding(report, "repeated-final") is not None


@pytest.mark.parametrize("seed", range(12))
def test_no_capture_is_too_broken_to_be_examined(seed: int):
    """Bytes, kinds, sides and meta are changed at random: doctor still reports."""
    rng = random.Random(seed)
    tape = Tape()
    paths = rng.sample(ALL, 4)
    tape.records = [broken(record, rng) for path in paths for record in read(path)]
    report = examine(tape, is_drawn=True)
    assert report.captures[0].records == len(tape.records)


def broken(record: StoredRecord, rng: random.Random) -> StoredRecord:
    roll = rng.random()
    if roll < 0.1 and record.data:
        at = rng.randrange(len(record.data))
        cut = record.data[:at] + bytes([rng.randrange(256)]) + record.data[at + rng.randrange(3) :]
        return msgspec.structs.replace(record, data=cut)
    if roll < 0.15:
        odd = {"status": "x", "headers": [["a"]], "count": "no", "reason": 7, "why": [1, [2]]}
        return msgspec.structs.replace(record, meta=odd)
    if roll < 0.2:
        return msgspec.structs.replace(record, kind=rng.choice(list(RecordKind)))
    if roll < 0.25:
        return msgspec.structs.replace(record, side=rng.choice([None, CLIENT, SERVER]))
    return record


def test_a_frame_says_what_was_done_with_it_as_capture_why_does():
    why = [[FINAL, "final_message", {"artifact": "a1"}]]
    rules, skips = ((FINAL, "final_message"),), ((FINAL, "hold_bound"),)
    tape = Tape()
    tape.stream(1, "/", {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {}})
    tape.event(1, completed("one"), sent=(), rules=rules, skips=skips, meta={"why": why})
    record = tape.records[-1]
    tape.end(1)
    frames = [frame for talk in examine(tape, is_drawn=True).talks for frame in talk.frames]
    said = next(frame.why for frame in frames if frame.seq == record.seq)
    assert said[:2] == explain(record.rules, record.skips, why)


def test_what_is_declined_for_every_addon_has_a_meaning_too():
    sums = Sums()
    sums.declined((FINAL, "hold_bound"))
    assert "left as they came" in sums.left_alone()[0].meaning


def test_a_fault_of_a_body_is_placed_at_its_frame_not_at_its_end():
    path = CAPTURES / "history/aisdk-chat-inverted-000001.cap"
    kinds = {(record.exchange, record.seq): record.kind for record in read(path)}
    report = diagnosed(path)
    for seen in (report.faults[0].seen, report.findings[0].seen):
        assert {kinds[place.exchange, place.seq] for place in seen.places} == {RecordKind.FRAME}


def test_a_proxy_that_was_started_again_begins_to_count_anew():
    faulty = (update("one ", append=False), update("two"), completed("one two"))
    tape = played(*faulty)
    tape.socket(2)  # the first run is killed: nothing ends this exchange
    played(update("a", append=False), completed(), tape=tape)
    played(*faulty, exchange=2, tape=tape)
    report = examine(tape)
    [fault] = report.faults
    assert [(place.shown, place.count) for place in fault.seen.places] == [(1, 1), (2, 1)]
    assert fault.seen.places[1].exchange != 2
    lanes = [[lane.shown for lane in talk.exchanges] for talk in report.talks]
    assert lanes == [[1, 1, 2], [2]]
