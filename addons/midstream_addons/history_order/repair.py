"""Measures a request against what the provider said, and puts its history back in order.

Whatever is not proven passes as the bytes that came, with its reason. A new order is checked before
it leaves: nothing that the API would newly refuse; the same items in the planned order, read back
from the new body where that took more than putting raw elements in another order; strictly fewer
inversions.
"""

from collections.abc import Sequence

import msgspec

from midstream.core.errors import EditError, WireError
from midstream.dialects.provider_history import History, Item, Kind, Provider, Refused
from midstream.dialects.provider_rules import violations
from midstream_addons.history_order.entries import Entry
from midstream_addons.history_order.match import Matched, match
from midstream_addons.history_order.pairs import Pairs, count_pairs
from midstream_addons.history_order.plan import plan
from midstream_addons.history_order.quoted import Quoted

TEXT = frozenset({Kind.TEXT})
ALL = frozenset({Kind.TEXT, Kind.REASONING})


class Outcome(msgspec.Struct, frozen=True):
    """What becomes of a request. `body` is what should go upstream, None for what came.

    `reason` is empty where everything was put in order, else why not, or not all. `comparable`,
    `inverted_in` and `inverted_out` count pairs of a text and a call; `moved` counts items.
    """

    body: bytes | None
    reason: str
    comparable: int = 0
    inverted_in: int = 0
    inverted_out: int = 0
    moved: int = 0


def repair(
    provider: Provider,
    history: History,
    quoted: Quoted,
    path: Sequence[Entry],
    *,
    doubtful: frozenset[bytes] = frozenset(),
    is_locked: bool = False,
) -> Outcome:
    """Judge a request by the entries of its path. With `is_locked` it must not be changed.

    `doubtful` are texts and keys that may stand for something else than an entry of the path.
    """
    matched = match(history.items, quoted, path, doubtful)
    texts, every = _count(provider, matched.items, matched.entries)
    if not every.inverted:
        reason = "clean" if texts.comparable else "nothing_comparable"
        if any(matched.ambiguous):
            reason = "ambiguous"
        return Outcome(None, reason, texts.comparable)
    passed = Outcome(None, "signed", texts.comparable, texts.inverted, texts.inverted)
    if is_locked:
        return passed
    try:
        return _reordered(provider, history, matched, path, texts, every)
    except Refused as refusal:
        return msgspec.structs.replace(passed, reason=str(refusal))
    except (EditError, WireError):
        return msgspec.structs.replace(passed, reason="not_editable")


def _reordered(
    provider: Provider,
    history: History,
    matched: Matched,
    path: Sequence[Entry],
    texts: Pairs,
    every: Pairs,
) -> Outcome:
    planned = plan(matched)
    if not planned.moved:
        raise Refused("blocked")
    ordered = [matched.items[index] for index in planned.order]
    wrong = violations(ordered, provider.rules)
    if wrong and wrong - violations(matched.items, provider.rules):
        raise Refused("would_break_api")
    bonds = _Bonds(matched.entries, path)
    body = provider.reorder(history, planned.order, planned.moved, bonds)
    left = ordered if provider.permutes else _read_back(provider, body, ordered)
    entries = [matched.entries[index] for index in planned.order]
    after, all_after = _count(provider, left, entries)
    before, now = (texts, after) if texts.inverted else (every, all_after)
    if now.inverted >= before.inverted:
        raise Refused("no_improvement")
    return Outcome(
        body,
        "partial" if after.inverted else "",
        texts.comparable,
        texts.inverted,
        after.inverted,
        len(planned.moved),
    )


def _read_back(provider: Provider, body: bytes, ordered: Sequence[Item]) -> list[Item]:
    """Return the items of a new body, which has to hold the planned order and nothing else."""
    written = provider.read_request(body)
    left = written.items if written is not None else []
    if len(left) != len(ordered):
        raise Refused("would_break_api")
    for item, meant in zip(left, ordered, strict=True):
        is_same = item.kind is meant.kind and item.keys == meant.keys
        if not is_same or item.text != meant.text or item.call_id != meant.call_id:
            raise Refused("would_break_api")
    return left


def _count(
    provider: Provider, items: Sequence[Item], entries: Sequence[Entry | None]
) -> tuple[Pairs, Pairs]:
    """Count the pairs of texts and calls, and those of texts or reasoning and calls."""
    positions = [item.at[0] for item in items] if provider.fuses else range(len(items))
    texts = count_pairs(entries, positions, TEXT)
    if any(entry is not None and entry.kind is Kind.REASONING for entry in entries):
        return texts, count_pairs(entries, positions, ALL)
    return texts, texts


class _Bonds:
    """What the path tells of where items come from."""

    def __init__(self, entries: Sequence[Entry | None], path: Sequence[Entry]) -> None:
        self._entries = entries
        self._path = path

    def is_one_response(self, item: int, other: int) -> bool:
        entry, beside = self._entries[item], self._entries[other]
        if entry is None or beside is None or not entry.response:
            return False
        return entry.response == beside.response

    def is_whole_response(self, items: Sequence[int]) -> bool:
        entries = [self._entries[index] for index in items]
        first = entries[0] if entries else None
        if first is None or not first.response:
            return False
        return entries == [entry for entry in self._path if entry.response == first.response]
