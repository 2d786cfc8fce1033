"""Counting pairs gives what looking at every pair gives."""

import random

import pytest

from midstream.dialects.provider_history import Kind
from midstream_addons.history_order.entries import Entry
from midstream_addons.history_order.pairs import Pairs, count_pairs

KINDS = (Kind.TEXT, Kind.CALL, Kind.REASONING, Kind.HOSTED)
TEXT = frozenset({Kind.TEXT})
ALL = frozenset({Kind.TEXT, Kind.REASONING})


def pair_by_pair(
    entries: list[Entry | None], positions: list[int], kinds: frozenset[Kind]
) -> Pairs:
    """Count as the definition says."""
    comparable = inverted = 0
    placed = [(e, p) for e, p in zip(entries, positions, strict=True) if e is not None]
    for text, at in placed:
        for call, place in placed:
            is_pair = (
                text.kind in kinds
                and call.kind is Kind.CALL
                and text.seq < call.seq
                and text.turn == call.turn
                and text.step is not None
                and call.step is not None
                and text.step != call.step
                and not text.is_hosted
                and not call.is_hosted
            )
            comparable += is_pair
            inverted += is_pair and at > place
    return Pairs(comparable, inverted)


def made(rnd: random.Random, seq: int, *, is_observed: bool) -> Entry:
    step: object = seq if is_observed else rnd.choice(["A", "B", "C", None])
    return Entry(
        seq,
        rnd.choice(KINDS),
        step=step,
        turn=rnd.randrange(2),
        is_hosted=rnd.random() < 0.1,
        response=1 + seq // 3 if is_observed else 0,
    )


@pytest.mark.parametrize("is_observed", [True, False])
@pytest.mark.parametrize("kinds", [TEXT, ALL])
def test_counting_agrees_with_looking_at_every_pair(kinds, is_observed):
    rnd = random.Random(11)
    for _ in range(400):
        count = rnd.randrange(14)
        entries: list[Entry | None] = [
            made(rnd, seq, is_observed=is_observed) for seq in range(count)
        ]
        rnd.shuffle(entries)
        entries = [entry if rnd.random() < 0.9 else None for entry in entries]
        positions = sorted(rnd.randrange(1 + count) for _ in range(count))  # some of them shared
        wanted = pair_by_pair(entries, positions, kinds)
        assert count_pairs(entries, positions, kinds) == wanted


def test_many_pairs_are_counted_without_looking_at_each():
    count = 20_000
    calls: list[Entry | None] = [Entry(count + n, Kind.CALL, step=-n - 1) for n in range(count)]
    texts: list[Entry | None] = [Entry(n, Kind.TEXT, step=n) for n in range(count)]
    entries = calls + texts
    assert count_pairs(entries, range(2 * count), TEXT) == Pairs(count * count, count * count)
