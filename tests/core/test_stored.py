"""Whatever addons remember of real traffic can be stored, and comes back as it was."""

from pathlib import Path

import pytest

from midstream import wiring
from midstream.adapters.capture_format import read
from midstream.config import load
from midstream.core.errors import StoreError
from midstream.core.stored import packed, unpacked
from midstream.hosts.replay import replay

CAPTURES = sorted((Path(__file__).parents[1] / "captures").rglob("*.cap"))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_what_was_learned_from_a_capture_comes_back(path: Path):
    engine = wiring.engine(load(needs_upstream=False, environ={}))
    replay(read(path), engine)
    for conversation in list(engine.conversations):
        states = {k: v for k, v in conversation.states.items() if v is not None}
        value = packed(conversation.states)
        again = unpacked(value, {name: type(state) for name, state in states.items()})
        assert list(again) == list(states)
        assert packed(again) == value


def test_a_state_of_an_addon_that_is_not_there_is_left_out():
    assert unpacked(packed({"gone": {"a": 1}, "here": {"b": 2}}), {"here": dict}) == {
        "here": {"b": 2}
    }


def test_a_state_of_another_shape_is_left_out():
    assert unpacked(packed({"here": [1, 2]}), {"here": dict}) == {}


def test_another_format_is_nothing():
    assert unpacked(b"\x92\x02\x80", {}) == {}


@pytest.mark.parametrize("value", [b"", b"\xc1", b"text", b"\x90", b"\x92\x01"])
def test_what_is_no_conversation_is_an_error(value: bytes):
    with pytest.raises(StoreError, match="a stored conversation is none"):
        unpacked(value, {})


def test_a_state_that_cannot_be_written_is_an_error():
    with pytest.raises(StoreError, match="cannot be written: TypeError"):
        packed({"odd": object()})
