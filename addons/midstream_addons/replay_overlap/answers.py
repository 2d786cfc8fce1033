"""What the host brings back: messages fetched from the server, and waits that are over."""

from typing import Final

from midstream.core.addon import KEEP, Answer, Context, Fetch, Verdict, Wait
from midstream_addons.replay_overlap import burst, ending, heal, offer, relist
from midstream_addons.replay_overlap.history import history_target, read_history, streamed_bytes
from midstream_addons.replay_overlap.offered import Offer, Phase
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]

LEARNED_WAIT_MS: Final = 50
"""An end of the stream that crossed with the fetch has this long to arrive."""


def on_fetched(answer: Answer, ctx: Ctx, options: Options) -> Verdict:
    """Take the server's messages for whatever they were asked for."""
    taken = ctx.state.offer
    if taken is not None and taken.is_learning:
        return _learn(taken, answer, ctx, options)
    if taken is not None and taken.is_fetching:
        return heal.take_final_history(taken, answer, ctx, options)
    return heal.take_history(answer, ctx, options)


def on_waited(wait: Wait, ctx: Ctx, options: Options) -> Verdict:
    """Do what a time was waited for."""
    name, _, number = wait.name.partition(":")
    match name:
        case "heal":
            return heal.ask(ctx)
        case "healed":
            ctx.state.healed = None
            return KEEP
        case "relist":
            return relist.say_again(ctx)
    taken = ctx.state.offer
    if taken is None or str(taken.number) != number:
        return KEEP
    return _go_on(name, taken, ctx, options)


def _go_on(name: str, taken: Offer, ctx: Ctx, options: Options) -> Verdict:
    """Go on with an offer."""
    match name:
        case "ask":
            taken.is_due = True
            return offer.advance(ctx, options)
        case "learned":
            _settle(taken, ctx)
            return offer.advance(ctx, options)
        case "final":
            taken.fetches += 1
            return Verdict.keep(asks=(Fetch(history_target(ctx.exchange.head)),))
        case "ack" if taken.phase is Phase.SENT:
            return ending.undo(taken, ctx)
        case "burst" if not taken.is_whole:
            return ending.give_up(ctx, options)
        case "burst" if taken.is_learning or taken.is_fetching:  # no answer: go on without one
            taken.is_learning = taken.is_fetching = False
            return offer.send(taken, ctx, options)
    return KEEP


def _settle(taken: Offer, ctx: Ctx) -> None:
    """Trust what was learnt, unless the stream has ended: then the messages may have held it."""
    transcript, frames = ctx.conversation.transcript, offer.replayed(taken, ctx)
    taken.is_learning = False
    taken.mended = taken.mended or transcript.streams.get(taken.stream)
    if burst.ends(frames):
        taken.mended, taken.least_bytes = None, streamed_bytes(burst.replay_of(frames))
        transcript.end(taken.stream)
        transcript.forget_messages()


def _learn(taken: Offer, answer: Answer, ctx: Ctx, options: Options) -> Verdict:
    """Take the baseline of a stream whose start nobody saw from the server's messages.

    While a stream runs, the server's messages do not hold what it adds. If it ended meanwhile, its
    end arrives within `LEARNED_WAIT_MS`, and then the messages are fetched again.
    """
    socket = ctx.state
    documents = read_history(answer)
    if documents is None or socket.chats != taken.chats:  # they lack what was said meanwhile
        taken.is_learning = False
        return offer.advance(ctx, options)
    transcript = ctx.conversation.transcript
    transcript.streams.pop(taken.stream, None)
    transcript.done.pop(taken.stream, None)
    transcript.set_list(documents, from_server=True)
    socket.places.pop(taken.stream, None)
    for frame in offer.replayed(taken, ctx):
        response = burst.response_of(frame)
        if response is not None:
            transcript.respond(response, frame.wire, socket.places)
            taken.mended = taken.mended or transcript.streams.get(taken.stream)
    return Verdict.keep(asks=(Wait(LEARNED_WAIT_MS, f"learned:{taken.number}"),))
