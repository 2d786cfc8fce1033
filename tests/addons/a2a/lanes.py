"""What a server makes of the pieces of one answer: the updates of one artifact, and its true text.

Each kind is one that real servers emit. `KINDS` has them by name, as often as they should come up.
"""

from collections.abc import Callable, Sequence
from random import Random

import msgspec
from tests.addons.a2a.events import FIRST, Part, Update, units, whole

AGGREGATE_CHARS = 16
"""A shorter text that repeats the answer cannot be told from new text by anyone."""


class Lane(msgspec.Struct, frozen=True):
    """The updates of one artifact. `pieces` are those of the true text."""

    kind: str
    updates: tuple[Update, ...]
    truth: str
    pieces: tuple[str, ...]
    is_hinted: bool = False


type Frames = list[tuple[str, bool | None]]
type Maker = Callable[[Sequence[str], Random], Frames]


def so_far(pieces: Sequence[str]) -> list[str]:
    found, text = [], ""
    for piece in pieces:
        text = whole(text + piece)
        found.append(text)
    return found


def deltas(pieces: Sequence[str], _rng: Random) -> Frames:
    return [(piece, number > 0) for number, piece in enumerate(pieces)]


def deltas_append_first(pieces: Sequence[str], _rng: Random) -> Frames:
    return [(piece, True) for piece in pieces]


def snapshots(pieces: Sequence[str], _rng: Random) -> Frames:
    return [(text, number > 0) for number, text in enumerate(so_far(pieces))]


def replacing(pieces: Sequence[str], _rng: Random) -> Frames:
    return [(text, False) for text in so_far(pieces)]


def deltas_then_full(pieces: Sequence[str], rng: Random) -> Frames:
    return [*deltas(pieces, rng), (whole("".join(pieces)), True)]


def deltas_then_replace(pieces: Sequence[str], rng: Random) -> Frames:
    """As google-adk's new executor does."""
    return [*deltas(pieces, rng), (whole("".join(pieces)), rng.choice((False, None)))]


def fasta2a(pieces: Sequence[str], rng: Random) -> Frames:
    return [*deltas_append_first(pieces, rng), (whole("".join(pieces)), False)]


def seed_then_full(pieces: Sequence[str], _rng: Random) -> Frames:
    """As in the report: the first frame is short, the second has all."""
    return [(pieces[0], False), (whole("".join(pieces)), True)]


def whole_once(pieces: Sequence[str], _rng: Random) -> Frames:
    return [(whole("".join(pieces)), None)]


def corrected(pieces: Sequence[str], rng: Random) -> Frames:
    """Snapshots of which one in the second half had a mistake near its end."""
    found = snapshots(pieces, rng)
    number = rng.randrange(len(found) // 2, len(found))
    text = found[number][0]
    if 2 <= number < len(found) - 1 and len(text) >= AGGREGATE_CHARS * 2:
        found[number] = (text[:-3] + "\u00a4" + text[-2:], True)
    return found


PLAIN: dict[str, tuple[Maker, int]] = {
    "deltas": (deltas, 10),
    "deltas_append_first": (deltas_append_first, 3),
    "snapshots": (snapshots, 8),
    "replacing": (replacing, 4),
    "deltas_then_full": (deltas_then_full, 6),
    "deltas_then_replace": (deltas_then_replace, 5),
    "fasta2a": (fasta2a, 3),
    "seed_then_full": (seed_then_full, 2),
    "whole_once": (whole_once, 1),
    "corrected": (corrected, 2),
}


def lane(kind: str, pieces: Sequence[str], rng: Random, artifact: str = FIRST) -> Lane:
    """Return the updates of one artifact of one kind."""
    pieces = [piece for piece in pieces if piece] or ["x"]
    if kind in REACT:
        return react(kind, pieces, rng, artifact)
    if kind == "hinted_deltas":
        metadata: dict[str, object] = {"_agentscope_stream_chunk": True}
        frames = deltas(pieces, rng)
        updates = [Update(artifact, (Part(t, metadata=metadata),), flag) for t, flag in frames]
        return Lane(kind, _last(updates, rng), whole("".join(pieces)), tuple(pieces), True)
    frames = PLAIN[kind][0](pieces, rng)
    if rng.random() < 0.06 and kind not in ("fasta2a", "deltas_append_first"):
        frames = [
            ("", False),
            *[
                (
                    text,
                    True
                    if flag is not None and kind != "replacing" and text != frames[-1][0]
                    else flag,
                )
                for text, flag in frames
            ],
        ]
        frames[1] = (frames[1][0], frames[1][1] if kind == "replacing" else True)
    updates = [Update(artifact, (Part(text),), flag) for text, flag in frames]
    return Lane(kind, _last(updates, rng), whole("".join(pieces)), tuple(pieces))


def react(kind: str, pieces: Sequence[str], rng: Random, artifact: str) -> Lane:
    """Several rounds into one artifact: each streams its text, and then says it whole.

    `react_leak` is how AgentScope's repeat gets out at all: under another message id.
    """
    updates: list[Update] = []
    rounds = rounds_of(pieces, rng)
    for number, own in enumerate(rounds):
        makes = snapshots if kind == "react_snapshots" else deltas_then_full
        frames = makes(own, rng)
        for at, (text, _) in enumerate(frames):
            is_full = at == len(frames) - 1 and kind != "react_snapshots"
            name = f"g{number}-full" if is_full and kind == "react_leak" else f"g{number}"
            metadata: dict[str, object] = (
                {}
                if kind == "react_plain"
                else {"_agentscope_msg_id": name, "_agentscope_block_type": "text"}
            )
            updates.append(Update(artifact, (Part(text, metadata=metadata),), bool(updates)))
    return Lane(kind, _last(updates, rng), whole("".join(pieces)), tuple(pieces))


REACT = {"react_plain": 2, "react_ids": 2, "react_leak": 3, "react_snapshots": 2}
KINDS = [name for name, (_, often) in PLAIN.items() for _ in range(often)]
KINDS += [name for name, often in REACT.items() for _ in range(often)] + ["hinted_deltas"] * 2


def rounds_of(pieces: Sequence[str], rng: Random) -> list[list[str]]:
    """Cut pieces into rounds of at least two pieces and a text long enough to be known again."""
    found: list[list[str]] = [[]]
    for piece in pieces:
        own = found[-1]
        is_enough = len(own) >= 2 and len("".join(own)) >= 2 * AGGREGATE_CHARS
        if is_enough and rng.random() < 0.3 and not _is_cut_pair(own[-1]):
            found.append([])
        found[-1].append(piece)
    if len(found) > 1 and (len(found[-1]) < 2 or len("".join(found[-1])) < 2 * AGGREGATE_CHARS):
        rest = found.pop()
        found[-1] += rest
    return found


def _is_cut_pair(text: str) -> bool:
    return bool(text) and "\ud800" <= text[-1] <= "\udbff"


def _last(updates: list[Update], rng: Random) -> tuple[Update, ...]:
    """Say lastChunk on the last frame, nowhere, or false everywhere."""
    way = rng.choice(("last", "nowhere", "false"))
    if way == "nowhere":
        return tuple(updates)
    flags = [way == "last" and n == len(updates) - 1 for n in range(len(updates))]
    return tuple(
        msgspec.structs.replace(update, last=flag)
        for update, flag in zip(updates, flags, strict=True)
    )


def starts_with(text: str, head: str) -> bool:
    """Compare in UTF-16, as a cut pair asks for."""
    return units(text).startswith(units(head))
