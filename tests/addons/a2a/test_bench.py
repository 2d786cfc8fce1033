"""The bench itself: it must see the faults it is for, or all of it proves nothing.

`workaround` is the repair that the report proposes for clients, as a baseline only: it compares an
update with the one before and keeps what comes on top.
"""

import json
from random import Random

import pytest
from tests.addons.a2a import forms, lanes, texts
from tests.addons.a2a.client import Client
from tests.addons.a2a.events import Status, Task, Update, notation, parts, whole
from tests.addons.a2a.judge import holds, irreducible, joined_chain, judged
from tests.addons.a2a.rig import Rig, run
from tests.addons.a2a.streams import finished, make, short

from midstream.core.frames import Frame, Side

SEEDS = 120
FAULTY = ("snapshots", "deltas_then_full", "react_ids", "react_snapshots", "seed_then_full")


def told(stream) -> Client:
    """Return the client of a stream that nobody mends."""
    return Client().takes(Frame(Side.SERVER, stream.form.kind, wire) for wire in stream.wires())


def workaround(frames: list[str]) -> str:
    shown, before = "", None
    for text in frames:
        known = before is not None and text.startswith(before)
        shown += text[len(before or "") :] if known else text
        before = text
    return shown


def test_without_addons_every_byte_passes():
    for seed in range(SEEDS):
        stream = make(seed)
        left = run(Rig(()), stream.wires(), stream.form)
        assert b"".join(frame.wire for frame in left) == b"".join(stream.wires())


@pytest.mark.parametrize("kind", ["deltas", "hinted_deltas", "whole_once", "replacing"])
def test_without_addons_a_clean_stream_is_judged_right(kind):
    for seed in range(SEEDS // 4):
        stream = make(seed, kind)
        if stream.ending in ("none", "different", "asks", "fails") and not has_piled_task(stream):
            assert judged(Rig(()), stream).problems == (), str(stream)


@pytest.mark.parametrize("kind", FAULTY)
def test_without_addons_a_faulty_stream_is_judged_wrong(kind):
    wrong = sum(bool(judged(Rig(()), make(seed, kind)).problems) for seed in range(SEEDS // 4))
    assert wrong > SEEDS // 4 * 0.8  # a final task tells the text, too


def test_without_addons_an_append_to_nothing_is_seen():
    outcome = judged(Rig(()), make(3, "deltas_append_first"))
    assert any("append before" in problem for problem in outcome.problems)


def test_every_form_says_the_same_to_the_client():
    for seed in range(SEEDS // 4):
        rng = Random(seed)
        pieces = texts.tokens(texts.markdown(rng, 90), rng)
        heard = set()
        for form in forms.FORMS:
            made = finished("form", form, [lanes.lane("deltas", pieces, Random(1))], Random(2))
            client = told(made)
            heard.add((tuple(client.texts.items()), client.final, tuple(client.violations)))
        assert len(heard) == 1


def test_the_workaround_of_the_report_loses_words_that_are_no_repeats():
    assert workaround(["Hi", "Hi Mira"]) == "Hi Mira"
    assert workaround(["a", " a", " apple"]) == "a apple"[:1] + " apple"
    lost = 0
    for seed in range(SEEDS):
        rng = Random(seed)
        pieces = texts.tokens(texts.code(rng, 400), rng)
        lost += not holds(workaround(pieces), "".join(pieces))
    assert lost > SEEDS // 10


def test_pieces_cut_anywhere_are_the_text_when_put_together():
    for seed in range(SEEDS):
        rng = Random(seed)
        for source in (*texts.SOURCES, texts.echoes):
            text = source(rng, 120)
            for grain in texts.GRAINS:
                assert whole("".join(grain(text, rng))) == text


def test_only_the_other_reading_of_the_same_frames_is_excused():
    def why(kind: str, pieces: list[str], found: str, *, is_decided: bool = False) -> str:
        return irreducible(lanes.lane(kind, pieces, Random(1)), found, is_decided=is_decided)

    assert why("deltas", ["ha", "haha"], "haha") == "two_frames"
    assert why("deltas", ["ha", "haha"], "haha", is_decided=True) == ""
    assert why("deltas", ["ha", "haha"], "ha") == ""
    assert why("hinted_deltas", ["ha", "haha"], "haha") == ""
    assert why("snapshots", ["ha", "ha"], "hahaha") == ""
    assert why("deltas", ["a", "a"], "a") == ""
    assert why("deltas_then_full", ["a"], "aa") == "two_frames"
    assert why("deltas", ["a", "a", "ab", " c"], "ab c") == "short_chain"
    assert why("deltas", ["a", "a", "b", " c"], "ab c") == ""
    assert why("deltas_then_full", ["a", "b"], "abab") == "short_repeat"
    assert why("deltas", ["a", "b", "ab"], "ab") == ""
    assert why("deltas", ["The order ", "The order is", " ready"], "The order is ready") == ""


def test_only_weak_chains_that_a_message_joins_are_excused_for_it():
    def why(kind: str, pieces: list[str], found: str) -> str:
        return joined_chain(lanes.lane(kind, pieces, Random(1)), found)

    assert why("snapshots", ["|--", "-|", "-"], "|--|---||---|-") == "joined_chain"
    assert why("snapshots", ["|--", "-|", "-"], "|--") == ""
    assert why("deltas", ["|--", "-|", "-"], "|---|-") == ""
    assert (
        why("snapshots", ["The order ", "is", " ready"], "The order The order isThe order is ready")
        == ""
    )


def test_a_stream_prints_on_one_line():
    events = (
        Update("a1", parts("Hi")),
        Update("a1", parts("Hi ", "Mira"), True),
        Update("b1", parts('"x"\n'), False, True),
        Status("completed", parts("Hi Mira"), final=True),
        Task("completed", (("a1", parts("Hi")),)),
    )
    assert notation(events) == (
        r'R"Hi" A"Hi "|"Mira" b1:R!"\"x\"\n" S!completed"Hi Mira" Tcompleted[a1="Hi"]'
    )


def test_lone_halves_of_a_character_are_on_the_wire_as_json_escapes_them():
    stream = short(forms.RPC03, "a\ud83d", "\ude00b")
    assert b"\\ud83d" in stream.wires()[1]
    assert told(stream).texts == {"a1": "a\U0001f600b"}
    assert json.loads(forms.WS_TEXT.wire(stream.events[1]))


def has_piled_task(stream) -> bool:
    return any(isinstance(event, Task) and event.artifacts for event in stream.events)
