"""The vectors of the report: what a ledger says, what a client sends, what has to go upstream."""

import json
from pathlib import Path

import pytest
from tests.addons.history_order.ledgers import Fields, ledger_of, written

VECTORS = sorted((Path(__file__).parents[2] / "vectors" / "history").glob("*.json"))


def load(path: Path) -> Fields:
    vector: Fields = json.loads(path.read_text(encoding="utf-8"))
    return vector


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_request_goes_upstream_in_the_order_of_its_ledger(path):
    vector = load(path)
    ledger, expected = ledger_of(vector), vector["expect"]
    body = written(vector["request"])
    outcome = ledger.judge(body)
    assert (outcome.body is not None) == (expected["action"] == "repair"), outcome.reason
    left = body if outcome.body is None else outcome.body
    wanted = vector["request"] if expected["request"] is None else expected["request"]
    assert json.loads(left) == wanted
    assert (outcome.comparable, outcome.inverted_in, outcome.inverted_out) == (
        expected["comparable"], expected["inverted_before"], expected["inverted_after"],
    )  # fmt: skip
    if "reason" in expected:
        assert outcome.reason == expected["reason"]


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_mended_request_is_not_mended_again(path):
    vector = load(path)
    ledger = ledger_of(vector)
    outcome = ledger.judge(written(vector["request"]))
    if outcome.body is not None:
        again = ledger.judge(outcome.body)
        assert (again.body, again.inverted_in) == (None, outcome.inverted_out)


def test_all_vectors_are_there():
    assert len(VECTORS) == 42
