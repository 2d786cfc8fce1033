"""What the server sends: lists and messages, streams, and its side of the resume handshake."""

from typing import Final

import msgspec

from midstream.core.addon import KEEP, Context, Reconnected, Skipped, Verdict, Wait
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.ui_stream import is_expressible
from midstream_addons.replay_overlap import ending, gate, heal, offer, relist, sending
from midstream_addons.replay_overlap.client import emptied
from midstream_addons.replay_overlap.drafts import Rewriter
from midstream_addons.replay_overlap.offered import Form, Mended, Phase
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]

ATTACH_FORMS: Final = {"r3": Form.REBUILD, "r1": Form.OBSERVED}
"""How the clients that need it attach to the continuation of their own tool."""


def on_message(frame: Frame, message: chat.Message, ctx: Ctx, options: Options) -> Verdict:
    """Judge a frame of the server."""
    socket, shared = ctx.state, ctx.conversation
    match message:
        case chat.Response():
            return _on_response(frame, message, ctx, options)
        case chat.Resuming():
            return _on_resuming(frame, message, ctx, options)
        case chat.ResumeNone():
            if socket.offer is not None:
                return Verdict.drop("fetch_replay")
            socket.has_asked = False
        case chat.Identity():
            return heal.greet(ctx, options)
        case chat.MessageList():
            documents = [bytes(document) for document in message.messages]
            shared.transcript.set_list(documents, from_server=True)
            again = relist.note_list(frame, ctx, options)
            return with_asks(_in_turn(ctx), again)
        case chat.MessageUpdated():
            shared.transcript.update(bytes(message.message))
            socket.closing_list = None
            return _in_turn(ctx)
        case chat.Clear():
            shared.forget()
            return emptied(frame, ctx)
    return KEEP


def _in_turn(ctx: Ctx) -> Verdict:
    """Let messages wait behind a replay that the client has been offered: it is older."""
    taken = ctx.state.offer
    return offer.HOLD if taken is not None and taken.phase is Phase.SENT else KEEP


def _on_resuming(frame: Frame, resuming: chat.Resuming, ctx: Ctx, options: Options) -> Verdict:
    shared, socket = ctx.conversation, ctx.state
    if socket.offer is not None:
        is_same = socket.offer.stream == resuming.id
        return Verdict.drop("fetch_replay") if is_same else KEEP
    stream = shared.transcript.streams.get(resuming.id)
    is_over = resuming.id in shared.transcript.done
    if is_over and ctx.observe:
        return Verdict.skip("stream_over")
    if stream is None and socket.has_answered_tool and not is_over:
        return _on_attach(frame, resuming, ctx, options)
    if not ctx.observe:
        return offer.take(resuming, ctx, options)
    if stream is None:
        skipped = Skipped("unknown_stream")
        return Verdict.keep(notes=(skipped, Reconnected("unknown")))
    if resuming.id in socket.mended:
        return KEEP
    form = gate.choose(ctx, options, stream)
    socket.note_mended(resuming.id, Mended(form, stream))
    return Verdict((frame,), "reset", notes=(Reconnected("passed"),))


def _on_attach(frame: Frame, resuming: chat.Resuming, ctx: Ctx, options: Options) -> Verdict:
    """Judge the offer of a continuation that a client's tool has just started."""
    form = ATTACH_FORMS.get(options.client)
    if form is None:
        return Verdict.skip("unknown_stream")
    return sending.attach(frame, resuming, form, ctx)


def _on_response(frame: Frame, response: chat.Response, ctx: Ctx, options: Options) -> Verdict:
    socket, shared = ctx.state, ctx.conversation
    before = shared.transcript.streams.get(response.id)
    is_continuation = before is not None and before.is_continuation
    taken = socket.offer if socket.offer and socket.offer.stream == response.id else None
    shared.transcript.respond(response, frame.wire, socket.places)
    socket.bound_places()
    if response.done and taken is None:
        shared.transcript.end(response.id)
    if before is None and response.id in shared.transcript.streams:
        shared.is_unfinished = False
    if response.done:
        socket.ended_ns, socket.ended_stream = ctx.now_ns, response.id
        socket.places.pop(response.id, None)
        if is_continuation:
            shared.waiting_pages.clear()
    again = relist.note_response(response, is_continuation, ctx, options)
    if taken is not None:
        verdict = offer.hold(frame, response, taken, ctx, options)
        return with_asks(verdict, again)
    mended = socket.mended.get(response.id)
    if mended is not None and mended.is_muted:
        return ending.mute(frame, response, mended)
    if mended is not None and response.replay:
        return with_asks(_rewritten(frame, response, ctx), again)
    return Verdict.keep(asks=again) if again else KEEP


def _rewritten(frame: Frame, response: chat.Response, ctx: Ctx) -> Verdict:
    """Rewrite a frame of a replay that the client fetched itself."""
    mended = ctx.state.mended[response.id]
    stream = mended.stream or ctx.conversation.transcript.streams.get(response.id)
    if stream is None or mended.form is Form.PASSED or not stream.exact:
        return KEEP
    form = mended.form if is_expressible(stream.base.parts) else Form.BASELINE
    drafts = Rewriter(stream, form, ctx.conversation.results).drafts(frame, response)
    frames = tuple(draft.finish() for draft in drafts)
    if frames == (frame,):
        return KEEP
    why = {"request": response.id, "form": form.name.lower(), "message": stream.target}
    return Verdict.replace("rebuild", *frames, why=why)


def with_asks(verdict: Verdict, asks: tuple[Wait, ...]) -> Verdict:
    if not asks:
        return verdict
    return msgspec.structs.replace(verdict, asks=(*verdict.asks, *asks))
