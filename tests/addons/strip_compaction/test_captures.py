"""What real servers and clients said, through the repair: Think is mended, nothing else touched."""

import json

import pytest
from tests.addons.strip_compaction.rig import CAPTURES, CLIENT, Played, Rig, ids, play

from midstream.core.addon import Mode

COMPACTED = (
    ("think-02-compaction-then-turns", 3, 3),
    ("think-06-natural-compaction-no-forced-broadcast", 1, 1),
)
NAMES = sorted(
    str(path.relative_to(CAPTURES)).removesuffix("-000001.cap")
    for path in CAPTURES.rglob("*-000001.cap")
)


def without_summaries(played: Played) -> bytes:
    """Return an upload with the text of its synthetic messages taken out, by searching for it."""
    wire = played.came.wire.decode()
    body = played.message["init"]["body"]
    for message in json.loads(body)["messages"]:
        if message["id"].startswith("compaction_"):
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            assert body.count(text) == 1
            wire = wire.replace(json.dumps(text, ensure_ascii=False)[1:-1] + ",", "")
    return wire.encode()


@pytest.mark.parametrize(("name", "uploads", "lists"), COMPACTED)
def test_uploads_after_a_compaction_leave_without_what_the_server_made_up(name, uploads, lists):
    rig = Rig()
    played = play(rig, name)
    sent = [frame for frame in played if frame.is_upload]
    assert [frame.left.wire for frame in sent] == [without_summaries(frame) for frame in sent]
    assert sum(frame.left.wire != frame.came.wire for frame in sent) == uploads
    assert all(b"compaction_" not in frame.left.wire for frame in sent)
    assert rig.repairs == {"synthetic_message": uploads, "repeated_message": lists}
    assert rig.skips == {}


@pytest.mark.parametrize(("name", "uploads", "lists"), COMPACTED)
def test_lists_of_a_polluted_chat_show_every_message_once_and_lose_none(name, uploads, lists):
    changed = 0
    for frame in play(Rig(), name):
        if frame.came.sender is CLIENT or b"cf_agent_chat_messages" not in frame.came.wire:
            assert frame.is_upload or frame.left.wire == frame.came.wire
            continue
        before = ids(frame.message["messages"])
        after = ids(json.loads(frame.left.wire)["messages"])
        assert after == list(dict.fromkeys(before))
        changed += before != after
    assert changed == lists


@pytest.mark.parametrize(("name", "uploads", "lists"), COMPACTED)
def test_observing_counts_the_same_and_changes_nothing(name, uploads, lists):
    rig = Rig(Mode.OBSERVE)
    assert all(frame.left.wire == frame.came.wire for frame in play(rig, name))
    assert rig.repairs == {"synthetic_message": uploads, "repeated_message": lists}


@pytest.mark.parametrize("name", [n for n in NAMES if n not in {case[0] for case in COMPACTED}])
def test_traffic_without_a_compaction_leaves_as_it_came(name):
    rig = Rig()
    assert all(frame.left.wire == frame.came.wire for frame in play(rig, name))
    assert (rig.repairs, rig.skips, rig.errors) == ({}, {}, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_traffic_of_a_real_server_shows_which_kind_it_is(name):
    rig = Rig()
    play(rig, name)
    is_think = name.startswith("think")
    assert (rig.chat.pushes_lists, rig.chat.stays_silent) == (is_think, not is_think)
    assert not rig.chat.takes_lists


def test_where_ranges_end_is_learned_from_a_real_chat():
    rig = Rig()
    played = play(rig, COMPACTED[0][0])
    first = next(f for f in played if f.is_upload and b"compaction_" in f.came.wire)
    listed = json.loads(json.loads(first.came.wire)["init"]["body"])["messages"]
    end = rig.chat.range_ends[listed[1]["id"]]
    assert end.id == "7f6dd247-bdd1-4c8b-a2ec-da0fde4a83ea"  # what the record of it says
    assert json.loads(end.document)["parts"][1]["text"] == "Hello from the mock."
