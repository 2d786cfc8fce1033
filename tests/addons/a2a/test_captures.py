"""What real servers sent, through both repairs: the true text once, and nothing else touched.

The table is that of tests/captures/README.md, in figures: which text each artifact must have in the
end, in the order in which the artifacts come, and whether the bytes may change at all.
"""

from pathlib import Path

import pytest
from tests.addons.a2a.client import Client, read
from tests.addons.a2a.rig import BOTH, MS, Rig

from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_format import read as read_capture
from midstream.core.addon import Mode
from midstream.core.frames import Frame, Side
from midstream.core.ports import RecordKind
from midstream.hosts.replay import replay

CAPTURES = Path(__file__).parents[2] / "captures" / "a2a"
FULL = "Hi Mira, which region should I query?"
FAMILY = "\U0001f468\u200d\U0001f469 cafe\u0301 \u4f60\u597d"
CHUNKS = ("Hi ", "Mira, which ", "region should I query?")

UNTOUCHED: dict[str, tuple[str, ...]] = {
    "adk2.13-newnone.delta": (FULL,),
    "adk2.13-legacysse.delta": (FULL,),
    "agentscope-runtime-1.1.6": (),
    "sdk03-rpc03.delta": (FULL,),
    "sdk03-rpc03.fresh_ids": CHUNKS,
    "sdk03-rpc03.haha_delta": ("hahahanono",),
    "sdk03-rpc03.final_task": (FULL,),
    "sdk03-rpc03.status_delta": (),
    "sdk03-rpc03.status_snapshot_then_artifact": (FULL,),
    "sdk03-rpc03.unicode_delta": (FAMILY,),
    "sdk1-compat03.delta": (FULL,),
    "sdk1-compat03.final_task": (FULL,),
    "sdk1-rest03.delta": (FULL,),
    "sdk1-rest1.delta": (FULL,),
    "sdk1-rpc1.append_first": (),
    "sdk1-rpc1.delta": (FULL,),
    "sdk1-rpc1.final_task": (FULL,),
    "sdk1-rpc1.haha_delta": ("hahahanono",),
    "sdk1-rpc1.input_required": ("Found 3 regions. ",),
    "sdk1-rpc1.status_delta": (),
    "strands1.62-compliant.delta": (FULL,),
}
MENDED: dict[str, tuple[str, ...]] = {
    "adk2.13-newsse.delta": (FULL,),
    "fasta2a-2.1.1": (FULL,),
    "sdk03-rpc03.adk_replace_final": (FULL,),
    "sdk03-rpc03.final_message_multipart": (FULL,),
    "sdk03-rpc03.interleaved": ("one two three", "ABC"),
    "sdk03-rpc03.mixed_delta_then_full": (FULL,),
    "sdk03-rpc03.snapshot_append_false": (FULL,),
    "sdk03-rpc03.snapshot_append_true": (FULL,),
    "sdk1-compat03.adk_replace_final": (FULL,),
    "sdk1-compat03.mixed_seed": (FULL,),
    "sdk1-rpc1.final_message_multipart": (FULL,),
    "sdk1-rpc1.mixed_delta_then_full": (FULL,),
    "sdk1-rpc1.mixed_seed": (FULL,),
    "sdk1-rpc1.snapshot_append_false": (FULL,),
    "sdk1-rpc1.snapshot_append_true": (FULL,),
    "sdk1-rpc1.snapshot_rewrite": (FULL,),
}
PROMPTS = {"sdk1-rpc1.input_required": "Which one?"}

AGENTSCOPE = ("1.0.12", "2.0.2")
GREETING = "👋 你好 米拉。请先告诉我要查询哪个区域"
LOOK = "Let me look. There are two: north and south."
BROKEN = "你好?? 米拉。哪个区域"
WHOLE = "你好👋 米拉。哪个区域"
AGENTSCOPE_UNTOUCHED = {
    "constant_id": FULL,
    "cut_emoji": BROKEN,  # the server itself has made question marks of the halves
    "cut_emoji_ollama": BROKEN + WHOLE,  # so its whole text is no repeat that anyone could prove
    "no_ids": FULL,
}
AGENTSCOPE_MENDED = {
    "chinese_ollama_message": GREETING,
    "chinese_snapshots": GREETING,
    "constant_id_message": FULL,
    "last_chunk_without_id": FULL,
    "last_chunk_without_id_message": FULL,
    "no_ids_message": FULL,
    "ollama": FULL,
    "ollama_message": FULL,
    "react_inner_message": LOOK,
    "react_message": LOOK,
    "react_ollama_message": LOOK,
    "react_snapshots_message": LOOK,
    "snapshots": FULL,
    "snapshots_message": FULL,
    "thinking_ollama": "The user is looking for a region. Hi Mira, which region?",
}
for version in AGENTSCOPE:
    for table, scenarios in ((UNTOUCHED, AGENTSCOPE_UNTOUCHED), (MENDED, AGENTSCOPE_MENDED)):
        for scenario, text in scenarios.items():
            table[f"agentscope-java-{version}.{scenario}"] = (text,)
DUPLICATED = (  # what an appending client shows twice of, without a proxy
    "sdk03-rpc03.final_message_multipart",
    "sdk03-rpc03.interleaved",
    "sdk03-rpc03.mixed_delta_then_full",
    "sdk03-rpc03.snapshot_append_true",
    "sdk1-compat03.mixed_seed",
    "sdk1-rpc1.final_message_multipart",
    "sdk1-rpc1.mixed_delta_then_full",
    "sdk1-rpc1.mixed_seed",
    "sdk1-rpc1.snapshot_append_true",
    "sdk1-rpc1.snapshot_rewrite",
)
TRUTH = UNTOUCHED | MENDED
NAMES = sorted(path.name.removesuffix("-000001.cap") for path in CAPTURES.glob("*.cap"))


def records(name: str) -> list[StoredRecord]:
    return list(read_capture(CAPTURES / f"{name}-000001.cap"))


def came(found: list[StoredRecord]) -> list[Frame]:
    """Return the frames that the server sent."""
    return [
        record.received
        for record in found
        if record.kind is RecordKind.FRAME
        and record.side is Side.SERVER
        and record.received is not None
    ]


def left(rig: Rig, name: str) -> list[Frame]:
    result = replay(records(name), rig.engine)
    assert not result.problems
    return result.frames(1, Side.SERVER)


def octets(frames: list[Frame]) -> bytes:
    return b"".join(frame.wire for frame in frames)


def test_the_table_has_every_capture():
    assert sorted(TRUTH) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_client_has_the_true_text_once(name):
    rig = Rig()
    client = Client().takes(left(rig, name))
    assert tuple(client.texts.values()) == TRUTH[name], client.log
    assert client.shown == "".join(TRUTH[name]), client.log
    assert client.violations == []
    assert client.status == PROMPTS.get(name, client.status)
    assert rig.errors == 0


@pytest.mark.parametrize("name", NAMES)
def test_events_that_are_no_updates_leave_in_their_order_and_no_name_changes(name):
    before, after = Client().takes(came(records(name))), Client().takes(left(Rig(), name))
    assert after.others == before.others
    assert after.names <= before.names


@pytest.mark.parametrize("name", sorted(UNTOUCHED))
def test_what_needs_no_mending_leaves_byte_for_byte(name):
    rig = Rig()
    assert octets(left(rig, name)) == octets(came(records(name)))
    assert not rig.repairs


@pytest.mark.parametrize("name", sorted(MENDED))
def test_what_is_mended_is_counted_and_only_its_own_frames_change(name):
    rig = Rig()
    sent = {frame.wire for frame in came(records(name))}
    changed = [frame for frame in left(rig, name) if frame.wire not in sent]
    assert rig.repairs
    for frame in changed:
        event = read(frame)
        assert event is not None
        assert event[0] in ("artifact-update", "status-update"), event


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.OFF])
def test_observing_passes_every_byte(name, mode):
    rig = Rig(mode=mode)
    assert octets(left(rig, name)) == octets(came(records(name)))
    assert bool(rig.repairs) == (mode is Mode.OBSERVE and name in MENDED)


@pytest.mark.parametrize("name", sorted(DUPLICATED))
def test_without_a_proxy_such_a_client_shows_text_twice(name):
    shown = Client().takes(came(records(name))).shown
    assert len(shown) > len("".join(TRUTH[name]))


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_is_said_to_send_deltas_keeps_every_text(name):
    rig = Rig(BOTH[:1], snapshot_to_delta={"stream": "delta"})
    before, after = came(records(name)), left(rig, name)
    if name != "fasta2a-2.1.1":  # its first update appends to nothing
        assert octets(after) == octets(before)
    assert Client().takes(after).texts == Client().takes(before).texts


def test_the_replay_has_its_own_clock():
    found = records("sdk03-rpc03.haha_delta")
    assert found[-1].mono_ns - found[0].mono_ns < 10_000 * MS
