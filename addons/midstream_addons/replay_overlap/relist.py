"""Says the closing list again.

A late write of the client's SDK can put a stray message beside the true one after the list that
closes the turn. That happens where a server sends the list before the end of the stream, and where
a client that begins with an empty message was sent a replay that extends its baseline.
"""

from midstream.core.addon import KEEP, Context, Verdict, Wait
from midstream.core.frames import Frame
from midstream.dialects.cloudflare_chat import Response
from midstream_addons.replay_overlap.offered import Form
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]


def note_list(frame: Frame, ctx: Ctx, options: Options) -> tuple[Wait, ...]:
    """Remember a list that may be the closing list; ask to say it again if the end has been."""
    socket, streams = ctx.state, ctx.conversation.transcript.streams.values()
    is_before = any(stream.is_continuation for stream in streams)
    is_behind = not streams and _has_just_extended(ctx, options)
    socket.closing_list = frame if is_before or is_behind else None
    return _ask(socket, options) if is_behind else ()


def _has_just_extended(ctx: Ctx, options: Options) -> bool:
    """Tell whether a continuation that this socket got by extending its baseline has just ended."""
    socket = ctx.state
    mended = socket.mended.get(socket.ended_stream)
    if mended is None or mended.stream is None or socket.ended_ns is None:
        return False
    if options.client != "unknown":  # then the form was the client's own, and left nothing beside
        return False
    is_recent = ctx.now_ns - socket.ended_ns <= options.relist_wait_ms * 1_000_000
    return is_recent and mended.form is Form.BASELINE and mended.stream.is_continuation


def note_response(
    response: Response, is_continuation: bool, ctx: Ctx, options: Options
) -> tuple[Wait, ...]:
    """Forget the list when the stream goes on; ask to say it again when the stream ends."""
    socket = ctx.state
    if not response.done:
        socket.closing_list = None
        return ()
    if socket.closing_list is None or not is_continuation:
        return ()
    return _ask(socket, options)


def _ask(socket: Socket, options: Options) -> tuple[Wait, ...]:
    socket.relist_chats = socket.chats
    return (Wait(options.relist_wait_ms, "relist"),)


def say_again(ctx: Ctx) -> Verdict:
    """Say the closing list again, unless the chat has gone on."""
    socket = ctx.state
    closing, socket.closing_list = socket.closing_list, None
    if closing is None or socket.chats != socket.relist_chats or socket.offer is not None:
        return KEEP
    if ctx.conversation.transcript.streams:
        return KEEP
    return Verdict.replace("relist", closing)
