"""Whole streams: lanes in some order, and the ends that servers put behind them.

`make(seed)` gives always the same stream for a seed. What a client has to show in the end is in
`truth` and `final`.
"""

from collections.abc import Sequence
from random import Random

import msgspec
from tests.addons.a2a import texts
from tests.addons.a2a.events import (
    Event,
    Part,
    Status,
    Task,
    Update,
    notation,
    parts,
)
from tests.addons.a2a.forms import FORMS, RPC03, Form
from tests.addons.a2a.lanes import AGGREGATE_CHARS, KINDS, REACT, Lane, lane

MAX_PIECES = 40
FINALS = ("none",) * 6 + (
    "equal",
    "equal",
    "parts",
    "strip",
    "longer",
    "different",
    "asks",
    "fails",
    "emitted",
    "emitted_whole",
)
QUESTION, TROUBLE, OTHER = "Which one is it?", "The tool is gone.", "A wholly other remark."


EMITTING = ("deltas", "snapshots", "deltas_then_full", *REACT)


class Stream(msgspec.Struct, frozen=True):
    """One answer on the wire. `truth` is the text of each artifact, `final` what the completed
    status still has to say; `is_decided`: something in the stream tells the whole text.
    """

    name: str
    form: Form
    events: tuple[Event, ...]
    truth: dict[str, str]
    final: str = ""
    lanes: tuple[Lane, ...] = ()
    ending: str = "none"
    is_decided: bool = False

    def wires(self) -> list[bytes]:
        return [self.form.wire(event) for event in self.events]

    def __str__(self) -> str:
        kinds = "+".join(one.kind for one in self.lanes)
        return f"{self.name} {self.form.name} {kinds} {self.ending}: {notation(self.events)}"


def make(seed: int, kind: str = "") -> Stream:
    """Return the stream of a seed, all of its lanes of one kind if that is given."""
    rng = Random(seed)
    form = rng.choice(FORMS)
    count = rng.choice((1, 1, 1, 1, 2, 3))
    lanes = [_lane(kind or rng.choice(KINDS), f"{'abc'[n]}1", form, rng) for n in range(count)]
    return finished(f"seed {seed}", form, lanes, rng, rng.choice(FINALS))


def finished(
    name: str, form: Form, lanes: Sequence[Lane], rng: Random, ending: str = "none"
) -> Stream:
    """Return the stream of some lanes, with a beginning and an end."""
    truth = {one.updates[0].artifact: one.truth for one in lanes}
    updates = _mixed(lanes, rng)
    order = list(dict.fromkeys(update.artifact for update in updates))
    answer = "".join(truth[artifact] for artifact in order)
    end, final, truth, is_decided = _end(ending, answer, lanes, truth)
    task = _final_task(updates, truth, rng) if ending in ("none", "equal") else None
    closing: list[Event] = []
    if task is not None and ending == "none" and rng.random() < 0.6:
        closing = [task[0]]
    else:
        closing = [end, *([task[0]] if task is not None and rng.random() < 0.4 else [])]
    if task is not None and closing[0] is task[0]:
        is_decided = task[1]
    events = (Task("submitted", history=("question",)), Status("working"), *updates, *closing)
    return Stream(name, form, events, truth, final, tuple(lanes), ending, is_decided)


def short(form: Form = RPC03, *frames: str | tuple[str, bool], last: bool = False) -> Stream:
    """Return a stream of one artifact by hand: texts, all but the first appended."""
    updates = [
        Update("a1", parts(frame), number > 0)
        if isinstance(frame, str)
        else Update("a1", parts(frame[0]), frame[1])
        for number, frame in enumerate(frames)
    ]
    if last:
        updates[-1] = msgspec.structs.replace(updates[-1], last=True)
    events: tuple[Event, ...] = (Task("submitted"), *updates, Status("completed", final=True))
    return Stream("by hand", form, events, {})


def _lane(kind: str, artifact: str, form: Form, rng: Random) -> Lane:
    source, grain = rng.choice(texts.SOURCES), rng.choice(texts.GRAINS)
    length = (
        rng.choice((60, 80, 160, 160, 400, 900)) if rng.random() < 0.995 else rng.choice((3, 9))
    )
    if kind == "hinted_deltas":
        source = rng.choice((*texts.SOURCES, texts.echoes))
    if grain is texts.code_units and not form.takes_surrogates:
        grain = texts.tokens
    text = source(rng, length)
    pieces = _first(grain(text, rng), rng.randint(3, MAX_PIECES))
    if grain is texts.code_units and "\ud800" <= pieces[-1][-1] <= "\udbff":
        pieces[-1] = pieces[-1][:-1]
    if not "".join(pieces).strip():  # nobody answers with blanks alone
        pieces.append("end")
    return lane(kind, pieces, rng, artifact)


def _first(pieces: list[str], count: int) -> list[str]:
    """Take some of the pieces, but enough for a text that can be known again."""
    length = 0
    for number, piece in enumerate(pieces, 1):
        length += len(piece)
        if number >= count and length >= 2 * AGGREGATE_CHARS:
            return pieces[:number]
    return pieces


def _mixed(lanes: Sequence[Lane], rng: Random) -> list[Update]:
    """Put the updates of lanes into one order that keeps the order of each."""
    waiting = [list(one.updates) for one in lanes]
    found = []
    while any(waiting):
        own = rng.choice([updates for updates in waiting if updates])
        found.append(own.pop(0))
    return found


def _end(
    ending: str, answer: str, lanes: Sequence[Lane], truth: dict[str, str]
) -> tuple[Status, str, dict[str, str], bool]:
    """Return the last status, what of it must stay, the truth with it, and whether it decides."""
    done = "completed"
    match ending:
        case "equal":
            return Status(done, parts(answer), "m-final", True), "", truth, True
        case "parts" if len(lanes) == 1 and not _has_cut_pair(lanes[0]):
            own = tuple(Part(piece) for piece in lanes[0].pieces)
            return Status(done, own, "m-final", True), "", truth, True
        case "emitted" if lanes[0].kind in EMITTING and len(lanes) == 1:
            # AgentScope Java 1.0 puts each of its frames into the message, 2.0 joins those of an id
            sent = tuple(part for update in lanes[0].updates for part in update.parts)
            return Status(done, sent, "m-final", True), "", truth, False
        case "emitted_whole" if lanes[0].kind == "snapshots" and len(lanes) == 1:
            sent = parts("".join(update.text for update in lanes[0].updates))
            return Status(done, sent, "m-final", True), "", truth, False
        case "strip" if answer.strip():
            return Status(done, parts(f"\n{answer.strip()}\n"), "m-final", True), "", truth, True
        case "longer" if len(lanes) == 1:
            more = f"{answer} And this comes on top."
            (name,) = truth
            return Status(done, parts(more), "m-final", True), "", {name: more}, True
        case "different":
            return Status(done, parts(OTHER), "m-final", True), OTHER, truth, False
        case "asks":
            return Status("input-required", parts(QUESTION), "m-q", True), "", truth, False
        case "fails":
            return Status("failed", parts(TROUBLE), "m-f", True), "", truth, False
    return Status(done, final=True), "", truth, False


def _has_cut_pair(one: Lane) -> bool:
    return any(piece != piece.encode("utf-8", "ignore").decode() for piece in one.pieces)


def _final_task(
    updates: Sequence[Update], truth: dict[str, str], rng: Random
) -> tuple[Task, bool] | None:
    """Return a last task, its artifacts whole or as a server's store has piled them up."""
    way = rng.choice(("", "", "", "whole", "piled"))
    if not way:
        return None
    if way == "whole":
        held = tuple((name, parts(text)) for name, text in truth.items())
        return Task("completed", held, tuple(truth.values())), True
    return Task("completed", piled(updates)), False


def piled(updates: Sequence[Update]) -> tuple[tuple[str, tuple[Part, ...]], ...]:
    """Return the artifacts as a server's store has them: append adds parts, else they replace."""
    store: dict[str, tuple[Part, ...]] = {}
    for update in updates:
        before = store.get(update.artifact, ()) if update.append else ()
        store[update.artifact] = before + update.parts
    return tuple(store.items())
