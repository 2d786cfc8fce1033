"""Plans the repair: which units of text move, and where to, in O(n log n).

A unit moves only towards the head, to just before the first call of its turn that the ledger has
later and in another step. It never overtakes what the ledger has before it, nor a barrier. Calls
and results stay where they are.
"""

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from midstream.dialects.provider_history import Kind
from midstream_addons.history_order.match import Matched
from midstream_addons.history_order.units import Unit, stretches, units_of


class Plan(msgspec.Struct, frozen=True):
    """The new order of all items by index, and those that moved."""

    order: list[int]
    moved: list[int]


def plan(matched: Matched) -> Plan:
    order: list[int] = []
    moved: list[int] = []
    for stretch in stretches(matched):
        units = units_of(matched, stretch) if len(stretch) > 1 else []
        targets = _targets(units)
        if not targets:
            order += stretch
            continue
        before: dict[int, list[int]] = {}
        for place, target in targets.items():  # in the order of the ledger
            before.setdefault(target, []).append(place)
            moved += units[place].items
        for place, unit in enumerate(units):
            for other in before.get(place, ()):
                order += units[other].items
            if place not in targets:
                order += unit.items
    return Plan(order, moved)


def _targets(units: Sequence[Unit]) -> dict[int, int]:
    """Return the units that move, by place, in ledger order, and the place each moves before.

    Texts are looked at in the order of the ledger, so that whatever may not be overtaken has found
    its own place by then.
    """
    movable = {place for place, unit in enumerate(units) if unit.moves}
    targets: dict[int, int] = {}
    if not movable:
        return targets
    calls = _Calls(units)
    floor = _Floor(len(units))
    seqs = [(u.first_seq, place) for place, u in enumerate(units) if u.first_seq is not None]
    seqs.sort()
    for _, place in seqs:
        target = calls.first(units[place], floor.before(place)) if place in movable else None
        if target is not None and target < place:
            targets[place] = target
            floor.raise_behind(target, target)
        else:
            floor.raise_behind(place, place + 1)
    return targets


class _Calls:
    """The calls among units, by turn."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._steps = [unit.head.step if unit.head is not None else None for unit in units]
        self._places: dict[object, list[int]] = {}
        for place, unit in enumerate(units):
            head = unit.head
            if unit.kind is Kind.CALL and head is not None and not head.is_hosted:
                self._places.setdefault(head.turn, []).append(place)
        self._others = {turn: self._other_steps(p) for turn, p in self._places.items()}

    def first(self, unit: Unit, floor: int) -> int | None:
        """Return the first call at or behind `floor` of the unit's turn and another step."""
        if unit.head is None:
            return None
        places = self._places.get(unit.head.turn, [])
        rank = bisect_left(places, floor)
        if rank < len(places) and self._steps[places[rank]] == unit.head.step:
            rank = self._others[unit.head.turn][rank]
        return places[rank] if rank < len(places) else None

    def _other_steps(self, places: Sequence[int]) -> list[int]:
        """Return for each call the next one of another step, as places in this list."""
        found = [len(places)] * len(places)
        for rank in range(len(places) - 2, -1, -1):
            is_same = self._steps[places[rank]] == self._steps[places[rank + 1]]
            found[rank] = found[rank + 1] if is_same else rank + 1
        return found


class _Floor:
    """Where a unit may move to at the earliest, by what stands before it: a tree of maxima.

    What stands behind all that was told so far needs no tree, and texts that were parked at the end
    of their turn do: so the tree is filled only when it is asked.
    """

    def __init__(self, size: int) -> None:
        self._tree = [0] * (size + 1)
        self._waiting: list[tuple[int, int]] = []
        self._last = -1
        self._highest = 0

    def raise_behind(self, place: int, floor: int) -> None:
        """Let nothing from behind `place` come before `floor`."""
        self._waiting.append((place, floor))
        if place > self._last:
            self._last = place
        if floor > self._highest:
            self._highest = floor

    def before(self, place: int) -> int:
        """Return the highest floor among the places before one."""
        if place > self._last:
            return self._highest
        tree, floor, at = self._filled(), 0, place
        while at:
            if tree[at] > floor:
                floor = tree[at]
            at &= at - 1
        return floor

    def _filled(self) -> list[int]:
        tree = self._tree
        for place, floor in self._waiting:
            at = place + 1
            while at < len(tree):
                if tree[at] < floor:
                    tree[at] = floor
                at += at & -at
        self._waiting.clear()
        return tree
