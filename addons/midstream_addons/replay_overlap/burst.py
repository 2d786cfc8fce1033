"""Rewrites a replay: every frame of one stream that came since the proxy took its offer.

What goes out depends on the baseline, the stream and the replay, never on what any socket had
delivered before, so that repeating it changes nothing. Live frames among them keep content and
order. A terminal that overtook the replay goes behind it.
"""

from collections.abc import Sequence

from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_chat import Response
from midstream.dialects.cloudflare_transcript import Stream, Unstored
from midstream.dialects.ui_stream import adopted, length, orphan
from midstream_addons.replay_overlap.drafts import Adoption, Draft, Rewriter, joined_drafts
from midstream_addons.replay_overlap.offered import Form


def rewrite(frames: Sequence[Frame], rewriter: Rewriter) -> list[Frame]:
    """Return what goes out for a whole replay and the live frames behind it. Raises EditError."""
    if rewriter.form is Form.PASSED:
        return list(frames)
    drafts: list[Draft] = []
    ordered = in_order(frames)
    unstored = _unstored(ordered, rewriter.stream)
    position = 0
    for frame in ordered:
        response = response_of(frame)
        if response is None or not response.replay:
            drafts.append(Draft(frame, None))
            continue
        chunk = chat.read_chunk(response)
        while unstored and (chunk is None or unstored[0].position <= position):
            drafts.append(rewriter.unstored(unstored.pop(0).wire, frame))
        position += 0 if chunk is None else length(chunk)
        drafts += rewriter.drafts(frame, response)
    return [draft.finish() for draft in joined_drafts(drafts)]


def _unstored(frames: Sequence[Frame], stream: Stream) -> list[Unstored]:
    """Return the chunks that the replay lacks, but for those that are here themselves, live."""
    live = {frame.wire for frame in frames if (r := response_of(frame)) and not r.replay}
    unstored = list(stream.unstored)
    while unstored and unstored[-1].wire in live:
        unstored.pop()
    return unstored


def adoption(frames: Sequence[Frame], stream: Stream) -> Adoption:
    """Return kind and id under which the last part of the baseline goes on, if it does.

    Only a part that is the last of all can be built again behind a `start`.
    """
    if not stream.is_continuation:
        return None
    chunks = [c for c in map(chat.read_chunk, replay_of(frames)) if c is not None]
    found = orphan(chunks)
    parts = stream.base.parts
    return found if found and adopted(parts, found[0]) == len(parts) - 1 else None


def in_order(frames: Sequence[Frame]) -> list[Frame]:
    """Put the replay first, for it holds what came live before it.

    An end that came before it goes behind it, unless the replay has its own.
    """
    first = next((i for i, f in enumerate(frames) if (r := response_of(f)) and r.replay), 0)
    early, held = ends(frames[:first]), {response.body for response in replay_of(frames)}
    ahead = [f for f in frames[:first] if (r := response_of(f)) is None or r.body not in held]
    rest = [*(frame for frame in ahead if frame not in early), *frames[first:]]
    if not early or ends(rest):
        return rest
    for index, frame in enumerate(rest):
        response = response_of(frame)
        if response is not None and response.replayComplete:
            return [*rest[: index + 1], *early, *rest[index + 1 :]]
    return [*rest, *early]


def replay_of(frames: Sequence[Frame]) -> list[Response]:
    """Return the responses among these that are a replay."""
    return [r for r in map(response_of, frames) if r is not None and r.replay]


def ends(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames among these that end the stream."""
    return [frame for frame in frames if (r := response_of(frame)) and r.done]


def response_of(frame: Frame) -> Response | None:
    message = chat.read(frame)
    return message if isinstance(message, Response) else None
