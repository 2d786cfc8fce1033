"""Tells which item of a request is which entry, where there is no doubt.

- A strong key decides. One that stands for two entries, or an entry that is quoted twice, is
  ambiguous: neither counted nor moved.
- Texts without a key are matched by digest, in their order, where the request has as many of them
  as the ledger: equal texts are interchangeable. Otherwise one was trimmed, or said again, and
  nobody knows which one is there.
"""

from collections.abc import Collection, Sequence

import msgspec

from midstream.dialects.provider_history import Item, Kind
from midstream_addons.history_order.entries import Entry
from midstream_addons.history_order.quoted import Quoted


class Matched(msgspec.Struct, frozen=True):
    """Items and what they are, by index; a reference has become what it refers to."""

    items: list[Item]
    entries: list[Entry | None]
    ambiguous: list[bool]


def match(
    items: Sequence[Item],
    quoted: Quoted,
    path: Sequence[Entry],
    doubtful: frozenset[bytes] = frozenset(),
) -> Matched:
    """Match the items of a request with the entries of its path.

    `doubtful` are texts and keys that may stand for something else than an entry of it.
    """
    matching = _Matching(items, path)
    matching.by_keys(quoted.keys, doubtful)
    matching.by_texts(quoted.texts, doubtful)
    found = matching.found
    resolved = list(items)
    for index in [index for index, item in enumerate(items) if item.kind is Kind.REFERENCE]:
        if (entry := found[index]) is not None:
            resolved[index] = msgspec.structs.replace(items[index], kind=entry.kind)
    return Matched(resolved, found, matching.ambiguous)


class _Matching:
    """The matches so far. `used` are the items of entries that are quoted, by the entry's place."""

    def __init__(self, items: Sequence[Item], path: Sequence[Entry]) -> None:
        self._items = items
        self._path = path
        self._used: dict[int, int] = {}
        self.found: list[Entry | None] = [None] * len(items)
        self.ambiguous = [False] * len(items)

    def by_keys(self, keys: Sequence[tuple[bytes, ...]], doubtful: frozenset[bytes]) -> None:
        holders = {key: entry for entry in self._path for key in entry.keys}
        shared = set(doubtful)
        if len(holders) < sum([len(entry.keys) for entry in self._path]):
            shared |= {k for entry in self._path for k in entry.keys if holders[k] is not entry}
        for index, own in enumerate(keys):
            if not own:
                continue
            if len(own) == 1 and not shared:
                if (one := holders.get(own[0])) is not None:
                    self._take(index, one)
                continue
            held = [holders[key] for key in own if key in holders]
            if any(entry is not held[0] for entry in held) or not shared.isdisjoint(own):
                self.ambiguous[index] = True
            elif held:
                self._take(index, held[0])

    def by_texts(self, texts: Sequence[bytes | None], doubtful: frozenset[bytes]) -> None:
        found, ambiguous = self.found, self.ambiguous
        asking: dict[tuple[Kind, bytes], list[int]] = {}
        for index, text in enumerate(texts):
            if text is not None and found[index] is None and not ambiguous[index]:
                asking.setdefault((self._items[index].kind, text), []).append(index)
        said = self._said(asking)
        for name, indices in asking.items():
            entries = said[name]
            if len(entries) == len(indices) and name[1] not in doubtful:
                for index, entry in zip(indices, entries, strict=True):
                    found[index] = entry
            elif entries:
                for index in indices:
                    ambiguous[index] = True

    def _said(
        self, asking: Collection[tuple[Kind, bytes]]
    ) -> dict[tuple[Kind, bytes], list[Entry]]:
        """Return the entries that said these texts and are not quoted by a key."""
        said: dict[tuple[Kind, bytes], list[Entry]] = {name: [] for name in asking}
        for entry in self._path if said else ():
            text = entry.text
            if text is not None and entry.seq not in self._used:
                entries = said.get((entry.kind, text))
                if entries is not None:
                    entries.append(entry)
        return said

    def _take(self, index: int, entry: Entry) -> None:
        if entry.seq in self._used:
            other = self._used[entry.seq]
            self.ambiguous[index] = self.ambiguous[other] = True
            self.found[other] = None
        elif self._items[index].kind in (Kind.REFERENCE, entry.kind):
            self.found[index] = entry
            self._used[entry.seq] = index
