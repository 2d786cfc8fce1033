"""Judges the updates of one lane: the first rule that fits decides.

1  the first update of an artifact creates it
2  an update without `append` replaces, by the protocol (`replacing`)
3  an update that waits is judged by the one after it (`undecided`)
4  an update without text says nothing about the lane
5  by what the lane is known to be (`undecided`, `snapshots`, `deltas`)
"""

from collections.abc import Sequence

import msgspec

from midstream_addons.snapshot_to_delta import deltas, replacing, snapshots, undecided
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.step import KEEP, Reading, Step, Way


class Update(msgspec.Struct, frozen=True):
    """The text that an update brings to one lane.

    `turns` tells that the server names another message or step than before, `is_chunk` that it
    calls the update one of a stream. AgentScope 2.0.2 says so of new text and of snapshots, and
    not of the aggregate behind them.
    """

    text: bytes
    append: bool
    can_hold: bool = True
    turns: bool = False
    is_chunk: bool = False
    is_last: bool = False


def take(lane: Lane, update: Update) -> tuple[Step | None, Step]:
    """Return what becomes of the update that waited, if any, and of this one."""
    new = update.text
    if not lane.is_open:
        lane.is_open, lane.has_chunks = True, update.is_chunk
        return None, lane.keep(new)
    if not update.append and lane.options.append_false == "replace":
        waited = None if lane.held is None else Step(Way.NOTHING, "replace")
        return waited, replacing.replace(lane, new)
    if not new:  # it says nothing, but must not overtake what waits
        return settle(lane, is_end=update.is_last), KEEP
    if lane.replay is not None:
        return None, replacing.go_on(lane, new)
    if lane.has_chunks and not (update.is_chunk or lane.is_declared):
        return _close(lane, new)
    lane.has_chunks = lane.has_chunks or update.is_chunk
    if lane.held is not None:
        return _resolve(lane, new, can_hold=update.can_hold)
    return None, _judge(lane, update)


def settle(lane: Lane, wholes: Sequence[bytes] = (), *, is_end: bool = True) -> Step | None:
    """Return what becomes of the update that waits, if any, without another one."""
    if lane.held is None:
        return None
    if lane.reading is Reading.DELTA:
        return deltas.settle(lane, wholes, is_end=is_end)
    return undecided.settle(lane, wholes)


def finish(lane: Lane, wholes: Sequence[bytes] = ()) -> Step | None:
    """Return what is still to be said at the end of a turn beside an update that waits.

    `wholes` are texts that the server gives as the whole answer.
    """
    if lane.replay is not None:
        return replacing.finish(lane)
    if lane.doubt is not None and lane.can_reset:
        doubted = bytes(lane.text[: lane.segment] + lane.doubt)
        if doubted in wholes and bytes(lane.text) not in wholes:
            doubt = bytes(lane.doubt)
            lane.lock(Reading.DELTA)
            return lane.reset(doubt, "contradiction")
    if not lane.withheld:
        return None
    rest, lane.withheld = lane.withheld, b""
    lane.keep(rest)
    return Step(Way.TAIL, "snapshot", text=rest)


def _close(lane: Lane, new: bytes) -> tuple[Step | None, Step]:
    """Judge an update that is not called one of the stream, behind those that were."""
    whole = bytes(lane.text[: lane.segment]) + new
    waited = settle(lane, [whole])
    if lane.reading is Reading.SNAPSHOT:
        return waited, snapshots.judge(lane, new)
    return waited, deltas.close(lane, new)


def _resolve(lane: Lane, new: bytes, *, can_hold: bool) -> tuple[Step, Step]:
    if lane.reading is not Reading.DELTA:
        return undecided.resolve(lane, new, can_hold=can_hold)
    held, lane.held = lane.held or b"", None
    return lane.keep(held), deltas.judge(lane, new, can_hold=can_hold)


def _judge(lane: Lane, update: Update) -> Step:
    new = update.text
    if not lane.current_bytes:
        return lane.keep(new)
    match lane.reading:
        case Reading.SNAPSHOT:
            return snapshots.judge(lane, new, turns=update.turns)
        case Reading.DELTA:
            return deltas.judge(lane, new, can_hold=update.can_hold, turns=update.turns)
    return undecided.judge(lane, new, can_hold=update.can_hold, turns=update.turns)
