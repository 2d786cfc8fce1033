"""Cuts a request's items into stretches without a barrier, and those into units that stay together.

- Nothing moves past a barrier: what a user or the system said, an item of the model that is not
  matched or is ambiguous, a result whose call is not there, and whatever is unknown.
- A unit is one item, with the reasoning in front of it that the provider gave directly before it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from midstream.dialects.provider_history import Kind
from midstream_addons.history_order.entries import Entry
from midstream_addons.history_order.match import Matched

MOVABLE = frozenset({Kind.TEXT, Kind.REASONING})


class Unit(msgspec.Struct, frozen=True, gc=False):
    """Items that stay together: one, its entry if it has one, and the reasoning in front of it."""

    items: list[int]
    kind: Kind
    head: Entry | None
    first_seq: int | None

    @property
    def moves(self) -> bool:
        """Tell whether it may be moved: text or reasoning whose place is known for sure."""
        head = self.head
        return (
            self.kind in MOVABLE
            and head is not None
            and head.step is not None
            and not head.is_hosted
            and head.is_complete
        )


def stretches(matched: Matched) -> Iterator[list[int]]:
    """Return the items by index: each barrier alone, and what stands between them."""
    calls = {item.call_id for item in matched.items if item.kind is Kind.CALL}
    stretch: list[int] = []
    rows = zip(matched.items, matched.entries, matched.ambiguous, strict=True)
    for index, (item, entry, is_ambiguous) in enumerate(rows):
        if entry is not None:
            is_barrier = is_ambiguous
        else:
            is_barrier = item.kind is not Kind.RESULT or item.call_id not in calls
        if is_barrier:
            if stretch:
                yield stretch
            yield [index]
            stretch = []
        else:
            stretch.append(index)
    if stretch:
        yield stretch


def units_of(matched: Matched, stretch: Sequence[int]) -> list[Unit]:
    """Return the units of a stretch, in their order."""
    items, entries = matched.items, [matched.entries[index] for index in stretch]
    following: dict[int, int] | None = None
    units: list[Unit] = []
    glued: list[int] = []
    for place, index in enumerate(stretch):
        entry = entries[place]
        if entry is not None and entry.kind is Kind.REASONING:
            if following is None:
                following = dict(pairwise(sorted(e.seq for e in entries if e is not None)))
            after = entries[place + 1] if place + 1 < len(stretch) else None
            if after is not None and _is_glued(entry, after, following):
                glued.append(index)
                continue
        kind = items[index].kind
        if kind is Kind.RESULT and units and units[-1].kind is Kind.CALL:
            units[-1].items.append(index)  # neither of them ever moves
            continue
        first = matched.entries[glued[0]] if glued else entry
        units.append(Unit([*glued, index], kind, entry, first.seq if first is not None else None))
        glued = []
    return units


def _is_glued(entry: Entry, after: Entry, following: dict[int, int]) -> bool:
    """Tell whether reasoning belongs to the item behind it: one step, and nothing in between."""
    is_one = (
        entry.response == after.response
        if entry.response or after.response
        else entry.step == after.step
    )
    return is_one and following.get(entry.seq) == after.seq
