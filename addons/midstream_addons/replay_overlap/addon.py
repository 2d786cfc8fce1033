"""Makes the replay after a reconnect harmless.

A chat server replays a running stream from its first chunk to a socket that resumes it. A client
that already shows part of the stream appends the replay to it: text, reasoning and steps stand
twice. This repair sets the message back to what it was before the stream, so that the replay,
complete by the protocol, gives the true message whatever the client had. No chunk is compared with
another, and none is dropped.

Source: cloudflare/agents#1951; how real servers and clients behave with each form was measured with
the packages that `tests/peers/cloudflare` pins.
"""

import math
from typing import ClassVar

import msgspec

from midstream.core import raw
from midstream.core.addon import (
    KEEP,
    Addon,
    Answer,
    Ask,
    Context,
    Ending,
    Fetch,
    Verdict,
)
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_transcript import Transcript
from midstream_addons.replay_overlap import answers, client, ending, server
from midstream_addons.replay_overlap.meanings import MEANINGS
from midstream_addons.replay_overlap.offered import Phase
from midstream_addons.replay_overlap.options import Options as _Options
from midstream_addons.replay_overlap.state import Chat, Socket


class ReplayOverlap(Addon[Socket, Chat]):
    """One chat's sockets, whatever their number, share what was seen of it."""

    name: ClassVar = "replay-overlap"
    dialects: ClassVar = ("cloudflare_chat",)
    rules: ClassVar = (
        "fetch_replay", "reset", "rebuild", "undo", "heal", "relist", "one_ack",
    )  # fmt: skip
    reasons: ClassVar = (
        "unknown_stream", "stream_over", "stream_failed", "no_start", "no_replay", "inexact",
        "no_ack", "fetch_failed", "history_behind", "malformed",
    )  # fmt: skip
    meanings: ClassVar = MEANINGS
    Options: ClassVar = _Options

    def __init__(self, options: _Options) -> None:
        self.options = options

    def new_state(self) -> Socket:
        return Socket()

    def new_conversation(self) -> Chat:
        return Chat(Transcript(self.options.max_transcript_bytes))

    def conversation_bytes(self, conversation: Chat) -> int:
        return conversation.transcript.total_bytes + conversation.result_bytes

    def on_open(self, ctx: Context[Socket, Chat]) -> Verdict:
        if ctx.exchange.head.is_websocket:
            socket, shared = ctx.state, ctx.conversation
            socket.generation = shared.generation
            socket.page = _page(ctx.exchange.head.query)
            socket.is_again = shared.sockets > 0
            socket.is_known_page = socket.page in shared.pages
            shared.sockets += 1
            shared.note_page(socket.page)
        return KEEP

    def on_frame(self, frame: Frame, ctx: Context[Socket, Chat]) -> Verdict:
        if frame.kind is Kind.BODY:
            return self._on_history(frame, ctx)
        message = chat.read(frame)
        if message is None:
            return KEEP
        if isinstance(message, chat.Unreadable):
            return Verdict.skip("malformed")
        gone = _catch_up(ctx)
        if frame.sender is Side.CLIENT:
            ctx.state.ended_ns = None
            verdict = client.on_message(frame, message, ctx, self.options)
        else:
            verdict = server.on_message(frame, message, ctx, self.options)
        return verdict if gone is KEEP else _behind(gone, frame, verdict)

    def on_answer(self, ask: Ask, answer: Answer, ctx: Context[Socket, Chat]) -> Verdict:
        gone = _catch_up(ctx)
        if gone is not KEEP:
            return gone
        if isinstance(ask, Fetch):
            return answers.on_fetched(answer, ctx, self.options)
        return answers.on_waited(ask, ctx, self.options)

    def on_overdue(self, ctx: Context[Socket, Chat]) -> Verdict:
        return ending.give_up(ctx, self.options)

    def on_end(self, side: Side, ctx: Context[Socket, Chat]) -> Verdict:
        _note_unfinished(ctx, self.options)
        return KEEP if side is Side.CLIENT else ending.cut(ctx, self.options)

    def on_close(self, how: Ending, ctx: Context[Socket, Chat]) -> None:
        _note_unfinished(ctx, self.options)

    def _on_history(self, frame: Frame, ctx: Context[Socket, Chat]) -> Verdict:
        """Learn from a page's own fetch of the chat's messages."""
        if frame.sender is Side.SERVER:
            try:
                documents = raw.elements(frame.payload)
            except raw.Malformed:
                return Verdict.skip("malformed")
            ctx.conversation.transcript.set_list(documents, from_server=True)
        return KEEP


def _catch_up(ctx: Context[Socket, Chat]) -> Verdict:
    """Drop an offer whose frames the chain let go, and all of before once the chat was emptied."""
    taken = ctx.state.offer
    if taken is not None and not ctx.held and not taken.is_waiting:
        ctx.state.offer = None
    is_current = ctx.state.generation == ctx.conversation.generation
    return KEEP if is_current else ending.forget(ctx)


def _behind(first: Verdict, frame: Frame, verdict: Verdict) -> Verdict:
    """Return one verdict for what leaves first, and what becomes of the frame at hand."""
    own = () if verdict.hold else (frame,)
    return msgspec.structs.replace(
        verdict,
        frames=(*(first.frames or ()), *(own if verdict.frames is None else verdict.frames)),
        rule=verdict.rule or first.rule,
        settles=first.settles,
    )


def _page(query: str) -> str:
    return next((p[4:] for p in query.split("&") if p.startswith("_pk=")), "")


def _note_unfinished(ctx: Context[Socket, Chat], options: _Options) -> None:
    """Note that this socket ends while a page may show less than the server has.

    That a stream's end was sent does not tell that it arrived: a frame of the client would, and so
    does the time in which a dead connection is noticed.
    """
    socket, shared = ctx.state, ctx.conversation
    is_running = any(stream in socket.places for stream in shared.transcript.streams)
    is_reset = socket.offer is not None and socket.offer.phase is Phase.SENT
    since_end_ns = math.inf if socket.ended_ns is None else ctx.now_ns - socket.ended_ns
    is_unproven = since_end_ns < options.unproven_end_ms * 1_000_000
    if is_running or is_reset or is_unproven:
        shared.is_unfinished = True
