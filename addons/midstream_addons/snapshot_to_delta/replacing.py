"""What becomes of an update that replaces, by the protocol, what its artifact held.

No evidence is needed here: after it, the client's text must be the update's. Where that begins like
what the client has, only the rest leaves; where it is a part of it, the server is saying everything
again, and nothing leaves until it overtakes.
"""

from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.step import KEEP, Reading, Step, Way
from midstream_addons.snapshot_to_delta.text import are_alike


def replace(lane: Lane, new: bytes) -> Step:
    """Judge an update without `append` for a known artifact."""
    lane.doubt, lane.withheld, lane.replay, lane.held = None, b"", None, None
    lane.segment = 0
    if lane.is_declared and lane.reading is Reading.DELTA:
        lane.reset(new, "replace")
        return KEEP
    if lane.extends(new):
        return lane.tail(new, "replace", lane.current_bytes)
    if lane.text.startswith(new):
        lane.replay = bytearray(new)
        return Step(Way.NOTHING, "replay")
    if are_alike(new, lane.current_near(new)):
        return Step(Way.NOTHING, "replace")
    return lane.reset(new, "replace")


def go_on(lane: Lane, new: bytes) -> Step:
    """Judge an update that goes on from one that began everything again."""
    replay = bytes(lane.replay or b"")
    is_whole = lane.reading is Reading.SNAPSHOT and new.startswith(replay)
    said = 0 if is_whole else len(replay)
    replay = new if is_whole else replay + new
    if lane.text.startswith(replay):
        lane.replay = None if len(replay) == len(lane.text) else bytearray(replay)
        return Step(Way.NOTHING, "replay")
    lane.replay = None
    if lane.extends(replay):
        return lane.tail(new, "replay", lane.current_bytes - said)
    return lane.reset(replay, "replay")


def finish(lane: Lane) -> Step | None:
    """Put the shorter text in place where the server meant that and said no more."""
    replay, lane.replay = lane.replay, None
    return None if replay is None else lane.reset(bytes(replay), "replace")
