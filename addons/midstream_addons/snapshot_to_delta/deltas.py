"""What becomes of the updates of a lane that is read as DELTA.

All of it leaves, but for one kind: a server that closes a run of new text by sending the whole run
again (an aggregate). Equal text alone is no proof of that; position is: the aggregate begins and
ends where the updates that it repeats do, and there are at least two of them. A short one that
repeats a whole run waits: it is an aggregate only if it is the last of its run.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.step import HOLD, Step, Way
from midstream_addons.snapshot_to_delta.text import (
    STRIP_SLACK_BYTES,
    UNIT_BYTES,
    are_alike,
    information,
)

WEIGHTY_LOCKS: Final = 2
"""A short repeat counts as an aggregate with this many times `lock_bits`."""
LEAST_REPEATED: Final = 2


def judge(lane: Lane, new: bytes, *, can_hold: bool = False, turns: bool = False) -> Step:
    """Judge an update that brings text."""
    step = None
    if not lane.is_declared and may_repeat(lane, new):
        step = _repeated(lane, new, can_hold=can_hold)
    if step is None and turns:
        lane.end_segment()
    return step or lane.keep(new)


def may_repeat(lane: Lane, new: bytes) -> bool:
    """Tell whether an update is worth a closer look: the test of every update of new text.

    It repeats the end of the text, or is about as long as all of it.
    """
    is_long = len(new) >= lane.current_bytes - STRIP_SLACK_BYTES
    if not (is_long or lane.text.endswith(new)):
        return False
    return information(new) >= lane.options.lock_bits


def _repeated(lane: Lane, new: bytes, *, can_hold: bool) -> Step | None:
    """Judge what may be an aggregate, None if it is none."""
    if not _is_weighty(lane, new):
        if can_hold and lane.is_repeated and new == lane.current_near(new):
            lane.held = new  # nothing behind it: an aggregate; new text behind it: new text, too
            return HOLD
        return None
    is_run = lane.is_repeated or (lane.aggregates > 0 and lane.current_bytes > 0)
    if is_run and lane.extends(new) and lane.current_information() >= lane.options.lock_bits:
        return _aggregate(lane, lane.tail(new, "aggregate", lane.current_bytes))
    if repeats_updates(lane, new, LEAST_REPEATED) or (
        lane.is_repeated and are_alike(new, lane.current_near(new))
    ):
        return _aggregate(lane, Step(Way.NOTHING, "aggregate"))
    return None


def close(lane: Lane, new: bytes) -> Step:
    """Judge an update that its server sets apart from the stream of new text before it."""
    if lane.extends(new):
        return _aggregate(lane, lane.tail(new, "aggregate", lane.current_bytes))
    if repeats_updates(lane, new, 1) or are_alike(new, lane.current_near(new)):
        return _aggregate(lane, Step(Way.NOTHING, "aggregate"))
    return lane.keep(new)


def settle(lane: Lane, wholes: Sequence[bytes], *, is_end: bool) -> Step:
    """Judge a short repeat that waits without another update."""
    held, lane.held = lane.held or b"", None
    said_twice = bytes(lane.text) + held
    if is_end and not any(said_twice in whole for whole in wholes):
        return _aggregate(lane, Step(Way.NOTHING, "aggregate"))
    return lane.keep(held)


def _aggregate(lane: Lane, step: Step) -> Step:
    lane.aggregates += 1
    lane.end_segment()
    return step


def _is_weighty(lane: Lane, new: bytes) -> bool:
    is_long = len(new) >= lane.options.agg_min_chars * UNIT_BYTES
    return is_long or information(new) >= WEIGHTY_LOCKS * lane.options.lock_bits


def repeats_updates(lane: Lane, new: bytes, least: int) -> bool:
    """Tell whether a text is that of the last updates together, at least so many of them."""
    start = len(lane.text) - len(new)
    if start < 0 or not lane.text.endswith(new):
        return False
    first = bisect_left(lane.bounds, start)  # the update that ends where the repeat begins
    begins_at_border = start == 0 or (first < len(lane.bounds) and lane.bounds[first] == start)
    repeated = len(lane.bounds) - (first if start == 0 else first + 1)
    return begins_at_border and repeated >= least
