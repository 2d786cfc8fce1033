"""Takes repeated parts out of tasks that are read whole, and of messages that say all again.

A server keeps every update it has sent as a part of its artifact, some of its final message, too.
Where the updates were snapshots, or ended in an aggregate, that says everything twice and more.
What is left counts only on proof: it is what was streamed, or no reading but one fits.
"""

from collections.abc import Sequence

from midstream.core.addon import KEEP, Context, Verdict
from midstream.core.frames import Frame
from midstream.dialects import a2a, a2a_write
from midstream.dialects.a2a import Artifact, Asked, Part, StatusUpdate, Task
from midstream.dialects.a2a_write import ArtifactEdit
from midstream_addons.snapshot_to_delta import prior
from midstream_addons.snapshot_to_delta.artifact import Artifact as Known
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.parts import are_reducible, reductions
from midstream_addons.snapshot_to_delta.state import Agent, Stream
from midstream_addons.snapshot_to_delta.step import Reading
from midstream_addons.snapshot_to_delta.text import are_alike, text_of, units
from midstream_addons.snapshot_to_delta.text import digest as digest_of

type Ctx = Context[Stream, Agent]


def compacted(frame: Frame, task: Task, ctx: Ctx, options: Options) -> Frame:
    """Return the task without repeats; the same frame where there is none to prove."""
    if options.compact_task == "off":
        return frame
    edits = {}
    for artifact in task.artifacts:
        found = _edit(task, artifact, ctx, options)
        if found is not None:
            edits[artifact.index] = found
    return a2a_write.with_artifacts(frame, task, edits) if edits else frame


def judge(frame: Frame, task: Task, ctx: Ctx, options: Options) -> Verdict:
    """Judge a task that is no event at the end of a stream."""
    out = compacted(frame, task, ctx, options)
    return KEEP if out is frame else Verdict.replace("compact_task", out)


def judge_first(frame: Frame, task: Task, ctx: Ctx, options: Options) -> Verdict:
    """Judge the task that a stream begins with: later updates go on from what it says."""
    out = compacted(frame, task, ctx, options)
    read = a2a.read(out)
    if isinstance(read, Task):
        _seed(read, ctx, options)
    return KEEP if out is frame else Verdict.replace("compact_task", out)


def _seed(task: Task, ctx: Ctx, options: Options) -> None:
    """Take over what a client learns from a task, for sure only if it has asked to go on."""
    for artifact in task.artifacts:
        key = (task.task_id, artifact.artifact_id)
        if key in ctx.state.artifacts or not ctx.state.has_room(options.max_artifacts):
            continue
        known = ctx.state.artifacts[key] = Known()
        known.is_open = True
        if ctx.state.asked is not Asked.SUBSCRIBE:
            known.not_plain()
            continue
        if any(part.text is None for part in artifact.parts):
            known.not_plain()
        for part in artifact.parts:
            if part.text is not None:
                _seeded(known, part.block, ctx, options).keep(units(part.text))


def _seeded(known: Known, block: str, ctx: Ctx, options: Options) -> Lane:
    lane = known.lanes.get(block)
    if lane is None:
        declared = None if options.stream == "auto" else Reading(options.stream)
        lane = known.lanes[block] = Lane(options, declared, prior.bits(ctx.conversation))
        lane.is_open = True
        if len(known.lanes) > 1:
            known.not_plain()
    lane.can_reset = known.is_plain
    return lane


def _edit(task: Task, artifact: Artifact, ctx: Ctx, options: Options) -> ArtifactEdit | None:
    parts = artifact.parts
    if not parts or any(part.text is None for part in parts):
        return None
    whole = _whole(parts)
    known = ctx.state.artifacts.get((task.task_id, artifact.artifact_id))
    if known is not None and known.text:
        found = _as_streamed(whole, parts, [known])
        if found is not None or whole == known.text:
            return found
    key = prior.key_of(task.task_id, artifact.artifact_id)
    digest = ctx.conversation.digests.get(key)
    if not are_reducible(parts) or digest == digest_of(whole):
        return None
    told = _whole(task.message.parts) if task.message and task.state == "completed" else b""
    for reduced in reductions(parts, options, are_snapshots=key in ctx.conversation.snapshots):
        is_told = bool(told) and are_alike(reduced.text, told) and not are_alike(whole, told)
        if reduced.is_firm or is_told or digest == digest_of(reduced.text):
            return ArtifactEdit(reduced.texts, reduced.removed)
    return None


def without_repeats(frame: Frame, status: StatusUpdate, ctx: Ctx, options: Options) -> Frame:
    """Return the status that completes a task with each part of the answer once.

    The same frame where what is left is not what was streamed. Parts without text stay.
    """
    message = status.message
    if message is None or status.state != "completed" or options.compact_task == "off":
        return frame
    known = [
        artifact
        for (task_id, _), artifact in ctx.state.artifacts.items()
        if task_id == status.task_id and artifact.spoken
    ]
    found = _repeats_in(message.parts, known, options)
    if found is None:
        return frame
    return a2a_write.with_message_texts(frame, status, found.texts, found.removed)


def _repeats_in(
    parts: Sequence[Part], known: Sequence[Known], options: Options
) -> ArtifactEdit | None:
    """Return the edit that leaves of a message what was streamed, None if that cannot be proven."""
    whole = _whole(parts)
    each = [artifact.spoken for artifact in known]
    said = [b"".join(each), *each]
    if not whole or not each or any(are_alike(whole, text) for text in said):
        return None
    found = _as_streamed(whole, parts, known)
    if found is None and are_reducible(parts):
        for reduced in reductions(parts, options):
            if any(are_alike(reduced.text, text) for text in said):
                return ArtifactEdit(reduced.texts, reduced.removed)
    return found


def _whole(parts: Sequence[Part]) -> bytes:
    return b"".join([units(part.text or "") for part in parts])


def _as_streamed(
    whole: bytes, parts: Sequence[Part], known: Sequence[Known]
) -> ArtifactEdit | None:
    """Return the edit for texts that are all a server has sent of an artifact, repeats and all."""
    digest = digest_of(whole)
    texts = [index for index, part in enumerate(parts) if part.text is not None]
    for artifact in known:
        if artifact.received.digest() == digest and artifact.spoken != whole:
            return ArtifactEdit({texts[0]: text_of(artifact.spoken)}, texts[1:])
    return None
