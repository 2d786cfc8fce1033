"""What a request quotes, as digests: the form in which the ledger knows what was said."""

from collections.abc import Sequence

import msgspec

from midstream.dialects.provider_history import Digests, Item, Kind

QUOTED = frozenset({Kind.TEXT, Kind.REASONING, Kind.CALL})
"""The kinds that are known by their text where they have no key."""


class Quoted(msgspec.Struct, frozen=True):
    """The digests of items, by index: strong keys, and the text of what may be known by it."""

    keys: list[tuple[bytes, ...]]
    texts: list[bytes | None]


def quote(items: Sequence[Item], digests: Digests) -> Quoted:
    """Return the digests of the items."""
    of_key, of_text = digests.of_key, digests.of_text
    return Quoted(
        [tuple([of_key(key) for key in item.keys]) if item.keys else () for item in items],
        [
            of_text(item.text) if item.text is not None and item.kind in QUOTED else None
            for item in items
        ],
    )
