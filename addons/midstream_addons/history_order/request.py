"""Judges what a client sends: the history in it is measured, and mended where that is proven."""

from midstream.core.addon import KEEP, Compared, Facts, Note, Skipped, Verdict
from midstream.core.frames import Frame, Kind
from midstream.dialects import provider_heads
from midstream.dialects.provider_history import Digests, History, Provider
from midstream.dialects.provider_history import Kind as ItemKind
from midstream_addons.history_order.learn import NS_PER_S
from midstream_addons.history_order.ledger import Begun, Ledger
from midstream_addons.history_order.path import find_path
from midstream_addons.history_order.prefix import sums_of
from midstream_addons.history_order.quoted import quote
from midstream_addons.history_order.repair import Outcome, repair
from midstream_addons.history_order.state import MAX_STREAMS, Answer, Ctx

RULE = "reordered"
_CREATE = b'"response.create"'
_ENDS_TURN = frozenset({ItemKind.USER, ItemKind.SYSTEM})


def judge(frame: Frame, ctx: Ctx) -> Verdict:
    """Judge a frame of the client."""
    call = ctx.state
    if call.provider is None or call.digests is None or frame.kind is Kind.WS_BINARY:
        return KEEP
    is_message = frame.kind is Kind.WS_TEXT
    if is_message and frame.wire.find(_CREATE) < 0:
        return KEEP
    history = call.provider.read_request(frame.payload)
    if history is None:
        return KEEP if is_message else Verdict.skip("unreadable")
    is_signed = not is_message and provider_heads.is_signed(ctx.exchange.head)
    now_s = ctx.now_ns // NS_PER_S
    outcome, begun = consider(
        call.provider, history, ctx.conversation, call.digests, now_s, is_locked=is_signed
    )
    notes: list[Note] = []
    if not history.is_delta:
        sent = frame.payload if outcome.body is None or ctx.observe else outcome.body
        sums = sums_of(call.provider.elements(sent), call.digests)
        begun = Begun(begun.parent, begun.turn, sums)
        prefixed = ctx.conversation.prefixes.compare(begun.parent, sums)
        notes += [prefixed] if prefixed is not None else []
    if history.stream in call.answers or len(call.answers) < MAX_STREAMS:
        call.answers[history.stream] = Answer(begun, call.provider.listen(call.digests))
    why = _facts(call.provider, history, outcome)
    return _verdict(frame, outcome, notes, why)


def consider(
    provider: Provider,
    history: History,
    ledger: Ledger,
    digests: Digests,
    now_s: int = 0,
    *,
    is_locked: bool = False,
) -> tuple[Outcome, Begun]:
    """Judge a request by a ledger, and tell where the response to it will belong."""
    quoted = quote(history.items, digests)
    path = find_path(ledger, quoted)
    ledger.use(path.responses, now_s)
    named = ledger.named(digests.of_key(f"response:{history.previous}")) if history.previous else 0
    parent = named or (path.responses[-1] if path.responses else 0)
    is_new_turn = not history.items or history.items[-1].kind in _ENDS_TURN
    begun = Begun(parent, 0 if is_new_turn or not parent else ledger.head(parent).turn)
    if history.is_delta:
        return Outcome(None, "server_side_history"), begun
    if path.refusal:
        return Outcome(None, path.refusal), begun
    outcome = repair(
        provider, history, quoted, path.entries, doubtful=path.doubtful, is_locked=is_locked
    )
    return outcome, begun


def _facts(provider: Provider, history: History, outcome: Outcome) -> Facts:
    """Return by what a request was judged."""
    return {
        "api": provider.name,
        "items": len(history.items),
        "comparable_pairs": outcome.comparable,
        "inverted_pairs_received": outcome.inverted_in,
        "inverted_pairs_sent": outcome.inverted_out,
        "moved_items": outcome.moved,
    }


def _verdict(frame: Frame, outcome: Outcome, notes: list[Note], why: Facts) -> Verdict:
    counted = {
        "comparable": outcome.comparable,
        "inverted_in": outcome.inverted_in,
        "inverted_out": outcome.inverted_out,
    }
    notes += [Compared(state, pairs) for state, pairs in counted.items() if pairs]
    if outcome.reason:
        notes.append(Skipped(outcome.reason))
    if outcome.body is None:
        return Verdict(notes=tuple(notes), why=why)
    return Verdict((frame.with_payload(outcome.body),), RULE, notes=tuple(notes), why=why)
