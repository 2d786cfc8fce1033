"""What becomes of updates while a lane is UNKNOWN.

At most one update waits. The one after it tells: a snapshot goes on from the snapshot before it,
new text does so only by chance.
"""

from collections.abc import Sequence
from typing import Final

from midstream_addons.snapshot_to_delta import deltas
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.step import HOLD, Reading, Step, Way
from midstream_addons.snapshot_to_delta.text import (
    UNIT_BYTES,
    are_alike,
    common_prefix,
    information,
    unfinished_bytes,
)

LIKE_PREFIX: Final = 0.6
"""How much of the text so far a correction shares with it, at least."""
LIKE_LENGTH: Final = 0.8
FEW_BITS: Final = 4.0


def judge(lane: Lane, new: bytes, *, can_hold: bool, turns: bool = False) -> Step:
    """Judge an update that brings text, after one that did."""
    if lane.extends(new):
        is_longer = len(new) > lane.current_bytes
        lane.bits += lane.current_information()
        if is_longer and lane.bits >= lane.locking_bits:
            return _go_on(lane, new, lane.current + new)
        is_plausible = lane.bits >= 0  # an agent known for new text starts below
    else:
        is_plausible = not turns and (_is_stale(lane, new) or _resembles(lane, new))
    if is_plausible and (can_hold or lane.can_reset):
        lane.held = new
        return HOLD if can_hold else settle(lane)
    lane.lock(Reading.DELTA)
    return deltas.judge(lane, new, can_hold=can_hold, turns=turns)


def resolve(lane: Lane, new: bytes, *, can_hold: bool) -> tuple[Step, Step]:
    """Judge the update that waits by the one after it; return what becomes of each."""
    held, lane.held = lane.held or b"", None
    goes_on = len(new) > len(held) and new.startswith(held)
    doubt = lane.current + held + new
    if lane.extends(held):
        if goes_on or (new == held and information(held) >= lane.firm_bits):
            lane.bits += information(held) if goes_on else 0
            first = _tail(lane, held)
            return first, _go_on(lane, new, doubt)
    elif lane.contains_as_prefix(held):
        if len(new) > lane.current_bytes and lane.extends(new):
            lane.bits += lane.current_information()
            return Step(Way.NOTHING, "stale"), _go_on(lane, new, doubt)
    elif goes_on and lane.can_reset:
        lane.bits += information(held)
        lane.lock(Reading.SNAPSHOT, doubt)
        return Step(Way.NOTHING, "correction"), lane.reset(new, "correction")
    lane.lock(Reading.DELTA)
    return lane.keep(held), deltas.judge(lane, new, can_hold=can_hold)


def settle(lane: Lane, wholes: Sequence[bytes] = ()) -> Step:
    """Judge the update that waits without another one.

    `wholes` are texts that the server gives as the whole answer: they decide where they fit. Where
    none does, a text that begins like all that was said is taken for a snapshot, and its other
    reading is kept, or is unlikely; anything else leaves, for a repeat is better than a loss.
    """
    held, lane.held = lane.held or b"", None
    doubt = lane.current + held
    as_snapshot, as_delta = _readings(lane, held)
    reading = _fitting(wholes, as_snapshot, as_delta)
    can_risk = lane.can_reset or lane.bits >= lane.options.lock_bits
    if reading is None and as_snapshot is not None and can_risk:
        is_longer = len(held) > lane.current_bytes
        if is_longer or lane.current_information() >= FEW_BITS:
            reading = Reading.SNAPSHOT
    if reading is Reading.SNAPSHOT:
        step = _tail(lane, held)
        lane.lock(Reading.SNAPSHOT, doubt)
        return step
    lane.lock(Reading.DELTA)
    return lane.keep(held)


def _readings(lane: Lane, held: bytes) -> tuple[bytes | None, bytes]:
    before = bytes(lane.text[: lane.segment])
    return (before + held if lane.extends(held) else None), bytes(lane.text) + held


def _fitting(wholes: Sequence[bytes], as_snapshot: bytes | None, as_delta: bytes) -> Reading | None:
    if as_snapshot is not None and any(whole == as_snapshot for whole in wholes):
        return Reading.SNAPSHOT
    if any(whole == as_delta for whole in wholes):
        return Reading.DELTA
    if as_snapshot is not None and any(are_alike(whole, as_snapshot) for whole in wholes):
        return Reading.SNAPSHOT
    if any(are_alike(whole, as_delta) or as_delta in whole for whole in wholes):
        return Reading.DELTA
    if as_snapshot is None:
        return None
    return Reading.SNAPSHOT if any(as_snapshot in whole for whole in wholes) else None


def _go_on(lane: Lane, new: bytes, doubt: bytes) -> Step:
    step = _tail(lane, new)
    lane.lock(Reading.SNAPSHOT, doubt)
    return step


def _tail(lane: Lane, new: bytes) -> Step:
    end = len(new) - unfinished_bytes(new)
    lane.withheld = new[end:]
    return lane.tail(new, "snapshot", lane.current_bytes, end)


def _is_stale(lane: Lane, new: bytes) -> bool:
    return lane.contains_as_prefix(new) and information(new) >= lane.options.lock_bits


def _resembles(lane: Lane, new: bytes) -> bool:
    """Tell whether an update may be a snapshot that corrects the one before it."""
    size = lane.current_bytes
    if not lane.can_reset or len(new) < LIKE_LENGTH * size:
        return False
    common = common_prefix(new, lane.text, lane.segment)
    return (
        common >= max(LIKE_PREFIX * size, UNIT_BYTES)
        and information(new[:common]) >= lane.options.lock_bits
    )
