"""What goes to the client for an offer: the reset, the offer itself, the rewritten replay."""

from midstream.core import edit
from midstream.core.addon import KEEP, Context, Verdict
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_chat import Resuming
from midstream_addons.replay_overlap import burst, gate
from midstream_addons.replay_overlap.drafts import Rewriter
from midstream_addons.replay_overlap.offered import Form, Mended, Offer
from midstream_addons.replay_overlap.state import Chat, Socket

type Ctx = Context[Socket, Chat]


def plain(frame: Frame) -> Frame:
    """Return an offer that answers no probe, so that the client's observer takes it."""
    return frame.with_payload(edit.apply(frame.wire, edit.Delete(("probeId",))))


def opening(taken: Offer, mended: Mended, frames: list[Frame], ctx: Ctx) -> list[Frame]:
    """Return the reset frames and the offer; a client that has ACKed late has had its offer."""
    socket = ctx.state
    offered = chat.resuming(taken.stream, socket.probe) if taken.is_late else ctx.held[0]
    if mended.form is Form.PASSED or mended.stream is None:
        return [] if taken.is_late and taken.is_acked else [offered]
    adopts = burst.adoption(frames, mended.stream) is not None
    reset = gate.reset_frames(ctx, mended.stream, mended.form, adopts)
    if taken.is_late and taken.is_acked:
        return reset
    if mended.form is not Form.OBSERVED:
        return [*reset, offered]
    none = [chat.resume_none(socket.probe)] if socket.has_asked else []
    return [*none, *reset, plain(offered)]


def replay(mended: Mended, frames: list[Frame], ctx: Ctx) -> list[Frame]:
    """Return what the frames of the offered stream become. Raises EditError."""
    if mended.stream is None:
        return frames
    adopts = burst.adoption(frames, mended.stream)
    results = ctx.conversation.results
    return burst.rewrite(frames, Rewriter(mended.stream, mended.form, results, adopts))


def attach(frame: Frame, resuming: Resuming, form: Form, ctx: Ctx) -> Verdict:
    """Let a page attach to the continuation of a tool it has answered, in its client's form."""
    socket = ctx.state
    if resuming.id not in socket.mended:
        socket.note_mended(resuming.id, Mended(form, None))
    if form is not Form.OBSERVED:
        return KEEP
    if not socket.has_asked:
        return Verdict.replace("reset", plain(frame))
    socket.has_asked = False
    return Verdict.replace("reset", chat.resume_none(socket.probe), plain(frame))
