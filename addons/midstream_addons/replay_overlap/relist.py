"""Says the closing list again.

Some servers send it before the end of the stream, and a late write of the client's SDK then puts a
stray message beside the true one.
"""

from midstream.core.addon import KEEP, Context, Verdict, Wait
from midstream.core.frames import Frame
from midstream.dialects.cloudflare_chat import Response
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]


def note_list(frame: Frame, ctx: Ctx) -> None:
    """Remember a list that may turn out to have come before the end of a continuation."""
    streams = ctx.conversation.transcript.streams.values()
    ctx.state.closing_list = frame if any(s.is_continuation for s in streams) else None


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
