"""What has to be said before a turn ends: what waits, and that mended artifacts are complete."""

from collections.abc import Iterable, Sequence

from midstream.core.addon import Context, Verdict, Wait
from midstream.dialects.a2a import Event, Message, Part, Task
from midstream_addons.snapshot_to_delta import ahead, leaving, prior, reader, render
from midstream_addons.snapshot_to_delta.artifact import Artifact
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.sent import HOLD, TRAILER, Sent
from midstream_addons.snapshot_to_delta.state import Agent, Stream
from midstream_addons.snapshot_to_delta.step import Way
from midstream_addons.snapshot_to_delta.text import information, text_of, units

type Ctx = Context[Stream, Agent]
NS_PER_MS = 1_000_000
WEIGHTY_BITS = 24.0
"""A part of a final message counts as a whole answer with this much information."""


def end(event: Event, ctx: Ctx, sent: Sent) -> None:
    """Finish the artifacts of a task before the event that ends its turn."""
    task_id = getattr(event, "task_id", "")
    wholes = _wholes(event)
    ctx.state.statuses.pop(task_id, None)
    for (task, artifact_id), artifact in ctx.state.artifacts.items():
        if task_id and task and task != task_id:
            continue
        _finish(artifact, [*wholes, *_artifact_wholes(event, artifact_id)], sent)
        ahead.release(artifact, sent, is_last=not artifact.is_sealed)
        _trail(artifact, wholes, sent, is_told=isinstance(event, Task))
        if artifact.is_over:
            continue
        artifact.is_over = True
        for lane in artifact.lanes.values():
            prior.learn(ctx.conversation, lane)
        prior.remember(ctx.conversation, prior.key_of(task, artifact_id), artifact)


def let_go(ctx: Ctx, sent: Sent) -> None:
    """Send whatever waits, since nothing more will come."""
    for (task, artifact_id), artifact in ctx.state.artifacts.items():
        _finish(artifact, (), sent)
        _release(artifact, sent)
        if not artifact.is_over and task:  # it may go on in another stream
            prior.remember(ctx.conversation, prior.key_of(task, artifact_id), artifact)


def wake(ctx: Ctx, options: Options) -> Verdict:
    """Send what has waited long enough, and ask again for what has not."""
    stream, sent = ctx.state, Sent(options, ctx.now_ns)
    stream.is_waiting = False
    oldest_ns = ctx.now_ns - options.hold_ms * NS_PER_MS
    left_ns: list[int] = []
    for artifact in stream.artifacts.values():
        if artifact.held is not None and artifact.held.since_ns <= oldest_ns:
            _settle(artifact, (), sent, is_end=False)
        if artifact.ahead is not None and artifact.ahead.since_ns <= oldest_ns:
            _release(artifact, sent, is_to_trail=True)
        waiting = (artifact.held, artifact.ahead)
        left_ns += [each.since_ns - oldest_ns for each in waiting if each is not None]
    if not left_ns:
        return sent.verdict()
    stream.is_waiting = True
    return sent.verdict(asks=(Wait(-(-min(left_ns) // NS_PER_MS), HOLD),))


def _finish(artifact: Artifact, wholes: Sequence[bytes], sent: Sent) -> None:
    _settle(artifact, wholes, sent, is_end=True)
    for lane in artifact.lanes.values():
        step = reader.finish(lane, wholes)
        if step is not None and artifact.model is not None:
            ahead.release(artifact, sent)
            text, append = text_of(step.text), step.way is not Way.RESET
            sent.add(render.made(artifact.model, text, append=append), step.rule)


def _settle(artifact: Artifact, wholes: Sequence[bytes], sent: Sent, *, is_end: bool) -> None:
    held = artifact.held
    lane = None if held is None else artifact.lanes.get(held.block)
    step = None if lane is None else reader.settle(lane, wholes, is_end=is_end)
    if step is not None:
        leaving.settle_held(artifact, step, sent)


def _release(artifact: Artifact, sent: Sent, *, is_to_trail: bool = False) -> None:
    """Let an update go that waited to learn whether it is the last, as its server marked it.

    Should it have been the last, another one says so in the end.
    """
    waited = artifact.ahead
    if waited is None:
        return
    ahead.release(artifact, sent, is_last=waited.update.last)
    if is_to_trail and artifact.model is None:
        name = artifact.new_id(waited.update)
        artifact.model = render.model(waited.frame, waited.update, name)


def _trail(artifact: Artifact, wholes: Sequence[bytes], sent: Sent, *, is_told: bool) -> None:
    """Say that a mended artifact is complete, unless the server has said so, or goes on.

    `is_told`: a task with all of it comes next.
    """
    if artifact.model is None or artifact.is_sealed or artifact.is_closed:
        return
    if sent.options.last_chunk == "pass" or _is_to_go_on(artifact, wholes):
        return
    artifact.is_sealed = True
    text = text_of(artifact.text) if artifact.ends_whole and not is_told else ""
    sent.add(render.made(artifact.model, text, append=not text, last=True), TRAILER)


def _is_to_go_on(artifact: Artifact, wholes: Sequence[bytes]) -> bool:
    """Tell whether a final message says more than the artifact: what is beyond may follow."""
    said = artifact.text
    return any(len(whole) > len(said) and whole.startswith(said) for whole in wholes if said)


def _wholes(event: Event) -> list[bytes]:
    """Return what the event may give as the whole answer."""
    message = event if isinstance(event, Message) else getattr(event, "message", None)
    if not isinstance(message, Message):
        return []
    return [*_joined(message.parts), *_weighty(message.parts)]


def _artifact_wholes(event: Event, artifact_id: str) -> list[bytes]:
    if not isinstance(event, Task):
        return []
    found = [a.parts for a in event.artifacts if a.artifact_id == artifact_id]
    return [text for parts in found for text in (*_joined(parts), *_each(parts))]


def _joined(parts: Iterable[Part]) -> list[bytes]:
    texts = [part.text for part in parts if part.text is not None]
    return [units("".join(texts)), units("\n".join(texts))]


def _weighty(parts: Sequence[Part]) -> list[bytes]:
    """Return what one of several parts may say alone: some servers repeat all updates as parts."""
    return [text for text in _each(parts) if len(parts) > 1 and information(text) >= WEIGHTY_BITS]


def _each(parts: Iterable[Part]) -> list[bytes]:
    return [units(part.text) for part in parts if part.text is not None]
