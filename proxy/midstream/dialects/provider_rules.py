"""Checks the order of items against what an API demands, in one pass.

A repair may leave a request as illegal as it was, never make it worse, so violations are named in a
way that two orders of the same items can be compared, and counted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from midstream.dialects.provider_history import Item, Kind, Rules

type Violation = tuple[str, object, int]

_NO_FOLLOWER = (Kind.USER, Kind.SYSTEM, Kind.RESULT)


def violations(items: Sequence[Item], rules: Rules) -> Counter[Violation]:
    """Return what is wrong with an order of items, and how often."""
    found: Counter[Violation] = Counter()
    answered = {item.call_id for item in items if item.kind is Kind.RESULT}
    called: set[str] = set()
    open_calls: set[str] = set()
    open_mark = 0  # names the set of open calls: a copy for each item would be quadratic
    for item in items:
        kind, call_id = item.kind, item.call_id
        if kind is Kind.CALL:
            called.add(call_id)
            if call_id not in answered:
                found["call_without_result", call_id, 0] += 1
            if call_id not in open_calls:
                open_calls.add(call_id)
                open_mark ^= hash(call_id)
        elif kind is Kind.RESULT:
            if call_id not in called:
                found["orphan_result", call_id, 0] += 1
            if call_id in open_calls:
                open_calls.remove(call_id)
                open_mark ^= hash(call_id)
        elif open_calls and kind in rules.splits:
            found["inside_open_calls", kind, open_mark] += 1
    if rules.follows:
        found.update(_without_follower(items))
    return found


def _without_follower(items: Sequence[Item]) -> Iterable[Violation]:
    for index, item in enumerate(items):
        if item.kind is Kind.REASONING:
            following = items[index + 1].kind if index + 1 < len(items) else Kind.USER
            if following in _NO_FOLLOWER:
                yield "reasoning_without_follower", item.at, 0
