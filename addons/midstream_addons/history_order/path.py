"""Finds the path of a conversation: the chain of responses that a request's history quotes.

What a request quotes by strong keys selects responses; the shortest chain of ancestors that
explains all of them is the path. None is `no_anchor`, two branches are an `ambiguous_fork`.

A response of texts alone has no strong key where a client leaves ids out. So the path goes on to
the child of its last response, if it is the only one all of whose texts the request quotes as well.
"""

from collections.abc import Iterable, Sequence

import msgspec

from midstream.dialects.provider_history import Kind
from midstream_addons.history_order.entries import Entry
from midstream_addons.history_order.ledger import Ledger
from midstream_addons.history_order.quoted import Quoted
from midstream_addons.history_order.records import (
    depth_of,
    is_complete,
    said_in,
    turn_of,
)
from midstream_addons.history_order.tree import Hit, ancestry, is_later, said_later

MAX_TIPS = 16
"""How many ends of a path are tried, where keys were used more than once."""


class Path(msgspec.Struct, frozen=True):
    """The responses of a path, oldest first, and what they said; `refusal` is why there is none.

    `doubtful` are texts and keys that were used again behind the path: an item with one may be that
    other, its response being left out by the client.
    """

    responses: list[int]
    entries: list[Entry] = []
    refusal: str = ""
    doubtful: frozenset[bytes] = frozenset()


def find_path(ledger: Ledger, quoted: Quoted) -> Path:
    """Return the path of what a request quotes."""
    likely = _newest(ledger, quoted.keys)
    entries = _entries_of(ledger, likely)
    # Whatever explains its end holds all of this path, so who else has its keys is all the same.
    tip = tuple(likely[-1:])
    known: dict[bytes, Hit] = dict.fromkeys((key for e in entries for key in e.keys), tip)
    hits: set[Hit] = set()
    texts: dict[bytes, int] = {}
    for keys, text in zip(quoted.keys, quoted.texts, strict=True):
        held: Hit = ()
        for key in keys:
            if key not in known:
                known[key] = tuple(ledger.holders(key))
            if known[key] != held:
                held = tuple({*held, *known[key]})
        if held:
            hits.add(held)
        elif text is not None:
            texts[text] = texts.get(text, 0) + 1
    explained = likely if hits <= {tip} else _explaining(ledger, hits)
    if explained is None:
        return Path([], refusal="ambiguous_fork")
    wanted = frozenset(texts)
    path = _extended(ledger, explained if hits else [], texts)
    if not path:
        return Path([], refusal="no_anchor")
    entries = entries if path == likely else _entries_of(ledger, path)
    reused = {key for key, held in known.items() if len(held) > 1 and is_later(ledger, held, path)}
    return Path(path, entries, doubtful=said_later(ledger, path[-1], wanted) | reused)


def _newest(ledger: Ledger, quoted: Sequence[tuple[bytes, ...]]) -> list[int]:
    """Return the path to the response that holds the last key which only one response holds."""
    for keys in reversed(quoted):
        for key in keys:
            found = ledger.holders(key)
            if len(found) == 1:
                return ancestry(ledger, found[0])[::-1]
    return []


def _explaining(ledger: Ledger, hits: set[Hit]) -> list[int] | None:
    """Return the shortest chain with a response of each hit, or None."""
    known = ledger.records
    depths = {number: depth_of(known[number]) for hit in hits for number in hit}
    least = max([min([depths[number] for number in hit]) for hit in hits])
    tips = [number for number, depth in depths.items() if depth >= least]
    for tip in sorted(tips, key=depths.__getitem__)[:MAX_TIPS]:
        path = ancestry(ledger, tip)
        on_path = frozenset(path)
        if all(hit[0] in on_path or not on_path.isdisjoint(hit) for hit in hits):
            return path[::-1]
    return None


def _extended(ledger: Ledger, path: list[int], texts: dict[bytes, int]) -> list[int]:
    """Follow children whose every output is a text that the request still has."""
    is_spent = False
    while texts:
        if path:
            candidates = ledger.children(path[-1])
        else:
            candidates = [number for text in texts for number in ledger.roots(text)]
        if candidates and not is_spent:
            is_spent = True
            _spend(texts, ledger, path)
        fitting = [number for number in candidates if _fits(texts, ledger, number)]
        if len(fitting) != 1:
            return path
        path = [*path, fitting[0]]
        _spend(texts, ledger, fitting)
    return path


def _spend(texts: dict[bytes, int], ledger: Ledger, path: Iterable[int]) -> None:
    """Take the texts of these responses out of what the request has."""
    for number in path:
        for output in ledger.outputs(number):
            if output.text is not None:
                texts[output.text] = texts.get(output.text, 0) - 1


def _fits(texts: dict[bytes, int], ledger: Ledger, number: int) -> bool:
    return all(
        output.kind is Kind.TEXT and output.text is not None and texts.get(output.text, 0) > 0
        for output in ledger.outputs(number)
    )


def _entries_of(ledger: Ledger, path: Sequence[int]) -> list[Entry]:
    """Return what was said on a path, in the order in which it was said."""
    found: list[Entry] = []
    for number in path:
        record = ledger.records[number]
        turn, is_whole = turn_of(record), is_complete(record)
        for kind, keys, text in said_in(record):
            seq, is_hosted = len(found), kind is Kind.HOSTED
            found.append(Entry(seq, kind, keys, text, seq, turn, is_hosted, is_whole, number))
    return found
