"""Counts pairs of an assistant text and a later call of its turn, in O(n log n).

A pair is comparable where both are matched, the ledger has the text first, both are of one turn and
of different steps, and neither was run by the provider or has no step. It is inverted where the
request has the call first.
"""

from collections.abc import Iterable, Sequence

import msgspec

from midstream.dialects.provider_history import Kind
from midstream_addons.history_order.entries import Entry


class Pairs(msgspec.Struct, frozen=True):
    """How many pairs can be compared, and how many of them are inverted."""

    comparable: int = 0
    inverted: int = 0


type Placed = tuple[int, int, bool]
"""A place in the ledger, a position in the request, and whether a call stands there."""


def count_pairs(
    entries: Sequence[Entry | None], positions: Iterable[int], kinds: frozenset[Kind]
) -> Pairs:
    """Count the pairs among entries, each with its position in the request.

    `kinds` are those that count as text.
    """
    turns: dict[object, list[Placed]] = {}
    steps: dict[object, list[Placed]] = {}
    for entry, position in zip(entries, positions, strict=True):
        if entry is None or entry.is_hosted or entry.step is None:
            continue
        is_call = entry.kind is Kind.CALL
        if not is_call and entry.kind not in kinds:
            continue
        placed = entry.seq, position, is_call
        turn = turns.get(entry.turn)
        if turn is None:
            turn = turns[entry.turn] = []
        turn.append(placed)
        if not entry.response:  # where it was learned, every output is a step of its own
            steps.setdefault((entry.turn, entry.step), []).append(placed)
    # All pairs of a turn, less those within one step: counting those alone would be quadratic.
    pairs = [_count(sorted(group)) for group in turns.values()]
    less = [_count(sorted(group)) for group in steps.values()]
    return Pairs(
        sum([p.comparable for p in pairs]) - sum([p.comparable for p in less]),
        sum([p.inverted for p in pairs]) - sum([p.inverted for p in less]),
    )


def _count(group: Sequence[Placed]) -> Pairs:
    """Count the pairs of a group in ledger order, whatever their steps."""
    texts = comparable = last = 0
    is_ordered = True
    for _, position, is_call in group:
        if position < last:
            is_ordered = False
        last = position
        if is_call:
            comparable += texts
        else:
            texts += 1
    return Pairs(comparable, 0 if is_ordered else comparable - _in_order(group))


def _in_order(group: Sequence[Placed]) -> int:
    """Count the pairs that the request has in order, with a Fenwick tree over its positions."""
    ranks = {p: rank for rank, p in enumerate(sorted({one[1] for one in group}), 1)}
    tree = [0] * (len(ranks) + 1)
    count = 0
    for _, position, is_call in group:
        rank = ranks[position]
        if is_call:
            while rank:
                count += tree[rank]
                rank &= rank - 1
        else:
            while rank < len(tree):
                tree[rank] += 1
                rank += rank & -rank
    return count
