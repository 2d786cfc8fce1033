"""Real model clients that keep or invert the order of a history, with midstream before a provider.

The rig is in `history/`: see its README.md. Here every conversation is played once, and what
reached the provider is asserted on.
"""

import asyncio

import pytest
from tests.peers.history.provider.turns import TURNS
from tests.peers.history.rig.install import install
from tests.peers.history.rig.modes import VIAS, Cell, cells, goals
from tests.peers.history.rig.play import Found, play

pytestmark = pytest.mark.peers

CELLS = cells()
PAIRS = 1 + 5 + 5
"""Of a text and a later call of its question, in the three requests that quote any."""


@pytest.fixture(scope="module")
def found() -> Found:
    install()
    return asyncio.run(play(CELLS))


def chosen(order: str, *vias: str) -> list[Cell]:
    return [cell for cell in CELLS if cell.order == order and cell.via in vias]


@pytest.mark.parametrize("cell", chosen("plain", *VIAS[1:]), ids=lambda cell: cell.key)
def test_a_normal_loop_reaches_the_provider_byte_for_byte(found: Found, cell: Cell) -> None:
    row = found.rows[cell]
    assert row.word == "bytes", row.lines


@pytest.mark.parametrize("cell", chosen("inverted", *VIAS[1:]), ids=lambda cell: cell.key)
def test_an_inverted_history_reaches_the_provider_in_the_order_it_spoke(
    found: Found, cell: Cell
) -> None:
    row = found.rows[cell]
    assert row.word in goals(cell), row.lines


@pytest.mark.parametrize("cell", chosen("inverted", "direct"), ids=lambda cell: cell.key)
def test_without_midstream_every_inverted_request_is_out_of_order(found: Found, cell: Cell) -> None:
    row = found.rows[cell]
    assert row.word == "differs"
    assert len(row.lines) == len(TURNS) - 1, "all but the first have a history"


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.key)
def test_the_client_holds_the_whole_conversation(found: Found, cell: Cell) -> None:
    held = found.rows[cell].held
    assert held["error"] == ""
    assert held["texts"] == [turn.text for turn in TURNS]
    assert sorted(held["paths"]) == sorted(path for turn in TURNS for path in turn.calls)


@pytest.mark.parametrize("via", VIAS[1:])
def test_no_repair_failed(found: Found, via: str) -> None:
    failed = [series for series in found.counted[via] if series.startswith("repair_errors")]
    assert not failed


@pytest.mark.parametrize("via", VIAS[1:])
def test_every_pair_is_counted(found: Found, via: str) -> None:
    assert pairs(found, via, "comparable") == PAIRS * len([c for c in CELLS if c.via == via])
    assert pairs(found, via, "inverted_in") == PAIRS * len(chosen("inverted", via))


@pytest.mark.parametrize("via", VIAS[1:])
def test_no_pair_leaves_midstream_inverted(found: Found, via: str) -> None:
    assert pairs(found, via, "inverted_out") == 0


def pairs(found: Found, via: str, state: str) -> float:
    series = f'history_pairs_total{{route="default",state="{state}"}}'
    return found.counted[via].get(series, 0.0)
