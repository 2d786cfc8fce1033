"""Puts the elements of a JSON array in another order and keeps the bytes of each.

What stands between the elements stays where it is, so that a body printed with indentation keeps
it; where an array grows, its first separator is used again.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise, repeat

import msgspec

from midstream.core.errors import EditError
from midstream.core.json_scan import ARRAY, Text
from midstream.dialects.provider_history import Item, Kind, Refused
from midstream.dialects.provider_json import read_elements


class Array:
    """The array under a key of an object. Raises EditError where there is none.

    `raws` are its elements without a copy of their bytes.
    """

    def __init__(self, document: bytes, key: str) -> None:
        self._document = document
        array = Text(document).root(entered=True).members((key,)).wanted
        if not array or array[-1].value.opening != ARRAY:
            raise EditError(f"no array at {key}")
        value = array[-1].value
        raws = read_elements(value.raw)
        if not raws:
            raise EditError(f"no elements at {key}")
        self.raws = raws
        if sum(map(len, raws)) + len(raws) + 1 == len(value.raw):
            # No white space anywhere: what stands between them is known without looking.
            self._edges = value.start + 1, value.end - 1
            self._between = [b","] * (len(raws) - 1)
            return
        spans = [(item.value.start, item.value.end) for item in value.elements().wanted]
        self._edges = spans[0][0], spans[-1][1]
        self._between = [document[a[1] : b[0]] for a, b in pairwise(spans)]
        self.raws = [document[start:end] for start, end in spans]

    @cached_property
    def elements(self) -> list[bytes]:
        return list(map(bytes, self.raws))

    def with_elements(self, elements: Sequence[bytes | msgspec.Raw]) -> bytes:
        """Return the document with these elements, at least one."""
        document, between = self._document, self._between
        start, end = self._edges
        missing = max(len(elements) - 1 - len(between), 0)
        separators = chain(between, repeat(between[0] if between else b",", missing))
        pieces = [document[:start], elements[0]]
        for separator, element in zip(separators, elements[1:], strict=False):
            pieces += (separator, element)
        pieces.append(document[end:])
        return b"".join(pieces)


def next_calls(
    items: Sequence[Item], order: Sequence[int], moved: Sequence[int]
) -> list[tuple[int, int]]:
    """Return every moved item, in its order, with the call that it now stands in front of.

    Raises Refused where no call follows.
    """
    wanted, found = set(moved), []
    call: int | None = None
    for index in reversed(order):
        if items[index].kind is Kind.CALL:
            call = index
        elif index in wanted:
            if call is None:
                raise Refused("would_break_api")
            found.append((index, call))
    return found[::-1]
