"""Puts the history of a request to a model provider back into the order the provider gave it.

Agents keep a ledger of what a model said and did, and build each request from it. Some of them put
an earlier text behind a later call of a tool and its result, and so the model reads a history that
never happened. The proxy has seen the provider's own stream, so it knows the order: texts and
reasoning that stand too late are moved back before the call they precede. Nothing else is moved,
and where two explanations are possible nothing at all.

`learn.py` listens, `request.py` judges, `repair.py` mends.

Source: apache/maka#4749.
"""

from typing import ClassVar

from midstream.core.addon import KEEP, Addon, Verdict
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Side
from midstream.dialects import anthropic_messages, gemini, openai_chat, openai_responses
from midstream.dialects.provider_history import Provider
from midstream_addons.history_order import learn, request
from midstream_addons.history_order.ledger import Ledger
from midstream_addons.history_order.meanings import MEANINGS
from midstream_addons.history_order.options import Options as _Options
from midstream_addons.history_order.state import Call, Ctx, digests_of

PROVIDERS: tuple[Provider, ...] = (
    openai_responses.DIALECT,
    openai_chat.DIALECT,
    anthropic_messages.DIALECT,
    gemini.DIALECT,
)


class HistoryOrder(Addon[Call, Ledger]):
    """Puts texts that a client sends behind a later call back in front of it."""

    name: ClassVar = "history-order"
    dialects: ClassVar = tuple(provider.name for provider in PROVIDERS)
    rules: ClassVar = (request.RULE,)
    reasons: ClassVar = (
        "clean", "nothing_comparable", "no_anchor", "ambiguous", "ambiguous_fork", "blocked",
        "would_break_api", "thinking_locked", "gemini_cross_turn", "server_side_history", "partial",
        "no_improvement", "not_editable", "signed", "unreadable",
    )  # fmt: skip
    meanings: ClassVar = MEANINGS
    Options: ClassVar = _Options

    def __init__(self, options: _Options) -> None:
        self.options = options
        self._bounds = options.bounds

    def new_state(self) -> Call:
        return Call()

    def new_conversation(self) -> Ledger:
        return Ledger()

    def conversation_bytes(self, conversation: Ledger) -> int:
        return conversation.size_bytes

    def on_open(self, ctx: Ctx) -> Verdict:
        head = ctx.exchange.head
        ctx.state.provider = next((p for p in PROVIDERS if p.reads(head)), None)
        ctx.state.digests = digests_of(ctx.exchange)
        return KEEP

    def wants(self, response: ResponseHead, ctx: Ctx) -> bool:
        return bool(ctx.state.answers)  # else the request held no history: of another protocol

    def on_frame(self, frame: Frame, ctx: Ctx) -> Verdict:
        if frame.sender is Side.CLIENT:
            return request.judge(frame, ctx)
        learn.hear(frame, ctx, self._bounds)
        return KEEP

    def on_end(self, side: Side, ctx: Ctx) -> Verdict:
        if side is Side.SERVER:
            learn.end(ctx, self._bounds)
        return KEEP
