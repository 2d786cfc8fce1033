"""What the server sends: its lists prove ids, show where compacted ranges end, and are cleaned.

Cleaned means: of a synthetic message that stands twice in a list the first stays; the other is a
copy that was stored. A copy that stands alone is known by its `createdAt`: the server gives what it
makes up the time of the read, so one that keeps its time while another's moves was stored.
"""

from midstream.core.addon import KEEP, Facts, Verdict
from midstream.core.errors import EditError
from midstream.core.frames import Frame, Kind
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_compaction import Outline, first_kept, read_outline
from midstream.dialects.cloudflare_listing import Listing, read_listing, rewrite
from midstream_addons.strip_compaction import evidence
from midstream_addons.strip_compaction.evidence import Ctx
from midstream_addons.strip_compaction.options import Options
from midstream_addons.strip_compaction.state import Chat, Kept, remember

_UPDATE = b"cf_agent_message_updated"


def judge(frame: Frame, ctx: Ctx, options: Options, needles: tuple[bytes, ...]) -> Verdict:
    """Judge a frame of the server that may hold a list."""
    listing = read_listing(frame)
    if not isinstance(listing, Listing):
        return KEEP
    if frame.kind is not Kind.BODY:
        evidence.note_list(listing, ctx)
    shared = ctx.conversation
    if evidence.refusal(shared, options.server, is_websocket=False):
        return KEEP
    found: dict[int, Outline] = {}
    if any(needle in frame.wire for needle in needles):
        outlines = listing.outlines(needles)
        found = {i: o for i, o in outlines.items() if o.is_synthetic(options.prefixes)}
    for outline in found.values():
        shared.deliver(outline.id, options.max_remembered_ids)
    gone: list[int] = []
    if len(found) > 1:
        gone = first_kept(listing.messages, options.prefixes, listing.read_outline)
    firsts = {index: outline for index, outline in found.items() if index not in gone}
    _learn_range_ends(listing, firsts, shared, options)
    _remember_tail(listing, shared, options)
    _note_times(firsts, shared, options)
    stale = [i for i, o in firsts.items() if shared.stale.get(o.id) == o.created]
    if not gone and not stale:
        return KEEP
    rule = "repeated_message" if gone else "stale_message"
    out = [*gone, *stale]
    why: Facts = {"id": found[out[0]].id, "at": out[0], "cut": len(out)} if out[0] in found else {}
    try:
        return Verdict.replace(rule, rewrite(frame, listing, {*out}, {}), why=why)
    except EditError:
        return Verdict.skip("not_editable")


def note_update(frame: Frame, shared: Chat) -> None:
    """Note that the server has changed one message, so that no older form of it is put back."""
    if _UPDATE not in frame.wire:
        return
    message = chat.read(frame)
    document = bytes(message.message) if isinstance(message, chat.MessageUpdated) else b""
    outline = read_outline(document)
    if outline is None:
        shared.tail.clear()
        shared.range_ends.clear()
        return
    for at, kept in enumerate(map(read_outline, shared.tail)):
        if kept is not None and kept.id == outline.id:
            shared.tail[at] = document
    for end in shared.range_ends.values():
        if end.id == outline.id:
            end.document, end.is_packed = document, False


def _learn_range_ends(
    listing: Listing, firsts: dict[int, Outline], shared: Chat, options: Options
) -> None:
    """Find the last real message of each new range: in the list before, it precedes what follows.

    A message keeps its parent for good, so whatever real message stood directly before another one
    in any earlier list is the one that the range ends with.
    """
    wanted = [index for index in firsts if firsts[index].id not in shared.range_ends]
    if not wanted:
        return
    outlines = [listing.read_outline(document) for document in shared.tail]
    places = {outline.id: at for at, outline in enumerate(outlines) if outline and outline.id}
    for index in wanted:
        following = _outline_at(listing, index + 1)
        at = places.get(following.id, 0) if following is not None else 0
        before = outlines[at - 1] if at else None
        if before is None:
            continue
        kept = shared.range_ends.get(before.id)
        if before.id and not before.id.startswith(options.prefixes):
            kept = Kept(before.id, shared.tail[at - 1], listing.is_packed)
        if kept is not None:
            _keep_range_end(firsts[index].id, kept, shared, options)


def _keep_range_end(identifier: str, kept: Kept, shared: Chat, options: Options) -> None:
    remember(shared.range_ends, identifier, kept, options.max_remembered_ids)
    sizes = {key: len(end.document) for key, end in shared.range_ends.items()}
    while sizes and sum(sizes.values()) > options.max_remembered_bytes:
        oldest = next(iter(sizes))
        del sizes[oldest], shared.range_ends[oldest]


def _outline_at(listing: Listing, index: int) -> Outline | None:
    if index >= len(listing.messages):
        return None
    return listing.read_outline(listing.messages[index])


def _remember_tail(listing: Listing, shared: Chat, options: Options) -> None:
    """Keep the end of the list, for as many bytes as may be remembered."""
    first, size = len(listing.messages), 0
    while first and size + len(listing.messages[first - 1]) <= options.max_remembered_bytes:
        first -= 1
        size += len(listing.messages[first])
    shared.tail = listing.messages[first:]


def _note_times(firsts: dict[int, Outline], shared: Chat, options: Options) -> None:
    """Compare the times of this read with those of the read before."""
    times = {outline.id: outline.created for outline in firsts.values() if outline.created}
    before = shared.created
    has_moved = any(before.get(i, time) != time for i, time in times.items())
    for identifier, time in times.items():
        if has_moved and before.get(identifier) == time:
            remember(shared.stale, identifier, time, options.max_remembered_ids)
    for identifier, time in times.items():
        remember(shared.created, identifier, time, options.max_remembered_ids)
