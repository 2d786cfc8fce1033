"""Turns A2A artifact updates that carry the text so far into updates that carry what is new.

A2A marks an update with `append` and no more: whether it holds new text, all text so far, or both
in turn, its servers do as they please, and clients that append show everything twice. This repair
finds out what a server sends, artifact by artifact, and lets each update leave so that a client
that appends what says append, and replaces what says replace, ends with the answer once.

`updates.py` judges an update, `reader.py` one lane of text in it; `turn.py` says what has to be
said before a turn ends.

Source: agentscope-ai/agentscope-java#1378; the rules were tried on captures of seven servers.
"""

from typing import ClassVar

from midstream.core.addon import KEEP, Addon, Answer, Ask, Context, Verdict, Wait
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.dialects import a2a
from midstream.dialects.a2a import Asked
from midstream_addons.snapshot_to_delta import cards, events, turn
from midstream_addons.snapshot_to_delta.meanings import MEANINGS
from midstream_addons.snapshot_to_delta.options import Options as _Options
from midstream_addons.snapshot_to_delta.sent import Sent
from midstream_addons.snapshot_to_delta.state import Agent, Stream

type Ctx = Context[Stream, Agent]
READ_WHOLE = (Asked.SEND, Asked.GET, Asked.CARD)
"""What is answered with one body that may be edited."""


class SnapshotToDelta(Addon[Stream, Agent]):
    """One exchange at a time; what is known of an agent is shared by all of its client's."""

    name: ClassVar = "snapshot-to-delta"
    dialects: ClassVar = ("a2a",)
    rules: ClassVar = (
        "first_append", "snapshot", "stale", "correction", "contradiction", "new_artifact",
        "aggregate", "replace", "replay", "trailer", "last_chunk", "annotate", "status_text",
        "compact_task", "compact_message", "card_url",
    )  # fmt: skip
    reasons: ClassVar = (
        "malformed", "artifact_bound", "text_bound", "rewrite", "foreign_url",
        "not_editable",
    )  # fmt: skip
    meanings: ClassVar = MEANINGS
    Options: ClassVar = _Options

    def __init__(self, options: _Options) -> None:
        self.options = options

    def new_state(self) -> Stream:
        return Stream()

    def new_conversation(self) -> Agent:
        return Agent()

    def conversation_bytes(self, conversation: Agent) -> int:
        return conversation.size_bytes

    def on_open(self, ctx: Ctx) -> Verdict:
        ctx.state.asked = a2a.asked_by_path(ctx.exchange.head)
        return KEEP

    def wants(self, response: ResponseHead, ctx: Ctx) -> bool:
        return response.is_event_stream or ctx.state.asked in READ_WHOLE

    def on_frame(self, frame: Frame, ctx: Ctx) -> Verdict:
        if frame.sender is Side.CLIENT:
            stream, head = ctx.state, ctx.exchange.head
            stream.asked = a2a.read_request(frame, head) or stream.asked
            stream.keeps_last = stream.keeps_last or a2a.keeps_only_last(frame, head)
            return KEEP
        if ctx.state.asked is Asked.CARD and frame.kind is Kind.BODY:
            return cards.judge(frame, ctx, self.options)
        event = a2a.read(frame)
        if event is None:
            return KEEP
        return events.judge(frame, event, ctx, self.options)

    def on_answer(self, ask: Ask, answer: Answer, ctx: Ctx) -> Verdict:
        return turn.wake(ctx, self.options) if isinstance(ask, Wait) else KEEP

    def on_overdue(self, ctx: Ctx) -> Verdict:
        return self._let_go(ctx)

    def on_end(self, side: Side, ctx: Ctx) -> Verdict:
        return self._let_go(ctx) if side is Side.SERVER else KEEP

    def _let_go(self, ctx: Ctx) -> Verdict:
        sent = Sent(self.options, ctx.now_ns)
        turn.let_go(ctx, sent)
        return sent.verdict()
