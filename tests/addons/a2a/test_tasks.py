"""Tasks, messages and data beside the text: mended where they repeat it, else left alone."""

import json
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from tests.addons.a2a import forms, texts
from tests.addons.a2a.client import Client
from tests.addons.a2a.events import Part, Said, Status, Task, Update, parts, whole
from tests.addons.a2a.forms import RPC03, Form
from tests.addons.a2a.lanes import lane, so_far
from tests.addons.a2a.rig import BOTH, Rig, run
from tests.addons.a2a.say import ANSWER, DONE, PIECES, deltas, octets, through, wires
from tests.addons.a2a.streams import piled, short

SEEDS = st.integers(min_value=0, max_value=1 << 32)
chosen = settings(max_examples=40)


def _pieces(rng: Random) -> list[str]:
    return texts.tokens(texts.english(rng, 200), rng)


@pytest.mark.parametrize(
    "kind", ["snapshots", "deltas_then_full", "deltas", "deltas_then_replace", "react_leak"]
)
@pytest.mark.parametrize("method", ["tasks/get", "GetTask"])
def test_a_task_that_is_fetched_afterwards_has_what_the_stream_had(kind, method):
    rng = Random(5)
    one = lane(kind, _pieces(rng), rng)
    rig = Rig()
    client = through(rig, wires([*one.updates, DONE]))
    form = RPC03 if method == "tasks/get" else forms.RPC1
    task = form.fields(Task("completed", piled(one.updates)))
    if method == "GetTask":
        task = task["task"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": task}).encode()
    left = json.loads(rig.fetches(method, body))["result"]
    found = "".join(part["text"] for part in left["artifacts"][0]["parts"])
    assert found == client.texts["a1"] == one.truth
    if kind == "deltas":
        assert left == task


@pytest.mark.parametrize("kind", ["snapshots", "deltas_then_full", "deltas"])
def test_a_stream_that_is_subscribed_to_again_goes_on_with_one_text(kind):
    rng = Random(7)
    one = lane(kind, _pieces(rng), rng)
    half = len(one.updates) // 2
    rig = Rig()
    line = rig.stream()
    for wire in wires([Task("submitted"), *one.updates[:half]]):
        line.send(wire)
    line.breaks()
    form = Form("again", False, has_kind_parts=True, has_final=True, method="tasks/resubscribe")
    again = [Task("working", piled(one.updates[:half])), *one.updates[half:], DONE]
    client = through(rig, wires(again, form), form)
    assert client.texts == {"a1": one.truth}, client.log


def test_a_task_in_the_end_of_a_mended_stream_has_the_text_once():
    one = lane("snapshots", PIECES, Random(1))
    end = Task("completed", piled(one.updates))
    for form in forms.FORMS:
        client = through(Rig(), wires([*one.updates, end], form), form)
        assert client.texts == {"a1": ANSWER}, client.log


def test_an_answer_that_is_one_message_passes():
    for form in forms.FORMS:
        made = wires([Said(parts("Hello."))], form)
        assert octets(run(Rig(), made, form)) == made[0]


def test_only_the_message_of_a_completed_status_is_ever_taken_away():
    for state in ("input-required", "auth-required", "failed", "rejected", "canceled", "working"):
        events = [
            *deltas(PIECES),
            Status(state, parts(ANSWER)),
        ]
        made = wires(events)
        assert [frame.wire for frame in run(Rig(), made)] == made, state


def test_a_final_message_with_more_than_text_stays():
    answer = (Part(ANSWER), Part(data={"table": [1]}))
    made = wires(
        [
            *deltas(PIECES),
            Status("completed", answer, final=True),
        ]
    )
    assert [frame.wire for frame in run(Rig(), made)] == made


def test_a_final_message_with_data_that_was_streamed_goes_and_with_other_data_stays():
    table, other = Part(data={"rows": [1]}), Part(data={"rows": [2]})
    for end, stays in ((table, False), (other, True)):
        events = [*deltas(PIECES), Update("a1", (table,), True)]
        made = wires([*events, Status("completed", (Part(ANSWER), end), final=True)])
        client = through(Rig(), made)
        assert client.final == (ANSWER if stays else "")
        assert client.data == {"a1": [{"kind": "data", "data": {"rows": [1]}}]}


def test_a_final_message_without_a_stream_stays():
    made = wires(
        [Task("submitted"), Status("working"), Status("completed", parts(ANSWER), final=True)]
    )
    assert [frame.wire for frame in run(Rig(), made)] == made


def test_data_parts_pass_and_text_around_them_is_kept():
    table = Part(data={"rows": [1, 2]})
    events = [
        Update("a1", parts("Here is the table: ")),
        Update("a1", (table,), True),
        Update("a1", parts("That was the table."), True),
        DONE,
    ]
    made = wires(events)
    assert [frame.wire for frame in run(Rig(), made)] == made


def test_a_chat_in_many_streams_learns_nothing_wrong():
    """What one answer was like must not spoil the next: verdicts may be remembered, texts not."""
    rig = Rig()
    for seed in range(40):
        rng = Random(seed)
        kind = "snapshots" if seed % 4 else "deltas"
        one = lane(kind, _pieces(rng), rng)
        assert through(rig, wires([*one.updates, DONE])).texts == {"a1": one.truth}, one.kind


def test_two_streams_at_once_do_not_mix():
    rig = Rig()
    first, second = (
        lane("snapshots", _pieces(Random(1)), Random(1)),
        lane("deltas", _pieces(Random(2)), Random(2)),
    )
    lines = rig.stream(), rig.stream()
    for number in range(max(len(first.updates), len(second.updates))):
        for line, one in zip(lines, (first, second), strict=True):
            for update in one.updates[number : number + 1]:
                line.send(RPC03.wire(update))
    for line, one in zip(lines, (first, second), strict=True):
        line.send(RPC03.wire(DONE))
        line.ends()
        assert whole(Client().takes(line.left).texts["a1"]) == one.truth


def test_an_addon_alone_does_its_own_part():
    made = short(RPC03, *so_far(PIECES)).wires()
    for addons in (BOTH[:1], BOTH[1:]):
        rig = Rig(addons)
        run(rig, made)
        assert rig.errors == 0
    assert through(Rig(BOTH[:1]), made).texts == {"a1": ANSWER}


def test_what_a_final_message_says_beyond_does_not_go_to_another_artifact():
    """Another one spoke last, and what it said was taken back."""
    more = " And more."
    sent = [
        *deltas(PIECES),
        Update("b1", parts("An aside.")),
        Update("b1", parts("")),
        Status("completed", parts(ANSWER + more), final=True),
    ]
    client = through(Rig(BOTH[1:]), wires(sent))
    assert client.texts == {"a1": ANSWER, "b1": ""}
    assert client.final == ANSWER + more
