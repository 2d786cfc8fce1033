"""Rewrites one frame of a replay.

Only what has to change is edited: a member is set or deleted in the frame's own bytes, and a chunk
is exchanged whole inside its body.
"""

from collections.abc import Iterator, Sequence

import msgspec

from midstream.core import edit, raw
from midstream.core.frames import Frame
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_chat import Response
from midstream.dialects.cloudflare_transcript import Stream
from midstream.dialects.ui_stream import (
    Chunk,
    chunk_type,
    encode,
    joined,
    tool_input,
    tool_outcome,
)
from midstream_addons.replay_overlap.offered import Form

type Adoption = tuple[str, bytes] | None
"""Kind and raw id under which the last part of the baseline goes on in the replay."""


class Draft(msgspec.Struct):
    """A frame on its way out: the frame it is made from, and what is changed of it."""

    frame: Frame
    chunk: Chunk | None
    is_changed: bool = False
    edits: tuple[edit.Set | edit.Delete, ...] = ()

    def finish(self) -> Frame:
        """Return the frame. Raises EditError."""
        if self.chunk is not None and self.is_changed:
            return chat.with_chunk(self.frame, self.chunk, *self.edits)
        if self.edits:
            return self.frame.with_payload(edit.apply(self.frame.wire, *self.edits))
        return self.frame


class Rewriter(msgspec.Struct, frozen=True):
    """How the frames of one replay are rewritten."""

    stream: Stream
    form: Form
    results: dict[str, dict[str, bytes]]
    adopts: Adoption = None

    def drafts(self, frame: Frame, response: Response) -> list[Draft]:
        """Return the drafts that one frame of the replay becomes."""
        edits: tuple[edit.Set | edit.Delete, ...] = ()
        if frame.wire.find(b'"seq"') >= 0:
            edits = (edit.Delete(("seq",)),)
        if self.stream.is_continuation and not response.continuation:
            edits = (*edits, edit.Set(("continuation",), b"true"))
        chunk = chat.read_chunk(response)
        chunks = None if chunk is None else self._exchange(chunk)
        if chunks is None:
            return [Draft(frame, chunk, edits=edits)]
        return [Draft(frame, other, is_changed=True, edits=edits) for other in chunks]

    def unstored(self, wire: bytes, like: Frame) -> Draft:
        """Return a chunk that the server could not store, as a frame of the replay."""
        edits: tuple[edit.Set, ...] = (edit.Set(("replay",), b"true"),)
        if self.stream.is_continuation:
            edits = (*edits, edit.Set(("continuation",), b"true"))
        return Draft(Frame(like.sender, like.kind, wire), None, edits=edits)

    def _exchange(self, chunk: Chunk) -> list[Chunk] | None:
        """Return what a chunk is exchanged for, or None if it stays."""
        kind = chunk_type(chunk)
        if kind == "start" and self.stream.is_continuation:
            return self._start(chunk)
        if kind == "tool-input-available" and self.form is not Form.OBSERVED:
            return self._tool(chunk)
        return None

    def _start(self, chunk: Chunk) -> list[Chunk] | None:
        """Return the start of a continuation, and what of the baseline is built behind it."""
        parts = self.stream.base.parts
        if self.form is Form.REBUILD:
            target = raw.quote(self.stream.target)
            return [{**chunk, "messageId": target}, *encode(parts, self.adopts)]
        if self.adopts is None:
            return None
        return [chunk, *encode(parts[-1:], self.adopts)]

    def _tool(self, chunk: Chunk) -> list[Chunk] | None:
        """Offer a tool whose outcome is known so that no client runs it again."""
        call = chunk.get("toolCallId")
        if call is None or chunk.get("providerExecuted") == b"true":
            return None
        result = self.results.get(raw.text_of(call) or "")
        part = self.stream.fold.tool(call)
        if result is None and (part is None or not part.has_outcome):
            return None
        start = {k: v for k, v in chunk.items() if k not in ("input", "providerMetadata")}
        chunks = [
            {**start, "type": b'"tool-input-start"'},
            tool_input(call, chunk.get("input", b"null")),
        ]
        return chunks if result is None else [*chunks, tool_outcome(call, result)]


def joined_drafts(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """Join adjacent deltas of one part: a long replay one by one trips React's update limit."""
    last: Draft | None = None
    for draft in drafts:
        if last is not None and last.chunk is not None and draft.chunk is not None:
            both = joined(last.chunk, draft.chunk)
            if both is not None:
                last = Draft(last.frame, both, is_changed=True, edits=last.edits)
                continue
        if last is not None:
            yield last
        last = draft
    if last is not None:
        yield last
