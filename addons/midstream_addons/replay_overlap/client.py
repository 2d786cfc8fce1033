"""What the client sends: turns, tool outcomes, and its side of the resume handshake."""

import msgspec

from midstream.core.addon import KEEP, Context, Verdict
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream_addons.replay_overlap import ending, heal, offer
from midstream_addons.replay_overlap.offered import Form, Phase
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]


def on_message(frame: Frame, message: chat.Message, ctx: Ctx, options: Options) -> Verdict:
    """Judge a frame of the client."""
    socket, shared = ctx.state, ctx.conversation
    match message:
        case chat.ChatRequest():
            socket.chats += 1
            upload = chat.read_upload(message)
            if upload is None:
                return Verdict.skip("malformed")
            shared.transcript.set_list(upload.messages, from_server=False)
            return heal.say_again(frame, upload, ctx)
        case chat.MessageList():
            documents = [bytes(document) for document in message.messages]
            shared.transcript.set_list(documents, from_server=False)
            socket.closing_list = None
        case chat.ToolResult():
            shared.note_result(message)
            _note_tool(message.autoContinue, ctx)
        case chat.ToolApproval():
            _note_tool(message.autoContinue, ctx)
        case chat.ResumeRequest():
            return _on_request(message, ctx, options)
        case chat.ResumeAck():
            return _on_ack(message, ctx, options)
        case chat.Clear():
            shared.forget()
            return emptied(frame, ctx)
    return KEEP


def emptied(frame: Frame, ctx: Ctx) -> Verdict:
    """Let the word that the chat is emptied pass, and nothing of before behind it."""
    gone = ending.forget(ctx)
    if gone is KEEP:
        return KEEP
    return msgspec.structs.replace(gone, frames=(*(gone.frames or ()), frame))


def _note_tool(continues: bool, ctx: Ctx) -> None:
    """Note that this page waits for the continuation that its answer starts."""
    ctx.state.closing_list = None
    if continues:
        ctx.state.has_answered_tool = True
        ctx.conversation.note_waiting(ctx.state.page)


def _on_request(request: chat.ResumeRequest, ctx: Ctx, options: Options) -> Verdict:
    """Take the client's question for itself where an offer is at hand.

    It must not reach the server after the proxy's ACK: the server would park the socket again, and
    live frames would stop.
    """
    socket = ctx.state
    socket.has_asked = True
    socket.probe = None if request.probeId is msgspec.UNSET else bytes(request.probeId)
    socket.acked.clear()
    if socket.offer is None:
        return KEEP
    socket.offer.is_acked, socket.offer.form = False, None
    if socket.offer.phase is Phase.SENT:
        again = chat.resuming(socket.offer.stream, socket.probe)
        return Verdict.replace("fetch_replay", again)
    sent = offer.advance(ctx, options)
    return Verdict.drop("fetch_replay") if sent is KEEP else dropping(sent)


def dropping(verdict: Verdict) -> Verdict:
    """Return a verdict made without a frame at hand, for one that is dropped."""
    frames, rule = verdict.frames or (), verdict.rule or "fetch_replay"
    return msgspec.structs.replace(verdict, frames=frames, rule=rule)


def _on_ack(ack: chat.ResumeAck, ctx: Ctx, options: Options) -> Verdict:
    socket, taken = ctx.state, ctx.state.offer
    ctx.conversation.waiting_pages.pop(socket.page, None)
    if taken is not None and taken.stream == ack.id:
        socket.acked.add(ack.id)
        if taken.phase is Phase.SENT:
            return offer.deliver(taken, ctx)
        taken.is_acked = True
        return Verdict.drop("fetch_replay")
    if ack.id in socket.acked:
        return Verdict.drop("one_ack")
    socket.acked.add(ack.id)
    mended = socket.mended.get(ack.id)
    if mended is None or not mended.is_muted:
        return KEEP
    mended.is_muted = False
    return KEEP if mended.form is Form.PASSED else offer.retake(ack.id, mended, ctx, options)
