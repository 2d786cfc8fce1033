"""What a real AI SDK sent and a provider streamed, through the repair, on every API."""

import json

import pytest
from tests.addons.history_order.rig import CAPTURES, CLIENT, Fields, Rig, play

from midstream.core.addon import Mode
from midstream.core.frames import Frame

INVERTED = "-inverted"
NAMES = sorted(path.name.removesuffix("-000001.cap") for path in CAPTURES.glob("*.cap"))
PLAIN = [name for name in NAMES if not name.endswith(INVERTED)]
# The client drops the reference of a text that it has moved and sends the text itself, so the
# order is that of the plain run, the form is not.
OTHER_FORM = "aisdk-reason-store"


def bodies(played: list[tuple[Frame, Frame]]) -> list[Fields]:
    return [json.loads(left.wire) for came, left in played if came.sender is CLIENT]


def outline(body: Fields) -> list[str]:
    """Return what the items are, whatever form they come in."""
    return [
        item.get("id", "").partition("_")[0] or item.get("type") or item["role"]
        for item in body["input"]
    ]


def test_the_captures_are_five_pairs():
    assert [f"{name}{INVERTED}" for name in PLAIN] == [n for n in NAMES if n not in PLAIN]
    assert len(PLAIN) == 5


@pytest.mark.parametrize("name", PLAIN)
def test_a_client_in_order_is_left_alone(name):
    rig = Rig()
    assert all(came.wire == left.wire for came, left in play(rig, name))
    comparable, came, left = rig.pairs
    assert comparable > 0
    assert (came, left, rig.repairs, rig.errors) == (0, 0, {}, 0)


@pytest.mark.parametrize("name", PLAIN)
def test_an_inverting_client_reaches_the_provider_as_one_that_keeps_the_order(name):
    rig = Rig()
    mended, plain = bodies(play(rig, name + INVERTED)), bodies(play(Rig(), name))
    if name == OTHER_FORM:
        assert [outline(body) for body in mended[1:]] == [
            [kind.replace("msg", "assistant") for kind in outline(body)] for body in plain[1:]
        ]
    else:
        assert mended == plain
    assert rig.repairs == {"reordered": 2}
    _, came, left = rig.pairs
    assert came > 0
    assert (left, rig.errors) == (0, 0)


@pytest.mark.parametrize("name", PLAIN)
def test_observing_counts_the_same_and_changes_nothing(name):
    rig, repairing = Rig(Mode.OBSERVE), Rig()
    assert all(came.wire == left.wire for came, left in play(rig, name + INVERTED))
    play(repairing, name + INVERTED)
    assert (rig.repairs, rig.skips, rig.pairs) == (
        repairing.repairs, repairing.skips, repairing.pairs,
    )  # fmt: skip
