"""Judges the parts of an artifact or message as if they came one by one.

A server that keeps every update as a part keeps the repeats, too.
"""

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from midstream.dialects.a2a import Part
from midstream_addons.snapshot_to_delta import reader
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.step import Reading, Step, Way
from midstream_addons.snapshot_to_delta.text import text_of, units


class Reduced(msgspec.Struct):
    """Parts without repeats: new texts by place, places left out, and the text that is left.

    `is_firm` tells that no other reading of the parts fits.
    """

    texts: dict[int, str] = {}
    removed: set[int] = set()
    is_firm: bool = False
    text: bytes = b""


def are_reducible(parts: Sequence[Part]) -> bool:
    """Tell whether parts are several texts of one lane, so that one can repeat another."""
    return len(parts) > 1 and all(
        part.text is not None and part.block == parts[0].block for part in parts
    )


def reductions(
    parts: Sequence[Part], options: Options, *, are_snapshots: bool = False
) -> Iterator[Reduced]:
    """Return what the parts may come to: as they are to be judged, and the last one alone.

    `are_snapshots` tells that the server was seen to send the artifact so.
    """
    judged = _judged(parts, options)
    if judged.texts or judged.removed:
        yield judged
    last = parts[-1].text or ""
    is_chain = all(
        (later.text or "").startswith(earlier.text or "")
        for earlier, later in itertools.pairwise(parts)
    )
    removed = set(range(len(parts) - 1))
    yield Reduced({}, removed, is_firm=are_snapshots and is_chain, text=units(last))


def _judged(parts: Sequence[Part], options: Options) -> Reduced:
    lane = Lane(options, None if options.stream == "auto" else Reading(options.stream))
    found = Reduced()
    texts = [units(part.text or "") for part in parts]
    held: int | None = None
    for index, part in enumerate(parts):
        turns = index > 0 and part.message_id != parts[index - 1].message_id
        update = reader.Update(texts[index], append=index > 0, turns=turns, is_chunk=part.is_chunk)
        before, step = reader.take(lane, update)
        if before is not None and held is not None:
            _note(before, held, texts, found)
            held = None
        if step.way is Way.HOLD:
            held = index
        else:
            _note(step, index, texts, found)
    last = reader.settle(lane)
    if last is not None and held is not None:
        _note(last, held, texts, found)
    is_decided = lane.aggregates > 0 or lane.reading is Reading.SNAPSHOT
    found.is_firm = lane.is_declared or (lane.doubt is None and is_decided)
    found.text = bytes(lane.text)
    return found


def _note(step: Step, index: int, texts: Sequence[bytes], found: Reduced) -> None:
    match step.way:
        case Way.NOTHING:
            found.removed.add(index)
        case Way.TAIL:
            found.texts[index] = text_of(texts[index][step.start : step.end])
        case Way.RESET:
            found.removed.update(range(index))
            found.texts = {index: text_of(step.text)}
        case _:
            pass
