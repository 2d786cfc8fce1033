"""Brings a client up to date with what the server has, after a stream that ended while away."""

from typing import Final

import msgspec

from midstream.core.addon import KEEP, Answer, Context, Fetch, Reconnected, Skipped, Verdict, Wait
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_chat import Upload
from midstream.dialects.cloudflare_compaction import without_repeats
from midstream_addons.replay_overlap import burst, offer
from midstream_addons.replay_overlap.history import (
    history_target,
    is_behind,
    last_assistant,
    read_history,
)
from midstream_addons.replay_overlap.offered import Offer
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]

CROSSING: Final = Wait(2_000, "healed")
"""A turn that comes this soon after a list may have been sent before the list arrived."""


def greet(ctx: Ctx, options: Options) -> Verdict:
    """See whether a reconnected socket stays quiet: an offer would have come before this."""
    socket = ctx.state
    if not socket.is_again or not ctx.conversation.is_unfinished or socket.is_healing:
        return KEEP
    socket.is_healing = True
    return Verdict.keep(asks=(Wait(options.heal_wait_ms, "heal"),))


def is_quiet(ctx: Ctx) -> bool:
    """Tell whether nothing is under way on this socket that a list of messages could disturb."""
    socket = ctx.state
    is_resuming = socket.offer is not None or socket.acked or socket.mended or socket.places
    return socket.is_healing and not (is_resuming or socket.chats or socket.has_answered_tool)


def ask(ctx: Ctx) -> Verdict:
    """Ask for the server's messages."""
    if not is_quiet(ctx):
        return KEEP
    ctx.state.heal_fetches += 1
    return Verdict.keep(asks=(Fetch(history_target(ctx.exchange.head)),))


def take_history(answer: Answer, ctx: Ctx, options: Options) -> Verdict:
    """Hand over the server's messages, once they hold at least what has passed."""
    if not is_quiet(ctx):
        return KEEP
    documents = read_history(answer)
    if documents is None:
        return Verdict.skip("fetch_failed")
    if is_behind(documents, ctx.conversation.transcript):
        if ctx.state.heal_fetches < options.max_fetches:
            return Verdict.keep(asks=(Wait(options.refetch_wait_ms, "heal"),))
        return Verdict.skip("history_behind")
    return Verdict(tuple(state_of(documents, ctx)), "heal", asks=(CROSSING,))


def state_of(documents: list[bytes], ctx: Ctx) -> list[Frame]:
    """Return the frames that bring a client to these messages, and take them for true."""
    documents = without_repeats(documents)
    ctx.conversation.transcript.set_list(documents, from_server=True)
    ctx.conversation.is_unfinished = False
    ctx.state.healed = documents
    last = last_assistant(documents)
    updated = [] if last is None else [chat.message_updated(last)]
    return [chat.message_list(documents), *updated]


def say_again(frame: Frame, upload: Upload, ctx: Ctx) -> Verdict:
    """Let a turn pass; where it crossed with the list handed over, say the list with it."""
    healed, ctx.state.healed = ctx.state.healed, None
    if healed is None:
        return KEEP
    known = {head.id for head in map(chat.read_message_head, healed) if head is not None}
    heads = [(document, chat.read_message_head(document)) for document in upload.messages]
    fresh = [d for d, head in heads if head and head.role == "user" and head.id not in known]
    if not fresh:
        return KEEP
    return Verdict.replace("heal", frame, chat.message_list([*healed, *fresh]))


def take_final_history(taken: Offer, answer: Answer, ctx: Ctx, options: Options) -> Verdict:
    """End an offered stream that is over: nothing is resumed, the final state is handed over."""
    socket = ctx.state
    documents = read_history(answer)
    transcript = ctx.conversation.transcript
    if documents is not None and socket.chats != taken.chats:
        documents = None  # they may lack what was said meanwhile
    if documents is not None and is_behind(documents, transcript, taken.least_bytes):
        if taken.fetches < options.max_fetches:
            return Verdict.keep(asks=(Wait(options.refetch_wait_ms, f"final:{taken.number}"),))
        documents = None
    taken.is_fetching = False
    if documents is None:
        return _noted(offer.send(taken, ctx, options), Skipped("fetch_failed"))
    frames = offer.replayed(taken, ctx)
    end = burst.ends(frames)[-1]
    is_asking = socket.has_asked and not taken.is_late
    none = (chat.resume_none(socket.probe),) if is_asking else ()
    others = [frame for frame in frames if burst.response_of(frame) is None]
    socket.offer = None
    return Verdict(
        (*none, end, *others, *state_of(documents, ctx)),
        "heal",
        settles=ctx.held,
        repairs=len(frames),
        asks=(CROSSING,),
        notes=(Reconnected("rebuilt"),),
    )


def _noted(verdict: Verdict, note: Skipped) -> Verdict:
    return msgspec.structs.replace(verdict, notes=(*verdict.notes, note))
