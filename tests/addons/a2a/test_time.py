"""One frame of an artifact is held, for a bounded time, and never past the end of a turn."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.addons.a2a import forms, texts
from tests.addons.a2a.client import Client, Fields, read
from tests.addons.a2a.events import Part, Status, Update, parts
from tests.addons.a2a.forms import RPC03
from tests.addons.a2a.judge import begins_like_snapshots, updates_of
from tests.addons.a2a.lanes import lane
from tests.addons.a2a.rig import Rig, run
from tests.addons.a2a.say import through, wires
from tests.addons.a2a.streams import make

from midstream.core.frames import Frame, Side

SEEDS = st.integers(min_value=0, max_value=1 << 32)
chosen = settings(max_examples=40)

HOLD_MS = 250


@pytest.mark.parametrize("gap_ms", [0, 1, 100, 249, 251, 1000])
def test_a_frame_that_is_held_leaves_within_the_bound_and_alone(gap_ms):
    line = Rig().stream()
    line.send(RPC03.wire(Update("a1", parts("ha"))), 0)
    assert line.send(RPC03.wire(Update("a1", parts("haha"), True)), 0) == []
    line.passes(HOLD_MS + 1)
    assert Client().takes(line.left).texts["a1"].startswith("haha")
    assert line.session.deadline_ns is None
    line.send(RPC03.wire(Update("a1", parts("no"), True)), gap_ms)
    line.send(RPC03.wire(Update("a1", parts("no"), True)), gap_ms)
    line.passes(HOLD_MS + 1)
    assert Client().takes(line.left).texts["a1"].endswith("nono")
    assert line.session.deadline_ns is None


@chosen
@given(SEEDS)
def test_only_the_last_frame_of_an_artifact_is_ever_held(seed):
    rng = Random(seed)
    source = rng.choice(texts.SOURCES)
    pieces = texts.tokens(source(rng, 120), rng)
    if begins_like_snapshots(lane("deltas", pieces, rng)):
        return  # blanks that may be snapshots of blanks: read so, and mended back
    line, client, text = Rig().stream(), Client(), ""
    for number, piece in enumerate(pieces):
        client.takes(line.send(RPC03.wire(Update("a1", parts(piece), number > 0))))
        assert client.texts.get("a1", "").startswith(text), client.log
        text += piece


@pytest.mark.parametrize(
    "state", ["completed", "failed", "canceled", "rejected", "input-required", "auth-required"]
)
@pytest.mark.parametrize("form", forms.FORMS, ids=lambda form: form.name)
def test_the_end_of_a_turn_never_waits_and_lets_go_what_is_held(form, state):
    line = Rig().stream(form)
    line.send(form.wire(Update("a1", parts("ha"))), 0)
    line.send(form.wire(Update("a1", parts("haha"), True)), 0)
    wire = form.wire(Status(state, parts("And now?"), "m9", True))
    out = line.send(wire + (b"\r" if form.ending == "\r" else b""), 0)
    assert out[-1].wire.startswith(wire)
    client = Client().takes(line.left)
    assert client.texts["a1"] in ("haha", "hahaha")
    assert client.status == "And now?"
    assert line.session.deadline_ns is None


@chosen
@given(SEEDS, st.integers(0, 40))
def test_a_break_loses_nothing_and_adds_no_end(seed, at):
    made = make(seed, "deltas")
    if made.form.ending == "\r":  # its last event is not complete yet
        return
    line = Rig().stream(made.form)
    count = sum(isinstance(event, Update) for event in made.events)
    sent = made.wires()[: 2 + min(at, count)]
    for wire in sent:
        line.send(wire)
    line.breaks()
    client = Client().takes(line.left)
    truth = Client().takes(Frame(Side.SERVER, made.form.kind, wire) for wire in sent)
    for name, text in truth.texts.items():
        known = [u.text for u in made.events if isinstance(u, Update) and u.artifact == name]
        if not (len(known) > 1 and known[1].startswith(known[0])):
            assert client.texts[name] == text, str(made)
    empty = [frame for frame in updates_of(line.left) if frame.wire not in sent]
    assert not any(json_of(frame).get("lastChunk") for frame in empty)


def json_of(frame: Frame) -> Fields:
    event = read(frame)
    assert event is not None
    return event[1]


@pytest.mark.parametrize("form", forms.FORMS, ids=lambda form: form.name)
def test_a_stream_that_just_ends_keeps_what_was_held(form):
    line = Rig().stream(form)
    line.send(form.wire(Update("a1", parts("The answer"))), 0)
    line.send(form.wire(Update("a1", parts("The answer is 42"), True)), 0)
    line.ends()
    assert Client().takes(line.left).texts == {"a1": "The answer is 42"}


@pytest.mark.parametrize("empty", [parts(""), ()], ids=["empty text", "no parts"])
@pytest.mark.parametrize("last", [True, False])
def test_an_empty_update_does_not_overtake_a_frame_that_is_held(empty, last):
    events = [
        Update("a1", parts("Hi")),
        Update("a1", parts("Hi Mira"), True),
        Update("a1", empty, True, last),
        Status("completed", final=True),
    ]
    client = through(Rig(), wires(events), gap_ms=0)
    assert client.texts == {"a1": "Hi Mira"}, client.log
    assert client.violations == [], client.log


def test_a_part_that_is_no_text_does_not_overtake_a_text_that_is_held():
    table = Update("a1", (Part(data={"rows": [1]}),), True)
    before = [Update("a1", parts("ha")), Update("a1", parts("haha"), True)]
    left = run(Rig(), wires([*before, table, Update("a1", parts("no"), True)]), gap_ms=0)
    places = [frame.wire == RPC03.wire(table) for frame in left]
    text = Client().takes(left[: places.index(True)]).texts["a1"]
    assert text in ("haha", "hahaha")
