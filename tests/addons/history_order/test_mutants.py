"""Every rule is one that some test would miss."""

import pytest
from tests.addons.history_order.mutants import MUTANTS, UNTOUCHED, is_caught
from tests.mutation import ROOT, Mutant


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_rule_is_noticed(mutant: Mutant) -> None:
    assert is_caught(mutant)


@pytest.mark.soak
def test_without_a_mutant_the_tests_pass() -> None:
    assert not is_caught(UNTOUCHED)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_passage_of_a_mutant_is_where_it_was(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
