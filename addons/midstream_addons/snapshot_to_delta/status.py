"""Text that an executor streams through working statuses: said once, or lifted into an artifact.

By the protocol a status message takes the place of the one before it. Executors that stream through
statuses send their text three times all the same: piece by piece, once more whole, and as an
artifact. A message that asks for something, or tells of a failure, is never touched.

What is lifted is in its place before the artifact that repeats it, so that one is emptied; erasing
the lifted one instead would show all twice to clients that only append.
"""

from midstream.core.addon import KEEP, Context, Verdict
from midstream.core.frames import Frame
from midstream.dialects import a2a_write
from midstream.dialects.a2a import ArtifactUpdate, Message, StatusUpdate
from midstream_addons.snapshot_to_delta import deltas, reader
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.state import Agent, StatusText, Stream
from midstream_addons.snapshot_to_delta.step import Reading, Step, Way
from midstream_addons.snapshot_to_delta.text import are_alike, information, text_of, units

type Ctx = Context[Stream, Agent]
SPEAKING = ("submitted", "working")
LIFTED_ID = "status-text"


def judge(frame: Frame, event: StatusUpdate, ctx: Ctx, options: Options) -> Verdict:
    """Judge a status that goes on with the turn."""
    message = event.message
    new = _text(message)
    if message is None or not new or event.state not in SPEAKING:
        return KEEP
    said = _said(event.task_id, ctx.state, options)
    if said is None:
        return Verdict.skip("artifact_bound")
    step = _step(said, message, new)
    if options.status_text == "lift":
        return _lift(frame, event, said, step, new)
    if step.way is Way.NOTHING:
        return Verdict.replace("status_text", a2a_write.without_message(frame, event))
    if step.way is not Way.TAIL:
        return KEEP
    texts = {0: text_of(new[step.start : step.end])}
    removed = range(1, len(message.parts))
    return Verdict.replace(
        "status_text", a2a_write.with_message_texts(frame, event, texts, removed)
    )


def judge_artifact(frame: Frame, update: ArtifactUpdate, ctx: Ctx, options: Options) -> Verdict:
    """Judge the first update of an artifact that may repeat what the statuses have said."""
    said = ctx.state.statuses.get(update.task_id)
    if said is None or said.is_repeated:
        return KEEP
    if (update.task_id, update.artifact_id) in ctx.state.artifacts:
        return KEEP
    if any(part.text is None for part in update.parts) or not update.parts:
        return KEEP
    new = units("".join([part.text or "" for part in update.parts]))
    if not (are_alike(new, bytes(said.lane.text)) or deltas.repeats_updates(said.lane, new, 1)):
        return KEEP
    said.is_repeated = True
    removed = range(1, len(update.parts))
    emptied = a2a_write.changed(frame, update, texts={0: ""}, removed=removed, append=False)
    return Verdict.replace("status_text", emptied)


def without_said(frame: Frame, event: StatusUpdate, said: StatusText | None) -> Frame:
    """Return the status that completes a task without a message that says what others have."""
    message = event.message
    if said is None or message is None or event.state != "completed":
        return frame
    new = _text(message)
    is_said = new and are_alike(new, bytes(said.lane.text))
    return a2a_write.without_message(frame, event) if is_said else frame


def _text(message: Message | None) -> bytes:
    if message is None or message.role != "agent":
        return b""
    if any(part.text is None for part in message.parts):
        return b""
    return units("".join([part.text or "" for part in message.parts]))


def _said(task_id: str, stream: Stream, options: Options) -> StatusText | None:
    said = stream.statuses.get(task_id)
    if said is None and len(stream.statuses) < options.max_artifacts:
        said = stream.statuses[task_id] = StatusText(Lane(options))
        said.lane.can_reset = False
    if said is not None and said.lane.size_bytes > options.max_lane_bytes:
        return None
    return said


def _step(said: StatusText, message: Message, new: bytes) -> Step:
    lane = said.lane
    if message.message_id and message.message_id == said.message_id and lane.extends(new):
        lane.declare(Reading.SNAPSHOT)  # the same message again, and longer: its text so far
    said.message_id = message.message_id
    if new == bytes(lane.text) and information(new) >= lane.options.lock_bits:
        return Step(Way.NOTHING, "aggregate")  # the only piece so far, once more whole
    _, step = reader.take(lane, reader.Update(new, append=True, can_hold=False))
    return step


def _lift(frame: Frame, event: StatusUpdate, said: StatusText, step: Step, new: bytes) -> Verdict:
    quiet = a2a_write.without_message(frame, event)
    if step.way is Way.NOTHING:
        return Verdict.replace("status_text", quiet)
    text = new[step.start : step.end] if step.way is Way.TAIL else new
    append, said.is_lifted = said.is_lifted, True
    update = a2a_write.lifted(frame, event, LIFTED_ID, text_of(text), append=append)
    return Verdict.replace("status_text", update, quiet)
