"""What becomes of the updates of a lane that is read as SNAPSHOT."""

from typing import Final

from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.step import Reading, Step, Way
from midstream_addons.snapshot_to_delta.text import (
    UNIT_BYTES,
    common_prefix,
    information,
    unfinished_bytes,
)

CORRECTED: Final = 0.5
"""How much of the text so far a correction shares with it, at least."""
LEAST_COMMON_BYTES: Final = 4 * UNIT_BYTES


def judge(lane: Lane, new: bytes, *, turns: bool = False) -> Step:
    """Judge an update that brings text."""
    doubt = lane.doubt
    if doubt is not None:
        doubt += new
    if lane.extends(new):
        if len(new) > lane.current_bytes and lane.bits < lane.firm_bits:
            lane.bits += lane.current_information()
        if lane.bits >= lane.firm_bits:
            lane.doubt = None
        end = len(new) - unfinished_bytes(new)
        lane.withheld = new[end:]
        return lane.tail(new, "snapshot", lane.current_bytes, end)
    if lane.contains_as_prefix(new) and _is_evident(lane, new):
        return Step(Way.NOTHING, "stale")
    if turns:
        return _next_turn(lane, new)
    if lane.can_reset and _corrects(lane, new):
        return _correction(lane, new)
    if doubt is not None and lane.can_reset:  # it was new text all along
        lane.lock(Reading.DELTA)
        return _restart(lane, bytes(doubt), "contradiction")
    return _next_turn(lane, new)


def _next_turn(lane: Lane, new: bytes) -> Step:
    """Deliver the first snapshot of what the server says next, behind what it has said."""
    if lane.withheld and lane.can_reset:
        return _restart(lane, lane.current + lane.withheld + new, "contradiction")
    lane.end_segment()
    return lane.keep(new)


def _is_evident(lane: Lane, text: bytes) -> bool:
    return lane.is_declared or information(text) >= lane.options.lock_bits


def _corrects(lane: Lane, new: bytes) -> bool:
    common = common_prefix(new, lane.text, lane.segment)
    return (
        common >= max(CORRECTED * lane.current_bytes, LEAST_COMMON_BYTES)
        and _is_evident(lane, new[:common])
    )  # fmt: skip


def _correction(lane: Lane, new: bytes) -> Step:
    """Deliver a snapshot that says something else than the one before it."""
    if lane.options.rewrite != "tail":
        return _restart(lane, new, "correction")
    common = common_prefix(new, lane.text, lane.segment)
    step = lane.tail(new, "correction", common)
    lane.end_segment()
    return step


def _restart(lane: Lane, text: bytes, rule: str) -> Step:
    lane.withheld = b""
    return lane.reset(text, rule)
