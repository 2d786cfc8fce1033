"""Explanations: every word that is counted is said in a plain sentence, with its facts."""

from midstream import explaining
from midstream.core.metrics import CHAIN_REASONS


def test_every_reason_of_the_chain_has_a_sentence():
    assert set(explaining.CHAIN_MEANINGS) == set(CHAIN_REASONS)
    assert all(
        text[0].isupper() and text.endswith(".") for text in explaining.CHAIN_MEANINGS.values()
    )


def test_a_line_tells_who_did_what_and_the_facts():
    why = [["another", "cut", {"row": "r1", "is_first": True, "is_last": False, "chars": 1200}]]
    assert explaining.explain([("another", "cut")], [], why) == [
        "another did cut (row r1, is first, not is last, chars 1,200)"
    ]


def test_the_facts_of_a_word_counted_twice_keep_their_order():
    why = [["another", "cut", {"row": 1}], ["another", "cut", {"row": 2}]]
    lines = explaining.explain([("another", "cut"), ("another", "cut")], [], why)
    assert lines == ["another did cut (row 1)", "another did cut (row 2)"]


def test_a_reason_of_the_chain_is_said_for_any_addon():
    (line,) = explaining.explain([], [("another", "too_large")])
    assert line.startswith("another declined too_large: A frame is larger than the limit")


def test_what_is_not_in_the_form_of_facts_is_left_out():
    for why in (None, 7, [1], [["a", "b"]], [["a", "b", "c"]]):
        assert explaining.explain([("a", "b")], [], why) == ["a did b"]


def test_what_cannot_be_printed_is_escaped():
    (line,) = explaining.explain([("a", "b")], [], [["a", "b", {"row": "\x1b[2J"}]])
    assert line == "a did b (row \\x1b[2J)"
