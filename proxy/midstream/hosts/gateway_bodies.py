"""Collects a body that an addon reads whole, and remembers how it came.

A body that nobody changed leaves as the bytes that came, content coding included. A changed one
leaves without coding. One that is too large, or not decodable, leaves as it came.
"""

from collections.abc import AsyncIterator

from midstream.core.errors import BadEncoding
from midstream.core.exchange import Headers
from midstream.core.frames import Frame, Kind, Side
from midstream.core.session import Reading
from midstream.hosts import gateway_heads as heads
from midstream.hosts.gateway_codings import inflater
from midstream.hosts.gateway_drive import Drive


class Collected:
    """The body that `side` sends."""

    def __init__(self, drive: Drive, side: Side, coding: str | None) -> None:
        self._drive = drive
        self._side = side
        self._inflater = inflater(coding) if coding else None
        self._raw: list[bytes] = []
        self._read: list[bytes] = []
        self.is_whole = False
        self.is_changed = False
        self.body = b""

    async def collect(self, chunks: AsyncIterator[bytes]) -> None:
        """Collect until the body is whole or too large; what then leaves first is in `body`."""
        try:
            async for chunk in chunks:
                self._raw.append(chunk)
                self._feed(chunk)
                if self._drive.session.reads(self._side) is Reading.UNREAD:
                    return
            self._finish()
            self.is_whole = True
        finally:
            self._settle()

    def headers(self, headers: Headers) -> Headers:
        """Return headers that are true of the body."""
        if not self.is_changed:
            return headers
        without = heads.BODY_DIGESTS | {"content-encoding"}
        kept = tuple(pair for pair in headers if pair[0].lower() not in without)
        has_length = any(name.lower() == "content-length" for name, _ in kept)
        length = str(len(self.body)) if has_length else None
        return heads.replaced(kept, "Content-Length", length)

    def _feed(self, chunk: bytes) -> None:
        try:
            for piece in self._inflater.inflate(chunk) if self._inflater else (chunk,):
                self._read.append(piece)
                self._drive.data(self._side, piece)
                if self._drive.session.reads(self._side) is Reading.UNREAD:
                    return
        except BadEncoding:
            self._drive.give_up(self._side, "bad_encoding")

    def _finish(self) -> None:
        try:
            if self._inflater is not None:
                self._inflater.finish()
        except BadEncoding:
            self._drive.give_up(self._side, "bad_encoding")

    def _settle(self) -> None:
        self.body = b"".join(self._raw)
        if not self.is_whole:
            if self._drive.session.reads(self._side) is Reading.BODY:  # it broke off
                self._drive.abort(broken=self._side.value)
            self._drop_collected()
            return
        read = b"".join(self._read)
        self._drive.end(self._side)
        left = b"".join(frame.wire for frame in self._drop_collected())
        self.is_changed = left != read and self._drive.session.reads(self._side) is Reading.BODY
        if self.is_changed:
            self.body = left

    def _drop_collected(self) -> list[Frame]:
        """Take this body's frames out of their lane; frames of other kinds stay."""
        lane = self._drive.lanes[self._side.other]
        taken = [f for f in lane.waiting if f.sender is self._side and f.kind is Kind.BODY]
        for frame in taken:
            lane.waiting.remove(frame)
        lane.sent += len(taken)
        return taken
