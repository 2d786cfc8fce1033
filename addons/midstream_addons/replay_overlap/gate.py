"""Whether a replay can be rewritten, in which form, and what sets the client back for it."""

from midstream.core import raw
from midstream.core.addon import Context, Facts
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_transcript import Stream
from midstream.dialects.ui_stream import chunk_type, is_expressible
from midstream_addons.replay_overlap import burst
from midstream_addons.replay_overlap.offered import Form, Mended
from midstream_addons.replay_overlap.options import Options
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]


def ended_well(frames: list[Frame]) -> bool:
    """Tell whether the stream is over, and without an error."""
    responses = [r for r in map(burst.response_of, frames) if r is not None]
    return any(r.done for r in responses) and not any(r.error for r in responses)


def reason_to_pass(frames: list[Frame], stream: Stream | None) -> str:
    """Return why a replay cannot be rewritten, or nothing."""
    if stream is None:
        return "unknown_stream"
    if not stream.exact:
        return "inexact"
    responses = [r for r in map(burst.response_of, frames) if r is not None]
    if any(r.error for r in responses):
        return "stream_failed"
    first = next((r for r in responses if r.replay), None)
    chunk = None if first is None else chat.read_chunk(first)
    return "" if chunk is not None and chunk_type(chunk) == "start" else "no_start"


def choose(ctx: Ctx, options: Options, stream: Stream) -> Form:
    """Choose the form: REBUILD only where the client is known to take its snapshot late."""
    if options.client == "r1":
        return Form.OBSERVED
    if not stream.is_continuation or options.client in ("r2", "observer"):
        return Form.BASELINE
    if not is_expressible(stream.base.parts):
        return Form.BASELINE
    if options.client == "r3":
        return Form.REBUILD
    messages = ctx.conversation.transcript.messages
    is_last = bool(messages) and messages[-1].id == stream.target
    is_late = ctx.state.has_asked and not is_waiting(ctx)
    return Form.REBUILD if is_late and is_last else Form.BASELINE


def facts(request: str, mended: Mended, ctx: Ctx, options: Options) -> Facts:
    """Return by what a replay was rewritten, or let pass."""
    known: dict[str, str | int | bool] = {
        "request": request,
        "form": mended.form.name.lower(),
        "client": options.client,
        "list_known": ctx.conversation.transcript.is_known,
    }
    if (stream := mended.stream) is not None:
        known["message"] = stream.target
        known["baseline_parts"] = len(stream.base.parts)
        known["continuation"] = stream.is_continuation
    return known


def is_waiting(ctx: Ctx) -> bool:
    """Tell whether this page may have answered a tool and not yet attached what goes on."""
    waiting, socket = ctx.conversation.waiting_pages, ctx.state
    return bool(waiting) and (socket.page in waiting or not socket.is_known_page)


def reset_frames(ctx: Ctx, stream: Stream, form: Form, adopts: bool) -> list[Frame]:
    """Return the frames that set the stream's message back, as a list and as one message.

    The list removes what the client may have put beside it; the single message reaches a client
    that shields the message it is streaming. A part that the replay goes on with is left out.
    """
    transcript = ctx.conversation.transcript
    parts = stream.base.parts[:-1] if adopts else stream.base.parts
    message = stream.base.json([] if form is Form.REBUILD else parts)
    if not transcript.is_known:
        return [chat.message_updated(message)]
    documents, is_there = [], False
    for other in transcript.messages:
        if other.id == stream.target:
            is_there = True
            documents.append(message)
        elif not (other.role == "assistant" and _is_empty(other.document)):
            documents.append(other.document)
    if not is_there:
        documents.append(message)
    return [chat.message_list(documents), chat.message_updated(message)]


def _is_empty(document: bytes) -> bool:
    return len(document) < 4096 and raw.members(document).get("parts", b"").strip() == b"[]"
