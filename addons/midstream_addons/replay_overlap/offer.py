"""The life of one offer of a running stream, on one socket.

    phase     event                                next      what leaves
    -         the server offers a stream           FETCHED   the ACK; the offer is held
    FETCHED   a frame of the stream                FETCHED   nothing: it is held
    FETCHED   replay whole; asked for, or waited long
                and the stream goes on                SENT      the reset, then the offer
                and the stream is over                -         what the server has now, or as above
                and the gate does not hold            SENT      the offer, no reset
    SENT      a frame of the stream                SENT      nothing: it is held
    SENT      the client's ACK                     -         the replay, rewritten, paced
    SENT      no ACK in time                       -         the undo
    -         a late ACK of the client             FETCHED   the ACK; the reset waits for the replay
    any       a bound reached                      -         the reset, the offer, the replay so far
    any       the chat is emptied                  -         nothing of before

The proxy takes the offer itself, so that the replay is at hand before the client is told: from
reset to rebuilt message is one round trip of the client, and none if the stream is already over.
"""

from typing import Final

from midstream.core.addon import KEEP, Context, Fetch, Reconnected, Skipped, Verdict, Wait
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_chat import Response, Resuming
from midstream_addons.replay_overlap import burst, gate, sending
from midstream_addons.replay_overlap.history import history_target
from midstream_addons.replay_overlap.offered import Form, Mended, Offer, Phase
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]

HOLD: Final = Verdict(hold=True)


def take(resuming: Resuming, ctx: Ctx, options: Options) -> Verdict:
    """Take an offer: ACK it to the server, and hold it until its replay is whole."""
    socket = ctx.state
    stream = ctx.conversation.transcript.streams.get(resuming.id)
    socket.offers += 1
    taken = Offer(resuming.id, socket.offers, socket.chats)
    is_over = resuming.id in ctx.conversation.transcript.done  # as another socket has told
    taken.mended, taken.is_learning = stream, stream is None and not is_over
    socket.offer = taken
    waits = (
        Wait(options.ask_wait_ms, f"ask:{taken.number}"),
        Wait(options.burst_wait_ms, f"burst:{taken.number}"),
    )
    learning = (Fetch(history_target(ctx.exchange.head)),) if taken.is_learning else ()
    ack = chat.resume_ack(resuming.id)
    return Verdict((ack,), "fetch_replay", hold=True, asks=waits + learning)


def retake(stream: str, mended: Mended, ctx: Ctx, options: Options) -> Verdict:
    """Let an ACK that came after the undo pass, and mend the replay that it fetches."""
    socket = ctx.state
    socket.offers += 1
    taken = Offer(stream, socket.offers, socket.chats, form=mended.form, is_late=True)
    taken.mended, taken.is_acked = mended.stream, True
    socket.offer = taken
    return Verdict.keep(asks=(Wait(options.burst_wait_ms, f"burst:{taken.number}"),))


def hold(frame: Frame, response: Response, taken: Offer, ctx: Ctx, options: Options) -> Verdict:
    """Hold a frame of the offered stream, and go on if the replay is now whole."""
    transcript = ctx.conversation.transcript
    stream = transcript.streams.get(taken.stream)
    if is_early_end(taken, response):
        taken.has_early_end = True
        if stream is not None:
            stream.is_over = True
        return HOLD
    if not taken.is_learning:
        taken.mended = taken.mended or stream
    taken.has_replayed = taken.has_replayed or response.replay
    if not taken.is_whole and (response.replayComplete or response.done):
        taken.is_whole = True
        transcript.refold(taken.stream, burst.replay_of(replayed(taken, ctx, frame)))
    if response.done or (taken.is_whole and taken.has_early_end):
        transcript.end(taken.stream)
    return advance(ctx, options, frame)


def is_early_end(taken: Offer, response: Response) -> bool:
    """Tell whether this end has overtaken the replay, as it does when the ACK comes late."""
    return response.done and not response.replay and not taken.has_replayed


def advance(ctx: Ctx, options: Options, at_hand: Frame | None = None) -> Verdict:
    """Send the offer on if its replay is whole and its time has come.

    `at_hand` is a frame of the stream that the chain does not hold yet.
    """
    socket, taken = ctx.state, ctx.state.offer
    if taken is None:
        return KEEP
    is_wanted = socket.has_asked or taken.is_due or taken.is_acked
    is_ready = taken.is_whole and is_wanted and not taken.is_learning and not taken.is_fetching
    if taken.phase is not Phase.FETCHED or not is_ready:
        return KEEP if at_hand is None else HOLD
    if taken.fetches == 0 and gate.ended_well(replayed(taken, ctx, at_hand)):
        taken.fetches, taken.is_fetching = 1, True
        asks = (Fetch(history_target(ctx.exchange.head)),)
        return Verdict(hold=at_hand is not None, asks=asks)
    return send(taken, ctx, options, at_hand)


def send(taken: Offer, ctx: Ctx, options: Options, at_hand: Frame | None = None) -> Verdict:
    """Send the reset, if the gate holds, and the offer; the replay too if its ACK is there."""
    frames = replayed(taken, ctx, at_hand)
    is_over = taken.mended is None and taken.stream in ctx.conversation.transcript.done
    reason = "stream_over" if is_over else gate.reason_to_pass(frames, taken.mended)
    mended = Mended(Form.PASSED, taken.mended)
    if taken.mended is not None and not reason:
        mended.form = taken.form or gate.choose(ctx, options, taken.mended)
    ctx.state.note_mended(taken.stream, mended)
    opening = sending.opening(taken, mended, frames, ctx)
    taken.phase = Phase.SENT
    rule = "" if reason else "reset"
    notes = (Skipped(reason), Reconnected("passed")) if reason else (Reconnected("rebuilt"),)
    why = gate.facts(taken.stream, mended, ctx, options)
    if taken.is_acked:
        ctx.state.offer = None
        out = (*opening, *sending.replay(mended, frames, ctx))
        return Verdict(out, rule, settles=ctx.held, paced=True, notes=notes, why=why)
    asks = (Wait(options.ack_wait_ms, f"ack:{taken.number}"),)
    settles = () if taken.is_late else ctx.held[:1]
    is_held = at_hand is not None
    return Verdict(
        tuple(opening), rule, hold=is_held, settles=settles, asks=asks, notes=notes, why=why
    )


def deliver(taken: Offer, ctx: Ctx) -> Verdict:
    """Answer the client's ACK with the replay that is at hand."""
    frames = replayed(taken, ctx)
    mended = ctx.state.mended[taken.stream]
    out = sending.replay(mended, frames, ctx)
    ctx.state.offer = None
    rule = "fetch_replay" if mended.form is Form.PASSED else "rebuild"
    sent = set(map(id, out))
    repairs = max(1, sum(id(frame) not in sent for frame in frames))
    return Verdict(tuple(out), rule, settles=ctx.held, paced=True, repairs=repairs)


def replayed(taken: Offer, ctx: Ctx, at_hand: Frame | None = None) -> list[Frame]:
    """Return the frames of the offered stream that are held, the offer itself left out."""
    has_offer = taken.phase is Phase.FETCHED and not taken.is_late
    held = list(ctx.held)[1:] if has_offer else list(ctx.held)
    return held if at_hand is None else [*held, at_hand]
