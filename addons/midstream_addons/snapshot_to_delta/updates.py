"""Judges one artifact update: first each of its lanes, then what leaves for the whole of it."""

from collections.abc import Mapping, Sequence

from midstream.core.addon import KEEP, Context, Skipped, Verdict
from midstream.core.frames import Frame
from midstream.dialects.a2a import ArtifactUpdate, Asked
from midstream_addons.snapshot_to_delta import ahead, clean, closed, leaving, prior, reader, render
from midstream_addons.snapshot_to_delta.artifact import Artifact, Waiting
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.sent import Sent, asks
from midstream_addons.snapshot_to_delta.state import Agent, Stream
from midstream_addons.snapshot_to_delta.step import Reading, Step, Way
from midstream_addons.snapshot_to_delta.text import units

type Ctx = Context[Stream, Agent]
type Groups = Mapping[str, Sequence[int]]


def judge(frame: Frame, update: ArtifactUpdate, ctx: Ctx, options: Options) -> Verdict:
    """Judge an artifact update of the server."""
    artifact = _artifact(update, ctx.state, options)
    if artifact is None:
        return Verdict.skip("artifact_bound")
    artifact.ends_whole = ctx.state.keeps_last
    if artifact.is_closed:
        return closed.judge(frame, update, artifact)
    if clean.passes(update, artifact, ctx.state, options):
        return KEEP
    groups = render.lanes_of(update)
    is_first, artifact.is_open = not artifact.is_open, True
    artifact.is_over = False
    creates = is_first and _is_new(update, ctx)
    if is_first and update.append and not creates:
        artifact.not_plain()  # its client may have more of it than is known here
    sent = Sent(options, ctx.now_ns, frame)
    texts = [units(part.text) for part in update.parts if part.text is not None]
    has_data = any(part.text is None for part in update.parts)
    replaces = not (update.append or is_first or options.append_false == "ignore")
    artifact.receive(b"".join(texts), replaces=replaces)
    if replaces and (has_data or not artifact.is_plain or set(groups) != set(artifact.lanes)):
        _begin_again(artifact, sent)
    if has_data or len({*groups, *artifact.lanes}) > 1:
        artifact.not_plain()
    waited, steps = _judge_lanes(update, groups, artifact, is_first=is_first, ctx=ctx, sent=sent)
    if waited is not None:
        leaving.settle_held(artifact, waited, sent)
    if any(step.way is Way.HOLD for step in steps.values()):
        return _hold(frame, update, artifact, next(iter(groups)), sent, ctx)
    leaving.add(frame, update, artifact, steps, sent, creates=creates)
    return _bounded(frame, artifact, sent, ctx)


def _is_new(update: ArtifactUpdate, ctx: Ctx) -> bool:
    """Tell whether a client has nothing of an artifact yet, as far as one can know."""
    stream = ctx.state
    is_known = prior.knows(ctx.conversation, update)
    return not (is_known or stream.has_forgotten or stream.asked is Asked.SUBSCRIBE)


def _judge_lanes(
    update: ArtifactUpdate,
    groups: Groups,
    artifact: Artifact,
    *,
    is_first: bool,
    ctx: Ctx,
    sent: Sent,
) -> tuple[Step | None, dict[str, Step]]:
    options = sent.options
    turns = _turns(update, artifact)
    can_hold = len(groups) == 1 and options.hold_ms > 0 and options.output != "annotate"
    waited: Step | None = None
    steps: dict[str, Step] = {}
    for block, indexes in groups.items():
        parts = [update.parts[index] for index in indexes]
        lane = _lane(block, update, artifact, ctx, options)
        before, steps[block] = reader.take(
            lane,
            reader.Update(
                b"".join([units(part.text or "") for part in parts]),
                append=update.append or is_first,
                can_hold=can_hold,
                turns=turns,
                is_chunk=all(part.is_chunk for part in parts),
                is_last=update.last,
            ),
        )
        waited = before or waited
    held = artifact.held
    if held is not None and held.block not in groups and held.block in artifact.lanes:
        waited = reader.settle(artifact.lanes[held.block], is_end=False)
    return waited, steps


def _artifact(update: ArtifactUpdate, stream: Stream, options: Options) -> Artifact | None:
    key = (update.task_id, update.artifact_id)
    found = stream.artifacts.get(key)
    if found is None and stream.has_room(options.max_artifacts):
        found = stream.artifacts[key] = Artifact()
    return found


def _lane(
    block: str, update: ArtifactUpdate, artifact: Artifact, ctx: Ctx, options: Options
) -> Lane:
    lane = artifact.lanes.get(block)
    if lane is None:
        declared = None if options.stream == "auto" else Reading(options.stream)
        lane = Lane(options, declared, prior.bits(ctx.conversation))
        lane.can_reset = artifact.is_plain
        artifact.lanes[block] = lane
    if update.stream_mode and options.stream == "auto":
        lane.declare(Reading(update.stream_mode))
    return lane


def _begin_again(artifact: Artifact, sent: Sent) -> None:
    """Forget what an update replaces as a whole."""
    if artifact.held is not None:
        leaving.settle_held(artifact, Step(Way.NOTHING, "replace"), sent)
    artifact.lanes.clear()
    artifact.data.clear()
    artifact.is_plain = True


def _turns(update: ArtifactUpdate, artifact: Artifact) -> bool:
    """Tell whether the server names another message, or another step, than it did before."""
    named = next((part.message_id for part in update.parts if part.message_id), "")
    before = (artifact.message_id, artifact.segment)
    artifact.message_id = named or artifact.message_id
    artifact.segment = update.segment or artifact.segment
    now = (artifact.message_id, artifact.segment)
    return any(was and was != is_ for was, is_ in zip(before, now, strict=True))


def _hold(
    frame: Frame, update: ArtifactUpdate, artifact: Artifact, block: str, sent: Sent, ctx: Ctx
) -> Verdict:
    ahead.release(artifact, sent)
    artifact.held = Waiting(frame, update, ctx.now_ns, block)
    return sent.verdict(hold=True, asks=asks(ctx.state, sent.options))


def _bounded(frame: Frame, artifact: Artifact, sent: Sent, ctx: Ctx) -> Verdict:
    """Send, and forget an artifact that has grown too large."""
    stream, options = ctx.state, sent.options
    stream.size_bytes += artifact.size_bytes - artifact.counted_bytes
    artifact.counted_bytes = artifact.size_bytes
    is_over = (
        artifact.counted_bytes > options.max_lane_bytes
        or stream.size_bytes > options.max_text_bytes
    )
    if is_over:
        ahead.release(artifact, sent)
        stream.close(artifact)
        sent.notes.append(Skipped("text_bound"))
    is_ahead = artifact.ahead is not None and artifact.ahead.frame is frame
    return sent.verdict(hold=is_ahead, asks=asks(stream, options) if is_ahead else ())
