"""How an offer ends other than by the client's ACK in time."""

from midstream.core.addon import KEEP, Context, Reconnected, Skipped, Verdict
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_chat import Response
from midstream_addons.replay_overlap import burst, offer
from midstream_addons.replay_overlap.offered import Form, Mended, Offer, Phase
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]


def undo(taken: Offer, ctx: Ctx) -> Verdict:
    """Put back what the reset took: the client has not asked for the replay.

    Until it does, the server alone would send it nothing of the stream but its end.
    """
    socket = ctx.state
    socket.offer = None
    mended = socket.mended[taken.stream]
    frames = [frame for frame in offer.replayed(taken, ctx) if _is_due_unasked(frame)]
    mended.is_muted = not any(map(burst.response_of, frames))
    notes = (Skipped("no_ack"),)
    out = (*_restored(mended), *frames)
    return Verdict(out, "undo", settles=ctx.held, notes=notes)


def mute(frame: Frame, response: Response, mended: Mended) -> Verdict:
    """Keep back what a client that never asked would not get; at the end it gets the outcome."""
    if not response.done:
        return Verdict.drop("undo")
    mended.is_muted = False
    return Verdict.replace("undo", *_restored(mended), frame)


def give_up(ctx: Ctx, options: Options) -> Verdict:
    """Send everything that is held, reset first: a bound is reached, or nothing more will come."""
    taken = ctx.state.offer
    if taken is None:
        return KEEP
    if ctx.held and taken.phase is Phase.SENT:
        return offer.deliver(taken, ctx)
    if ctx.held and taken.has_replayed:
        taken.is_acked = True
        return offer.send(taken, ctx, options)
    ctx.state.offer = None
    notes = (Skipped("no_replay"), Reconnected("passed"))
    is_asking = taken.is_late and not taken.is_acked
    none = (chat.resume_none(ctx.state.probe),) if is_asking else ()
    return Verdict((*none, *ctx.held), settles=ctx.held, notes=notes)


def cut(ctx: Ctx, options: Options) -> Verdict:
    """End an offer whose server sends no more.

    A whole replay goes out still; half of one stays, for the next socket gets it all.
    """
    taken = ctx.state.offer
    if taken is None:
        return KEEP
    if taken.phase is Phase.SENT or taken.is_whole:
        return give_up(ctx, options)
    ctx.state.offer = None
    frames = [frame for frame in offer.replayed(taken, ctx) if _is_due_unasked(frame)]
    return Verdict(tuple(frames), "fetch_replay", settles=ctx.held)


def forget(ctx: Ctx) -> Verdict:
    """Forget what this socket knows of a chat that was emptied; nothing of it may leave."""
    socket, taken = ctx.state, ctx.state.offer
    is_asking = taken is not None and taken.phase is Phase.FETCHED and socket.has_asked
    none = (chat.resume_none(socket.probe),) if is_asking else ()
    socket.forget(ctx.conversation.generation)
    if taken is None:
        return KEEP
    if taken.phase is Phase.FETCHED:  # the replay that the proxy asked for is on its way
        socket.note_mended(taken.stream, Mended(Form.PASSED, None, is_muted=True))
    return Verdict(none, "fetch_replay", settles=ctx.held)


def _restored(mended: Mended) -> tuple[Frame, ...]:
    if mended.stream is None or mended.form is Form.PASSED:
        return ()
    return (chat.message_updated(mended.stream.json()),)


def _is_due_unasked(frame: Frame) -> bool:
    """Tell whether the server would have sent this to a client that took no offer."""
    response = burst.response_of(frame)
    return response is None or (response.done and not response.replay)
