"""Walks the tree of responses: back to where a conversation began, and on behind a path."""

from collections.abc import Sequence

from midstream_addons.history_order.ledger import Ledger
from midstream_addons.history_order.records import parent_of

MAX_LATER = 1024
"""How many responses behind a path are looked at for texts that it might be mistaken for."""

type Hit = tuple[int, ...]
"""The responses that hold what a request quotes."""


def ancestry(ledger: Ledger, tip: int) -> list[int]:
    """Return a response and its ancestors, newest first, as far as they are remembered."""
    found = []
    while tip in ledger.records:
        found.append(tip)
        tip = parent_of(ledger.records[tip])
    return found


def said_later(ledger: Ledger, tip: int, wanted: frozenset[bytes]) -> frozenset[bytes]:
    """Return those of the texts that were said behind a response; all, where too much was."""
    found: set[bytes] = set()
    later = ledger.children(tip) if wanted else []
    for number in later:  # grows as it is walked
        if len(later) > MAX_LATER:
            return wanted
        found.update(output.text for output in ledger.outputs(number) if output.text in wanted)
        later += ledger.children(number)
    return frozenset(found)


def is_later(ledger: Ledger, held: Hit, path: Sequence[int]) -> bool:
    """Tell whether one of these responses came behind a path."""
    later = set(held).difference(path)
    return any(path[-1] in ancestry(ledger, number) for number in later)
