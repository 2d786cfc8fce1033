"""What the client sends: synthetic messages are cut out of turns and lists, where that is proven.

A regenerate names its place by the last message: the server hangs the new answer under it. Where
that last message is a synthetic one, the last real message of its range is put in its place; where
that one is not known, the synthetic message stays, and the server stores it once.
"""

from midstream.core.addon import KEEP, Facts, Skipped, Verdict
from midstream.core.errors import EditError
from midstream.core.frames import Frame, Kind
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_compaction import Outline
from midstream.dialects.cloudflare_listing import Listing, Unlisted, read_listing, rewrite
from midstream_addons.strip_compaction import evidence
from midstream_addons.strip_compaction.evidence import Ctx
from midstream_addons.strip_compaction.options import Options, Server
from midstream_addons.strip_compaction.state import Chat

REGENERATE = "regenerate-message"
_MARKS = (b"cf_agent_use_chat_request", b"cf_agent_chat_messages")


def judge(frame: Frame, ctx: Ctx, options: Options, needles: tuple[bytes, ...]) -> Verdict:
    """Judge a frame of the client."""
    has_id = any(needle in frame.wire for needle in needles)
    if not has_id and _MARKS[1] not in frame.wire:
        return KEEP
    listing = read_listing(frame)
    if not isinstance(listing, Listing):
        return _unreadable(frame, listing) if has_id else KEEP
    verdict = _judge(frame, listing, ctx, options, needles) if has_id else KEEP
    if not listing.is_turn:
        sent = frame if verdict.frames is None or ctx.observe else verdict.frames[0]
        evidence.note_sync(read_listing(sent), ctx)
    return verdict


def _unreadable(frame: Frame, found: Unlisted | None) -> Verdict:
    is_broken = chat.read(frame) is None and any(mark in frame.wire for mark in _MARKS)
    return Verdict.skip("unreadable") if found is not None or is_broken else KEEP


def _judge(
    frame: Frame, listing: Listing, ctx: Ctx, options: Options, needles: tuple[bytes, ...]
) -> Verdict:
    shared = ctx.conversation
    outlines = listing.outlines(needles)
    suspects = {i: o for i, o in outlines.items() if o.id.startswith(options.prefixes)}
    if not suspects:
        return KEEP
    is_websocket = frame.kind is not Kind.BODY
    refusal = evidence.refusal(shared, options.server, is_websocket=is_websocket)
    gone: set[int] = set()
    reasons: list[str] = []
    for index, outline in suspects.items():
        reason = refusal or _doubt(outline, shared, options)
        shared.claim(outline.id, options.max_remembered_ids)
        if reason:
            reasons.append(reason)
        else:
            gone.add(index)
    return _cut(frame, listing, ctx, gone, reasons, suspects)


def _doubt(outline: Outline, shared: Chat, options: Options) -> str:
    """Return why a message may not be the server's own, or nothing if it surely is."""
    if not outline.is_synthetic(options.prefixes):
        return "other_form"
    if options.server is Server.THINK or outline.id in shared.delivered:
        return ""
    return "client_made" if outline.id in shared.claimed else "undelivered"


def _cut(
    frame: Frame,
    listing: Listing,
    ctx: Ctx,
    gone: set[int],
    reasons: list[str],
    suspects: dict[int, Outline],
) -> Verdict:
    put: dict[int, bytes] = {}
    rule = "synthetic_message"
    last = len(listing.messages) - 1
    if last in gone and listing.trigger == REGENERATE:
        gone.discard(last)
        document = _range_end(listing, ctx.conversation, suspects)
        if document is None:
            reasons.append("unknown_range_end")
        else:
            put[last] = document
            rule = "range_end"
    if gone and len(gone) > last:
        gone, reasons = set(), [*reasons, "nothing_left"]
    notes = tuple(Skipped(reason) for reason in dict.fromkeys(reasons))
    first = min(suspects)
    why: Facts = {"id": suspects[first].id, "at": first, "messages": last + 1, "cut": len(gone)}
    if not gone and not put:
        return Verdict(notes=notes, why=why)
    try:
        return Verdict((rewrite(frame, listing, gone, put),), rule, notes=notes, why=why)
    except EditError:
        return Verdict.skip("not_editable")


def _range_end(listing: Listing, shared: Chat, suspects: dict[int, Outline]) -> bytes | None:
    """Return the real message that the last, synthetic one of an upload stands for."""
    last = suspects[len(listing.messages) - 1].id
    kept = shared.range_ends.get(last)
    if kept is None or kept.is_packed is not listing.is_packed:
        return None
    if sum(outline.id == last for outline in suspects.values()) > 1:
        return None  # the last one is a stored copy with a place of its own in the history
    outlines = map(listing.read_outline, listing.messages)
    if any(outline is not None and outline.id == kept.id for outline in outlines):
        return None
    return kept.document
