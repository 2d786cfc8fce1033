"""Finds secrets in bodies that pass unread, and so are recorded in pieces that are cut anywhere.

- Each piece is read with the end of the one before it, so that a secret across the cut is found.
- What a cut leaves of it at the end of a piece is taken out where its beginning tells that it is
  one: a prefix of a vendor, `Bearer `, a telling name. What is left at most is a part of such a
  prefix, or of a key whose first part says nothing (a number of a bot).
- The two parts have tokens of their own.
"""

from collections import OrderedDict
from typing import Final

from midstream.adapters.capture_secrets import begun, found, joined
from midstream.adapters.capture_shapes import Span
from midstream.core.frames import Side

MAX_BEFORE_BYTES: Final = 4096
MAX_REMEMBERED: Final = 2048
"""Pieces whose end is remembered, of all exchanges together."""

type _Where = tuple[int, Side, int]


class Pieces:
    """Remembers the ends of the latest pieces. A record may be asked about more than once."""

    def __init__(self) -> None:
        self._before: OrderedDict[_Where, bytes] = OrderedDict()
        self._ends: OrderedDict[tuple[int, Side], tuple[int, bytes]] = OrderedDict()

    def spans(
        self, exchange: int, side: Side, seq: int, piece: bytes, marker: bytes
    ) -> list[tuple[int, int, bytes, str]]:
        """Return where secrets, or parts of them, stand in a piece: start, end, whole, kind."""
        before = self._context(exchange, side, seq, piece)
        whole = before + piece
        cut = len(before)
        spans: list[Span] = [span for span in found(whole) if span[1] > cut]
        open_end = begun(whole)
        if open_end is not None:
            spans.append(open_end)
        return [
            (max(start - cut, 0), end - cut, whole[start:end], kind)
            for start, end, kind in joined(spans, whole, marker)
            if end > cut
        ]

    def forget(self, exchange: int) -> None:
        """Forget an exchange that is over."""
        for side in Side:
            self._ends.pop((exchange, side), None)

    def _context(self, exchange: int, side: Side, seq: int, piece: bytes) -> bytes:
        known = self._before.get((exchange, side, seq))
        if known is not None:
            return known
        last, before = self._ends.pop((exchange, side), (0, b""))
        if last >= seq:  # an older piece, of which nothing is remembered any more
            self._ends[exchange, side] = last, before
            return b""
        self._ends[exchange, side] = seq, (before + piece)[-MAX_BEFORE_BYTES:]
        self._before[exchange, side, seq] = before
        for remembered in (self._before, self._ends):
            if len(remembered) > MAX_REMEMBERED:
                remembered.popitem(last=False)
        return before
