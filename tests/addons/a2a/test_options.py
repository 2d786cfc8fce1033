"""The other ways to mend: each option alone, on streams of every kind."""

import itertools
from collections.abc import Iterator

import pytest
from tests.addons.a2a.client import Client, read, read_parts
from tests.addons.a2a.events import Event, Part, Status, Update, parts
from tests.addons.a2a.forms import RPC03
from tests.addons.a2a.judge import updates_of
from tests.addons.a2a.lanes import so_far
from tests.addons.a2a.rig import SNAPSHOT, Rig, run
from tests.addons.a2a.say import ANSWER, DONE, PIECES, deltas, octets, through, updates, wires
from tests.addons.a2a.streams import Stream, make

from midstream.core.frames import Frame, Side

SEEDS = range(120)
KINDS = ("snapshots", "deltas", "deltas_then_full", "deltas_then_replace", "replacing")


def streams() -> Iterator[Stream]:
    for seed in SEEDS:
        made = make(seed, KINDS[seed % len(KINDS)])
        if made.form.ending != "\r" and made.ending in ("none", "different", "asks", "fails"):
            yield made


def truth_of(made: Stream) -> dict[str, str]:
    return {lane.updates[0].artifact: lane.truth for lane in made.lanes}


def test_looking_ahead_marks_the_last_update_of_each_artifact_and_only_that():
    seen = 0
    for made in streams():
        rig = Rig(snapshot_to_delta={"last_chunk": "lookahead"})
        client = Client().takes(run(rig, made.wires(), made.form))
        assert not rig.errors, str(made)
        assert not client.violations, f"{made} {client.log}"
        for name, text in truth_of(made).items():
            lasts = [line for line in client.log if line.startswith(f"{name}:")]
            assert [line for line in lasts if line[len(name) + 2] == "!"] == lasts[-1:], str(made)
            seen += client.texts[name] == text
    assert seen > len(SEEDS) / 3


def test_an_update_that_waited_to_be_judged_may_wait_once_more_to_be_the_last():
    said = ["Hi", "Hi Mira", "Hi Mira, which region?"]
    rig = Rig(snapshot_to_delta={"last_chunk": "lookahead"})
    line = rig.stream()
    for number, text in enumerate(said):
        line.send(RPC03.wire(Update("a1", parts(text), number > 0)), 0)
    line.passes(251)
    client = Client().takes(line.left)
    assert client.log == ["a1:R'Hi'", "a1:A' Mira'", "a1:A', which region?'"]
    line.send(RPC03.wire(DONE))
    assert Client().takes(line.left).log[3:] == ["a1:A!''", "Scompleted"]
    assert not rig.errors


@pytest.mark.parametrize("gaps", list(itertools.product([0, 251], repeat=3)))
def test_what_waits_leaves_in_time_when_looking_ahead(gaps):
    rig = Rig(snapshot_to_delta={"last_chunk": "lookahead"})
    line = rig.stream()
    sent = [*deltas(["ha", "haha", "no"]), DONE]
    for update, gap_ms in zip(sent, (0, *gaps), strict=True):
        line.send(RPC03.wire(update), gap_ms)
    line.ends()
    assert not rig.errors
    client = Client().takes(line.left)
    assert client.texts["a1"] == "hahahano"
    assert not client.violations


def test_a_clean_stream_whose_server_marks_the_last_update_passes_when_looking_ahead():
    sent = deltas(PIECES)
    sent[-1] = Update("a1", parts(PIECES[-1]), True, True)
    made = wires([*sent, DONE])
    left = run(Rig(snapshot_to_delta={"last_chunk": "lookahead"}), made)
    assert [frame.wire for frame in left] == made


def test_an_artifact_that_grows_too_large_while_one_update_waits_loses_nothing():
    options = {"last_chunk": "lookahead", "max_lane_bytes": 60}
    rig = Rig(snapshot_to_delta=options)
    client = through(rig, wires([*deltas(PIECES), DONE]))
    assert client.texts == {"a1": ANSWER}
    assert not rig.errors


def test_annotating_says_what_an_artifact_is_read_as_and_changes_nothing_else():
    told = set()
    for made in streams():
        rig = Rig((SNAPSHOT,), snapshot_to_delta={"output": "annotate", "compact_task": "off"})
        left = run(rig, made.wires(), made.form)
        assert not rig.errors, str(made)
        assert len(left) == len(made.events), str(made)
        for event, before, frame in zip(made.events, made.wires(), left, strict=True):
            if not isinstance(event, Update):
                assert frame.wire == before
                continue
            found, model = read(frame), read(Frame(Side.SERVER, made.form.kind, before))
            assert found is not None
            assert model is not None
            mode = found[1].get("metadata", {}).pop("streamMode", "")
            if not found[1].get("metadata", True):
                del found[1]["metadata"]
            assert found == model, str(made)
            told.add((made.lanes[0].kind, mode) if len(made.lanes) == 1 else ())
    assert {("snapshots", "snapshot"), ("deltas", "delta")} <= told


def test_annotating_reads_short_snapshots_without_holding_any():
    rig = Rig((SNAPSHOT,), snapshot_to_delta={"output": "annotate"})
    line = rig.stream()
    for number, text in enumerate(["Hi", "Hi Mira", "Hi Mira, hello", "Hi Mira, hello"]):
        assert len(line.send(RPC03.wire(Update("a1", parts(text), number > 0)), 0)) == 1
    assert b'"streamMode":"snapshot"' in line.left[-1].wire


def test_without_holding_an_update_that_goes_on_is_taken_for_a_snapshot_and_mended_back():
    rig = Rig(snapshot_to_delta={"hold_ms": 0})
    line = rig.stream()
    for number, text in enumerate(so_far(["Hi", " Mira", ", which region?"])):
        assert len(line.send(RPC03.wire(Update("a1", parts(text), number > 0)), 0)) == 1
    assert Client().takes(line.left).texts == {"a1": "Hi Mira, which region?"}
    client = through(Rig(snapshot_to_delta={"hold_ms": 0}), wires(deltas(["ha", "haha", "no"])))
    assert client.texts == {"a1": "hahahano"}


CORRECTED = ["The answer is north", "The answer is north of it", "The answer is south of it, Mira"]
MORE = [f"{CORRECTED[-1]}, as", f"{CORRECTED[-1]}, as you know"]


def corrected(rewrite: str) -> tuple[Client, Rig]:
    rig = Rig((SNAPSHOT,), snapshot_to_delta={"rewrite": rewrite})
    return through(rig, wires([*deltas([*CORRECTED, *MORE]), DONE])), rig


def test_a_correction_that_becomes_an_artifact_of_its_own_goes_on_there():
    client, rig = corrected("new_artifact")
    assert client.texts == {"a1": "The answer is north of it", "a1-2": MORE[-1]}
    assert client.log[-2:] == ["a1-2:A!''", "Scompleted"]
    assert rig.repairs["new_artifact"] == 1


def test_behind_a_correction_that_is_an_error_all_passes_as_it_came():
    client, rig = corrected("error")
    assert client.texts == {"a1": "The answer is north of it" + CORRECTED[-1] + "".join(MORE)}
    assert rig.skips["rewrite"] == 1


def test_a_correction_goes_on_from_where_the_texts_part_if_so_wanted():
    client, _ = corrected("tail")
    assert client.texts["a1"].startswith("The answer is north of itsouth of it, Mira")


def test_a_correction_replaces_what_was_said():
    assert corrected("replace")[0].texts == {"a1": MORE[-1]}


def test_snapshots_for_a_client_that_replaces_are_the_whole_text_each_time():
    for made in streams():
        rig = Rig(snapshot_to_delta={"output": "snapshot"})
        left = run(rig, made.wires(), made.form)
        assert not rig.errors
        told = Client().takes(left)
        for frame in updates_of(left):
            event = read(frame)
            assert event is not None
            assert not event[1].get("append") or event[1].get("lastChunk"), f"{made} {told.log}"


def test_a_server_that_never_says_append_is_heard_if_that_is_known():
    made = [*updates(*((piece, False) for piece in PIECES)), DONE]
    client = through(Rig(snapshot_to_delta={"append_false": "ignore"}), wires(made))
    assert client.texts == {"a1": ANSWER}
    assert not client.violations


@pytest.mark.parametrize("kind", ["snapshots", "deltas", "deltas_then_full", "react_leak"])
def test_a_second_proxy_changes_nothing_where_the_first_one_says_what_it_sends(kind):
    for seed in range(20):
        made = make(seed, kind)
        once = run(Rig(snapshot_to_delta={"stamp": True}), made.wires(), made.form)
        again = run(Rig(), [frame.wire for frame in once], made.form)
        updates_once, updates_again = updates_of(once), updates_of(again)
        assert octets(updates_again) == octets(updates_once), str(made)


def test_an_update_of_two_lanes_never_waits_for_one_of_them():
    """What waits in one lane is settled by it, and looks like a repeat again."""
    thought: dict[str, object] = {"_agentscope_block_type": "thinking"}
    said = [*deltas(["ab", "ca", "abca"]), Update("a1", parts("abcaabca"), True)]
    thoughts = [
        Update("a1", (Part(one.text, metadata=thought),), number > 0)
        for number, one in enumerate(said)
    ]
    both = Update("a1", (Part("said"), *thoughts[-1].parts), True)
    rig = Rig()
    line = rig.stream()
    for event in (*thoughts[:-1], both):
        line.send(RPC03.wire(event), 0)
    line.send(RPC03.wire(DONE), 0)
    assert not rig.errors
    assert line.session.deadline_ns is None
    assert Client().takes(line.left).texts == {"a1": "abcaabcasaidabcaabca"}


def working(*said: str) -> list[Status]:
    return [Status("working", parts(text), f"m{number}") for number, text in enumerate(said)]


@pytest.mark.parametrize("way", ["dedupe", "lift"])
@pytest.mark.parametrize("has_artifact", [True, False])
@pytest.mark.parametrize("has_message", [True, False])
@pytest.mark.parametrize("pieces", [PIECES, [ANSWER]])
def test_text_of_statuses_an_artifact_and_the_end_is_shown_once(
    way, has_artifact, has_message, pieces
):
    """Executors that stream through statuses say all up to four times."""
    sent: list[Event] = [*working(*pieces, ANSWER)]
    sent += [Update("a1", parts(ANSWER), None, True)] if has_artifact else []
    sent += [Status("completed", parts(ANSWER) if has_message else None, "m9", True)]
    rig = Rig(snapshot_to_delta={"status_text": way})
    left = run(rig, wires(sent))
    assert not rig.errors
    client = Client().takes(left)
    assert all_statuses(left) + "".join(client.texts.values()) == ANSWER, client.log
    assert all_statuses(left) + all_updates(left) == ANSWER  # of a client that only appends, too
    if way == "lift":
        assert client.shown == ANSWER  # and of one that shows no statuses


def all_updates(frames: list[Frame]) -> str:
    events = [event[1] for frame in frames if (event := read(frame)) is not None]
    return "".join(read_parts(e["artifact"]["parts"])[0] for e in events if "artifact" in e)


def all_statuses(frames: list[Frame]) -> str:
    """Return what a client shows that shows the message of every status."""
    events = [event[1] for frame in frames if (event := read(frame)) is not None]
    messages = [event["status"].get("message") for event in events if "status" in event]
    return "".join(read_parts(message["parts"])[0] for message in messages if message)


@pytest.mark.parametrize("way", ["dedupe", "lift"])
@pytest.mark.parametrize(
    "state", ["input-required", "auth-required", "failed", "rejected", "canceled"]
)
def test_a_message_that_asks_or_tells_of_a_failure_is_never_touched(way, state):
    end = wires([Status(state, parts(ANSWER), "m9", True)])
    sent = [*wires(working(*PIECES, ANSWER)), *end]
    left = run(Rig(snapshot_to_delta={"status_text": way}), sent)
    assert left[-1].wire == end[0]
