"""Reads a ledger that was given: events with step identities, in the order in which they happened.

    {"kind": "user"}
    {"kind": "text", "text": "Let me look.", "step": "A"}
    {"kind": "call", "call_id": "call_1", "step": "B"}

`kind` is user, text, reasoning, call or result. What identifies an item is its `item_id`,
`call_id`, `encrypted` or `signature`, for a text also its `text`. An event without `step` is one of
a legacy ledger and never moved; `turn` defaults to the count of user events; `provider_executed`
tells what the provider ran itself. Other members are not looked at.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from midstream.dialects.provider_history import Digests, Kind
from midstream_addons.history_order.entries import Entry


class EventKind(StrEnum):
    USER = "user"
    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    RESULT = "result"


class Event(msgspec.Struct):
    """One event of a ledger."""

    kind: EventKind
    text: str | None = None
    step: str | int | None = None
    turn: str | int | None = None
    item_id: str | None = None
    call_id: str | None = None
    encrypted: str | None = None
    signature: str | None = None
    provider_executed: bool = False


def entries_of(events: Iterable[Event], digests: Digests) -> list[Entry]:
    """Return the entries of a ledger."""
    turn = 0
    entries: list[Entry] = []
    for event in events:
        turn += event.kind is EventKind.USER
        if event.kind in (EventKind.USER, EventKind.RESULT):
            continue
        text = event.text if event.kind is EventKind.TEXT else None
        entries.append(
            Entry(
                seq=len(entries),
                kind=Kind(event.kind.value),
                keys=tuple(map(digests.of_key, _keys(event))),
                text=digests.of_text(text) if text is not None else None,
                step=event.step,
                turn=turn if event.turn is None else event.turn,
                is_hosted=event.provider_executed,
            )
        )
    return entries


def _keys(event: Event) -> Iterable[str]:
    named = (
        ("id", event.item_id),
        ("call", event.call_id),
        ("encrypted", event.encrypted),
        ("signature", event.signature),
    )
    return (f"{name}:{value}" for name, value in named if value)
