"""What holds for every stream, whatever is in it and however its bytes arrive."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.addons.a2a import forms, texts
from tests.addons.a2a.client import Client, read
from tests.addons.a2a.events import Status, Update, notation, parts
from tests.addons.a2a.forms import RPC03
from tests.addons.a2a.judge import judged
from tests.addons.a2a.lanes import KINDS, lane, so_far
from tests.addons.a2a.rig import SNAPSHOT, Rig, run
from tests.addons.a2a.say import ANSWER, DONE, PIECES, deltas, octets, through, updates, wires
from tests.addons.a2a.streams import finished, make, short

from midstream.core.addon import Mode
from midstream.core.frames import Frame, Kind, Side

SEEDS = st.integers(min_value=0, max_value=1 << 32)
chosen = settings(max_examples=40)

SSE_FORMS = [form for form in forms.FORMS if form.kind is Kind.SSE]
TINY = st.sampled_from(
    ["a", "b", "ab", " ", "\n", "ha", "no", "1", "你好", "😀", "\u0301", "**", "-", "xxxxx", ""]
)


@chosen
@given(SEEDS, st.sampled_from(SSE_FORMS), st.data())
def test_the_same_bytes_leave_however_they_are_cut(seed, form, data):
    rng = Random(seed)
    pieces = texts.tokens(texts.code(rng, 80), rng)[:12]
    made = finished("cut", form, [lane(rng.choice(KINDS), pieces, rng)], rng, "equal")
    expected = octets(run(Rig(), made.wires(), form, 0))
    stream = b"".join(made.wires())
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=40))
    places = sorted({0, len(stream), *cuts})
    chunks = [stream[start:end] for start, end in pairwise(places)]
    assert octets(run(Rig(), chunks, form, 0)) == expected


@chosen
@given(SEEDS)
def test_bytes_one_at_a_time_are_the_same_stream(seed):
    made = make(seed % 500, "snapshots")
    if made.form.kind is not Kind.SSE or len(stream := b"".join(made.wires())) > 6000:
        return
    single = [stream[at : at + 1] for at in range(len(stream))]
    expected = octets(run(Rig(), made.wires(), made.form, 0))
    assert octets(run(Rig(), single, made.form, 0)) == expected


@chosen
@given(SEEDS)
def test_observing_passes_every_byte_of_every_stream(seed):
    made = make(seed)
    left = run(Rig(mode=Mode.OBSERVE), made.wires(), made.form)
    assert [frame.wire for frame in left] == made.wires() or (
        made.form.kind is Kind.SSE and octets(left) == b"".join(made.wires())
    )


def test_observing_counts_what_would_be_mended():
    rig = Rig(mode=Mode.OBSERVE)
    run(rig, short(RPC03, *so_far(PIECES)).wires())
    assert rig.repairs
    assert set(rig.repairs) <= set(mended_rules())


def mended_rules() -> dict[str, int]:
    rig = Rig()
    run(rig, short(RPC03, *so_far(PIECES)).wires())
    return dict(rig.repairs)


@pytest.mark.parametrize("form", forms.FORMS, ids=lambda form: form.name)
def test_everything_in_a_mended_frame_but_its_text_keeps_its_bytes(form):
    if form.kind is Kind.WS_BINARY:
        return  # no spelling to keep: the next test looks at the values
    model = form.wire(Update("a1", parts("TEXT"), True)).replace(
        b'"artifactId"', b'"extra":[1.50,1e400,12345678901234567890123,"\\u00e9\\/"],"artifactId"'
    )
    sent = [model.replace(b"TEXT", text.encode()) for text in so_far(PIECES)]
    left = run(Rig(), sent, form, 0)[: len(sent)]
    assert [frame.wire for frame in left[1:]] == [
        model.replace(b"TEXT", text.encode()) for text in PIECES[1:]
    ]


def test_values_of_a_mended_msgpack_message_stay():
    made = short(forms.WS_BINARY, *so_far(PIECES))
    left = run(Rig(), made.wires(), made.form)
    assert Client().takes(left).texts == {"a1": ANSWER}
    before = [read(Frame(Side.SERVER, Kind.WS_BINARY, wire)) for wire in made.wires()]
    after = [read(frame) for frame in left]
    for old, new, text in zip(before[1:5], after[1:5], PIECES, strict=True):
        assert old is not None
        assert new is not None
        old[1]["artifact"]["parts"][0]["text"] = text
        assert old == new


@chosen
@given(st.lists(TINY, min_size=1, max_size=12))
def test_a_server_that_is_said_to_send_deltas_loses_no_letter(pieces):
    made = wires([*deltas(pieces), DONE])
    rig = Rig((SNAPSHOT,), snapshot_to_delta={"stream": "delta"})
    left = run(rig, made)
    assert [frame.wire for frame in left] == made
    assert not rig.repairs


@chosen
@given(st.lists(TINY, min_size=1, max_size=12))
def test_a_server_that_is_said_to_send_snapshots_shows_the_last_one(pieces):
    made = wires([*deltas(so_far(pieces)), DONE])
    rig = Rig((SNAPSHOT,), snapshot_to_delta={"stream": "snapshot"})
    client = through(rig, made)
    assert client.texts == {"a1": "".join(pieces)}
    assert client.violations == []


@chosen
@given(st.lists(TINY, min_size=1, max_size=12))
def test_snapshots_that_replace_by_protocol_show_the_last_one(pieces):
    made = wires([*updates(*((text, False) for text in so_far(pieces))), DONE])
    assert through(Rig(), made).texts == {"a1": "".join(pieces)}


@settings(max_examples=300)
@given(st.lists(TINY, min_size=1, max_size=10), st.booleans())
def test_whatever_is_appended_is_in_the_text_in_the_end(pieces, is_told):
    """A frame may only be swallowed where the text has it already, as a whole."""
    text = "".join(pieces)
    end = Status("completed", parts(text), "m-final", True) if is_told else DONE
    events = [*deltas(pieces), end]
    left = run(Rig(), wires(events))
    client = Client().takes(left)
    found = client.texts["a1"]
    assert all(piece in found for piece in pieces), f"{notation(events)} -> {client.log}"
    assert not client.violations, f"{notation(events)} -> {client.log}"


@pytest.mark.parametrize("form", forms.FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_every_kind_in_every_form_shows_the_text_once(form, kind):
    for seed in range(3):
        rng = Random(seed)
        pieces = texts.tokens(texts.english(rng, 300), rng)
        made = finished("kinds", form, [lane(kind, pieces, rng)], rng, "equal")
        outcome = judged(Rig(), made)
        assert not outcome.problems, str(outcome)


@chosen
@given(SEEDS)
def test_an_artifact_does_not_depend_on_the_others(seed):
    rng = Random(seed)
    own = [lane(rng.choice(KINDS), _pieces(rng), rng, name) for name in ("a1", "b1", "c1")]
    mixed = finished("mixed", RPC03, own, rng)
    together = Client().takes(run(Rig(), mixed.wires())).texts
    for one in own:
        name = one.updates[0].artifact
        alone = through(Rig(), wires([*one.updates, DONE])).texts[name]
        assert alone == together[name], f"{one.kind}: {notation(one.updates)}"


def _pieces(rng: Random) -> list[str]:
    return texts.tokens(texts.english(rng, 200), rng)


@chosen
@given(SEEDS)
def test_what_has_been_mended_is_not_mended_again(seed):
    made = make(seed, Random(seed).choice(("snapshots", "deltas_then_full", "react_leak")))
    once = [frame.wire for frame in run(Rig(), made.wires(), made.form)]
    told = Rig(snapshot_to_delta={"stream": "delta"})
    assert octets(run(told, once, made.form)) == b"".join(once), str(made)


def test_half_a_character_at_the_end_of_a_snapshot_is_not_in_the_text():
    for half in ("\ud83d", "\ufffd"):
        said = ["Hello, ", "Hello, Mira", f"Hello, Mira {half}", "Hello, Mira \U0001f600 and all"]
        client = through(Rig(), wires([*deltas(said), DONE]))
        assert client.texts == {"a1": said[-1]}, client.log
        assert client.violations == []
