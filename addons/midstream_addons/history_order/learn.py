"""Learns what a provider says, as it streams past. Every frame goes on as it came, at once."""

from midstream.core.frames import Frame, Kind
from midstream.dialects.provider_history import Learned
from midstream_addons.history_order.ledger import Begun, Bounds
from midstream_addons.history_order.state import Ctx

NS_PER_S = 1_000_000_000


def hear(frame: Frame, ctx: Ctx, bounds: Bounds) -> None:
    """Take a frame of the server."""
    call = ctx.state
    provider, digests = call.provider, call.digests
    if provider is None or digests is None or not call.answers:
        return
    if frame.kind is Kind.BODY:
        answer = call.answers.pop("", None)
        learned = provider.read_response(frame.payload, digests) if answer is not None else None
        if answer is not None and learned is not None:
            _commit(answer.begun, learned, ctx, bounds)
        return
    payload = frame.payload
    stream = provider.stream_of(payload) if frame.kind is Kind.WS_TEXT else ""
    answer = call.answers.get(stream)
    if answer is not None and answer.listener.receive(payload):
        del call.answers[stream]
        _commit(answer.begun, answer.listener.learned(), ctx, bounds)


def end(ctx: Ctx, bounds: Bounds) -> None:
    """Take what was completed of the responses that were cut."""
    answers = list(ctx.state.answers.values())
    ctx.state.answers.clear()
    for answer in answers:
        _commit(answer.begun, answer.listener.learned(), ctx, bounds)


def _commit(begun: Begun, learned: Learned, ctx: Ctx, bounds: Bounds) -> None:
    ctx.conversation.commit(begun, learned, ctx.now_ns // NS_PER_S, bounds)
