"""What is remembered stays bounded, however long a stream and however many artifacts it has."""

import gc
import tracemalloc

from tests.addons.a2a.client import Client
from tests.addons.a2a.events import Part, Status, Update
from tests.addons.a2a.forms import RPC03
from tests.addons.a2a.rig import Rig

from midstream.core import metrics

MIB = 1 << 20
ARTIFACTS = 1_500
FRAMES, FRAME_CHARS = 500, 64 << 10
STREAMS = 150


def held_bytes(rig: Rig) -> float:
    """Return how many bytes the conversations of a proxy are counted with."""
    return sum(value for _, value in rig.engine.counts.samples(metrics.CONVERSATION_BYTES))


def update(artifact: str, text: str, append: bool) -> bytes:
    return RPC03.wire(Update(artifact, (Part(text),), append))


def grown(work) -> float:
    """Return how many bytes some work leaves behind."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = work()
        gc.collect()
        current, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept is not None
    return current


def test_a_stream_of_many_artifacts_is_remembered_within_bounds():
    def work():
        rig = Rig(snapshot_to_delta={"max_text_bytes": MIB})
        line = rig.stream()
        for number in range(ARTIFACTS):
            line.send(update(f"artifact-{number}", f"{number} some words " * 1_000, False), 0)
            line.left.clear()
        return rig, line

    assert grown(work) < 6 * MIB < ARTIFACTS * 14_000


def test_one_artifact_of_many_megabytes_is_remembered_within_bounds():
    def work():
        rig = Rig()
        line = rig.stream()
        for number in range(FRAMES):
            text = f"{number} " + "words that differ " * (FRAME_CHARS // 18)
            wire = update("a1", text, number > 0)
            assert [frame.wire for frame in line.send(wire, 0)] == [wire]
            line.left.clear()
        return rig, line

    assert grown(work) < 32 * MIB


def test_snapshots_over_the_bound_lose_nothing():
    rig = Rig(snapshot_to_delta={"max_lane_bytes": 256 << 10})
    line = rig.stream()
    client, text = Client(), ""
    for number in range(40):
        text += f"{number} " + "words that differ " * 1_000
        client.takes(line.send(update("a1", text, number > 0)))
        line.left.clear()
    client.takes(line.send(RPC03.wire(Status("completed", final=True))))
    client.takes(line.ends())
    assert text in client.texts["a1"]
    assert rig.errors == 0


def test_conversations_of_ended_streams_are_counted_and_bounded():
    rig = Rig()
    for number in range(STREAMS):
        line = rig.stream()
        text = ""
        for piece in range(6):
            text += f"{number}-{piece} and some words. " * 200
            line.send(update(f"artifact-{number}", text, piece > 0), 0)
        line.send(RPC03.wire(Status("completed", final=True)))
        line.ends()
        assert held_bytes(rig) < 16 * MIB
    assert len(rig.engine.conversations) == 1
