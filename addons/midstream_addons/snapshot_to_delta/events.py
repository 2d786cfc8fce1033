"""Judges one event of the server by its kind, and lets pass what cannot be read or edited."""

from midstream.core.addon import KEEP, Context, Skipped, Verdict
from midstream.core.errors import EditError
from midstream.core.frames import Frame, Kind
from midstream.dialects import a2a
from midstream.dialects.a2a import (
    ArtifactUpdate,
    Event,
    Failure,
    StatusUpdate,
    Task,
    Unreadable,
)
from midstream_addons.snapshot_to_delta import prior, status, tasks, turn, updates
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.sent import Sent
from midstream_addons.snapshot_to_delta.state import Agent, Stream

type Ctx = Context[Stream, Agent]


def judge(frame: Frame, event: Event | Unreadable, ctx: Ctx, options: Options) -> Verdict:
    """Judge an event; one that cannot be edited as it should be passes as it came."""
    try:
        if isinstance(event, Unreadable):
            return _unreadable(frame, ctx, options)
        return _judge(frame, event, ctx, options)
    except EditError:
        return _unsure(frame, "not_editable", ctx)


def _judge(frame: Frame, event: Event, ctx: Ctx, options: Options) -> Verdict:
    if isinstance(event, ArtifactUpdate):
        if options.status_text != "pass":
            verdict = status.judge_artifact(frame, event, ctx, options)
            if verdict is not KEEP:
                return verdict
        verdict = updates.judge(frame, event, ctx, options)
        prior.note(ctx.conversation, ctx.state, event)
        return verdict
    if isinstance(event, Task) and frame.kind is Kind.BODY:
        return tasks.judge(frame, event, ctx, options)
    if a2a.ends_turn(event) or isinstance(event, Failure):
        return _ending(frame, event, ctx, options)
    if isinstance(event, Task):
        return tasks.judge_first(frame, event, ctx, options)
    if isinstance(event, StatusUpdate) and options.status_text != "pass":
        return status.judge(frame, event, ctx, options)
    return KEEP


def _ending(frame: Frame, event: Event, ctx: Ctx, options: Options) -> Verdict:
    """Send what is still due before an event that ends a turn."""
    sent = Sent(options, ctx.now_ns, frame)
    said = ctx.state.statuses.get(getattr(event, "task_id", ""))
    if isinstance(event, Failure):
        turn.let_go(ctx, sent)
    else:
        turn.end(event, ctx, sent)
    out, rule = frame, "compact_task"
    if isinstance(event, Task):
        out = tasks.compacted(frame, event, ctx, options)
    elif isinstance(event, StatusUpdate):
        out, rule = tasks.without_repeats(frame, event, ctx, options), "compact_message"
        if out is frame and options.status_text == "dedupe":
            out, rule = status.without_said(frame, event, said), "status_text"
    if out is frame and not sent.frames and not sent.settled:
        return KEEP
    sent.add(out, "" if out is frame else rule)
    return sent.verdict()


def _unreadable(frame: Frame, ctx: Ctx, options: Options) -> Verdict:
    """Let a malformed event pass; if it may be an artifact's, its client's text is uncertain."""
    if b"rtifact" in frame.wire:
        return _unsure(frame, "malformed", ctx)
    return Verdict.skip("malformed")


def _unsure(frame: Frame, reason: str, ctx: Ctx) -> Verdict:
    """Let all pass as it came, and edit no more of the artifacts that are open."""
    for artifact in ctx.state.artifacts.values():
        ctx.state.close(artifact)
        artifact.held = artifact.ahead = None
    held = tuple(ctx.held)
    return Verdict((*held, frame), settles=held, notes=(Skipped(reason),))
