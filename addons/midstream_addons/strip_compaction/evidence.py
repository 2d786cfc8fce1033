"""What a server shows of itself: whether it makes messages up, or stores whatever is uploaded.

Two kinds of server speak this protocol. Think makes a message up for a compacted range whenever its
history is read, and adds what is uploaded to what it has: leaving that message out of an upload is
harmless. AIChatAgent stores what is uploaded and deletes what a shorter upload lacks: leaving a
message out destroys it. The wire names neither, so an upload is touched only if all of this holds:

1. The id is proven: a server list held it before any client frame did. An AIChatAgent would get
   such an id from a client; but one that an app stores itself also comes from the server first, and
   so does one that a client uploaded before this process began. Hence 2 and 3.
2. On a WebSocket, the server has pushed a list that only Think pushes (`pushes_lists`). Think sends
   its list to every socket that opens while idle, and to all at the end of a turn. AIChatAgent
   sends one only to the other sockets at a turn, or to all after a continuation. So a list counts
   if, since this socket opened or last asked, no other exchange asked, no tool was answered, and no
   stream came that this socket had not asked for.
3. The server has not behaved like AIChatAgent: it never let a socket open and answered that nothing
   runs without having sent its list (`stays_silent`), and never sent a client's own list on to
   another socket (`takes_lists`). One such sight outweighs every sign to the contrary.

Declared as `think`, 1 and 2 and the silence are taken as given; only `takes_lists` still stands
against it. Declared as `aichat`, nothing is touched. In doubt the frame passes, and is counted.

Source: cloudflare/agents `packages/ai-chat/src/index.ts` (`persistMessages`) and
`packages/think/src/think.ts` (`onConnect`), agents 0.17.4 and 0.19.0.
"""

from midstream.core.addon import Context
from midstream.core.frames import Frame, Kind
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_listing import Listing, Unlisted
from midstream_addons.strip_compaction.options import Server
from midstream_addons.strip_compaction.state import Chat, Socket

_TURN = b"cf_agent_use_chat_request"
_LIST = b"cf_agent_chat_messages"
_TOOL = b"cf_agent_tool_"
_CLEAR = b"cf_agent_chat_clear"
_OFFERS = (b"cf_agent_stream_pending", b"cf_agent_stream_resuming")
_NONE = b"cf_agent_stream_resume_none"
_CHUNK = b"cf_agent_use_chat_response"

type Ctx = Context[Socket, Chat]


def refusal(shared: Chat, server: Server, *, is_websocket: bool) -> str:
    """Return why uploads to this server are not touched, or nothing if they may be."""
    if server is Server.AICHAT or shared.takes_lists:
        return "stores_uploads"
    if server is Server.THINK:
        return ""
    if shared.stays_silent:
        return "stores_uploads"
    return "no_transcript" if is_websocket and not shared.pushes_lists else ""


def note_open(ctx: Ctx) -> None:
    """Remember what had happened in the chat when a socket opened."""
    ctx.state.turns, ctx.state.continuations = (
        ctx.conversation.turns,
        ctx.conversation.continuations,
    )
    ctx.state.syncs = ctx.conversation.syncs


def note_client(frame: Frame, ctx: Ctx) -> None:
    """Note what a client's frame makes the server do. Large frames are not decoded for it."""
    socket, shared = ctx.state, ctx.conversation
    if frame.kind is Kind.BODY or _TURN in frame.wire:
        shared.turns += 1
        shared.synced, shared.is_settled = None, False
        socket.has_asked = True
        if not socket.is_running:
            socket.is_busy = False
            socket.turns, socket.continuations = shared.turns, shared.continuations
    elif _LIST in frame.wire:
        shared.turns += 1
        shared.syncs += 1
        socket.own_sync = shared.syncs
    elif _TOOL in frame.wire:
        shared.continuations += 1
        shared.synced, shared.is_settled = None, False
    elif _CLEAR in frame.wire and _is_clear(frame):
        shared.forget()


def note_sync(listing: Listing | Unlisted | None, ctx: Ctx) -> None:
    """Note the list that a client states, unless a turn in between could bring the same one."""
    shared = ctx.conversation
    synced = _ids(listing) if isinstance(listing, Listing) else None
    shared.synced = synced if shared.is_settled else None


def note_server(frame: Frame, ctx: Ctx) -> None:
    """Note what a server's frame, other than a list, tells of it."""
    match chat.read(frame):
        case chat.Response() as response:
            _note_chunk(ctx.state, response.continuation, response.done)
        case chat.Resuming():
            ctx.state.is_busy = ctx.state.is_running = True
        case chat.ResumeNone():
            _note_none(ctx)
        case chat.Clear():
            ctx.conversation.forget()
        case None:
            _note_unread(frame, ctx)


def _note_unread(frame: Frame, ctx: Ctx) -> None:
    """Note what a frame that is not read may be: msgpack, or of a type that has no reader."""
    if any(offer in frame.wire for offer in _OFFERS):
        ctx.state.is_busy = ctx.state.is_running = True
    elif frame.kind is Kind.WS_TEXT:
        return
    elif _NONE in frame.wire:
        _note_none(ctx)
    elif _CHUNK in frame.wire:
        _note_chunk(ctx.state, is_continuation=True, is_done=False)
    elif _CLEAR in frame.wire:
        ctx.conversation.forget()


def _note_chunk(socket: Socket, is_continuation: bool, is_done: bool) -> None:
    if is_continuation or not socket.has_asked:
        socket.is_busy = socket.is_running = True
    if is_done:
        socket.is_running = False


def _note_none(ctx: Ctx) -> None:
    """Note the first answer that nothing runs: by then, Think has sent its list."""
    socket = ctx.state
    if not (socket.is_answered or socket.has_list or socket.is_busy):
        ctx.conversation.stays_silent = True
    socket.is_answered = True


def _is_clear(frame: Frame) -> bool:
    return frame.kind is Kind.WS_BINARY or isinstance(chat.read(frame), chat.Clear)


def note_list(listing: Listing, ctx: Ctx) -> None:
    """Note what a list tells that the server pushes over a WebSocket."""
    socket, shared = ctx.state, ctx.conversation
    is_explained = (
        socket.is_busy
        or socket.turns != shared.turns
        or socket.continuations != shared.continuations
    )
    if not is_explained:
        shared.pushes_lists = True
    is_others_sync = socket.syncs < shared.syncs and socket.own_sync != shared.syncs
    if shared.synced is not None and is_others_sync and _ids(listing) == shared.synced:
        shared.takes_lists = True
    socket.has_list = shared.is_settled = True


def _ids(listing: Listing) -> list[str]:
    outlines = map(listing.read_outline, listing.messages)
    return [outline.id if outline else "" for outline in outlines]
