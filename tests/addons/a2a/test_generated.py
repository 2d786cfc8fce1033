"""Thousands of generated streams: what the client has is the true text, once.

`MIDSTREAM_STREAMS=20000 uv run pytest tests/addons/a2a/test_generated.py` runs 20,000 of them;
without it 2,000, always the same. Two thirds are judged as they are, the rest with a server that is
known, or said, to be of one kind.
"""

import os
from collections import Counter

from tests.addons.a2a.client import Client, read
from tests.addons.a2a.events import Update
from tests.addons.a2a.judge import Outcome, begins_like_snapshots, judged, updates_of
from tests.addons.a2a.rig import SNAPSHOT, Rig
from tests.addons.a2a.streams import Stream, make

from midstream.core.frames import Frame

STREAMS = int(os.environ.get("MIDSTREAM_STREAMS", "2000"))
MAX_SHOWN = 8
CLEAN_KINDS = {"deltas", "hinted_deltas", "whole_once"}
CLEAN_ENDINGS = {"none", "different", "asks", "fails"}
SNAPSHOT_KINDS = ("snapshots", "replacing", "seed_then_full", "corrected")


def shown(outcomes: list[Outcome]) -> str:
    """Return the shortest failures, and how many there are of each kind of lane."""
    kinds = Counter("+".join(lane.kind for lane in one.stream.lanes) for one in outcomes)
    shortest = sorted(map(str, outcomes), key=len)[:MAX_SHOWN]
    return f"{len(outcomes)} streams, {dict(kinds.most_common(12))}\n" + "\n".join(shortest)


def test_nothing_is_lost_and_all_but_the_unknowable_is_shown_once():
    outcomes = [judged(Rig(), make(seed)) for seed in range(STREAMS * 2 // 3)]
    faulty = [one for one in outcomes if one.problems]
    lossy = [one for one in faulty if one.is_lossy]
    unknowable = [one for one in outcomes if one.unknowable]
    assert not lossy, f"lost text: {shown(lossy)}"
    assert not faulty, shown(faulty)
    assert len(unknowable) <= len(outcomes) / 1000, shown(unknowable)


def test_a_clean_delta_stream_leaves_byte_for_byte_without_a_trailer():
    seen = 0
    for seed in range(STREAMS // 12):
        stream = make(seed, "deltas")
        if stream.ending not in CLEAN_ENDINGS:
            continue
        outcome = judged(Rig(), stream)
        if outcome.unknowable or any(map(begins_like_snapshots, stream.lanes)):
            continue
        seen += 1
        assert by_lane(outcome.left) == by_lane(frames_of(stream, outcome)), str(outcome)
    assert seen > STREAMS / 48


def test_streams_of_a_server_that_is_said_to_send_deltas_keep_every_update():
    for seed in range(STREAMS // 12):
        stream = make(seed)
        rig = Rig((SNAPSHOT,), snapshot_to_delta={"stream": "delta"})
        outcome = judged(rig, stream)
        sent, left = updates_of(frames_of(stream, outcome)), updates_of(outcome.left)
        left = without_trailers(left, len(left) - len(sent))
        assert len(left) == len(sent), str(outcome)
        started: set[str] = set()
        for before, after in zip(sent, left, strict=True):
            assert facts(before) == facts(after), str(outcome)
            name = facts(before)[0]
            if name in started or not _appends(before):
                assert before.wire == after.wire, str(outcome)
            started.add(name)
            assert not (_appends(after) and name not in started), str(outcome)


def test_deltas_of_a_server_that_is_said_to_send_them_arrive_however_they_repeat():
    for seed in range(STREAMS // 12):
        stream = make(seed, "deltas")
        rig = Rig((SNAPSHOT,), snapshot_to_delta={"stream": "delta"})
        outcome = judged(rig, stream)
        assert outcome.client.texts == plain_truth(stream), str(outcome)


def test_snapshots_of_a_server_that_is_said_to_send_them_show_each_as_it_comes():
    for seed in range(STREAMS // 12):
        stream = make(seed, SNAPSHOT_KINDS[seed % len(SNAPSHOT_KINDS)])
        if stream.form.ending == "\r":  # its last event is not complete yet
            continue
        rig = Rig((SNAPSHOT,), snapshot_to_delta={"stream": "snapshot"})
        line = rig.stream(stream.form)
        client = Client()
        for event, wire in zip(stream.events, stream.wires(), strict=True):
            out = line.send(wire)
            client.takes(out)
            if isinstance(event, Update):
                assert len(out) <= 1, f"{stream}\n{client.log}"
                told = client.texts.get(event.artifact, "")
                assert told in (event.text, whole_tail(event.text)), f"{stream}\n{client.log}"
        line.ends()
        assert not rig.errors
        assert client.texts == plain_truth(stream), f"{stream}\n{client.log}"


def plain_truth(stream: Stream) -> dict[str, str]:
    """Return the text of each artifact without what only a final message tells."""
    return {lane.updates[0].artifact: lane.truth for lane in stream.lanes}


def whole_tail(text: str) -> str:
    """Return a snapshot without what may be half a character: that waits for the next one."""
    return (
        text.rstrip("\ufffd")
        if text[-1:] == "\ufffd"
        else (text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text)
    )


def frames_of(stream: Stream, outcome: Outcome) -> list[Frame]:
    model = outcome.left[0]
    return [Frame(model.sender, model.kind, wire) for wire in stream.wires()]


def by_lane(frames: list[Frame]) -> dict[str, list[bytes]]:
    """Return the bytes of each artifact in order, and of all that is no update: a frame that waits
    for the next of its artifact lets others pass.
    """
    found: dict[str, list[bytes]] = {}
    for frame in frames:
        event = read(frame)
        name = event[1]["artifact"]["artifactId"] if event and "artifact" in event[1] else ""
        found.setdefault(name, []).append(frame.wire)
    return found


def facts(frame: Frame) -> tuple[str, list[object]]:
    """Return the artifact of an update and its parts."""
    event = read(frame)
    assert event is not None
    return event[1]["artifact"]["artifactId"], event[1]["artifact"]["parts"]


def without_trailers(frames: list[Frame], count: int) -> list[Frame]:
    """Leave out up to `count` empty updates that only say that an artifact is complete."""
    kept = []
    for frame in reversed(frames):
        event = read(frame)
        assert event is not None
        text = "".join(part.get("text", "x") for part in event[1]["artifact"]["parts"])
        if count > 0 and not text and event[1].get("lastChunk"):
            count -= 1
        else:
            kept.append(frame)
    return kept[::-1]


def _appends(frame: Frame) -> bool:
    event = read(frame)
    return event is not None and bool(event[1].get("append"))
