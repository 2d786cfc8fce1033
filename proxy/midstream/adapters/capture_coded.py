"""Looks for secrets in bodies that pass unread in a content coding (gzip, deflate, zstd).

- Such a body cannot be changed in part. It is inflated beside, piece by piece and in bounds; from
  the first piece on that a secret reaches into, every piece is left out.
- So is all of a body whose coding nobody here undoes: what is in it is not known.
"""

import importlib
import zlib
from collections import OrderedDict
from typing import Any, Final

from midstream.adapters.capture_secrets import begun, found
from midstream.core.frames import Side

MAX_BODIES: Final = 1024
MAX_INFLATED_BYTES: Final = 8 << 20
"""Of one piece; a piece that holds more is left out."""
MAX_BEFORE_BYTES: Final = 4096
_IDENTITY: Final = frozenset({"", "identity"})
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32


class CodedBodies:
    """Remembers the coded bodies of exchanges. A record may be asked about more than once."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[tuple[int, Side], _Body] = OrderedDict()

    def open(self, exchange: int, side: Side, coding: str) -> None:
        """Note the `Content-Encoding` of a body that is to come."""
        coding = coding.strip().lower()
        if coding in _IDENTITY or (exchange, side) in self._bodies:
            return
        self._bodies[exchange, side] = _Body(coding)
        if len(self._bodies) > MAX_BODIES:
            self._bodies.popitem(last=False)

    def forget(self, exchange: int) -> None:
        """Forget an exchange that is over."""
        for side in Side:
            self._bodies.pop((exchange, side), None)

    def leaves_out(self, exchange: int, side: Side, seq: int, piece: bytes) -> bool | None:
        """Tell whether a piece has to be left out; None where the body is in no coding."""
        body = self._bodies.get((exchange, side))
        return None if body is None else body.leaves_out(seq, piece)


class _Body:
    """One body: where its first piece is that has to be left out."""

    def __init__(self, coding: str) -> None:
        self._member = _member(coding)
        self._coding = coding
        self._before = b""
        self._last = 0
        self._from: int | None = None if self._member is not None else 0

    def leaves_out(self, seq: int, piece: bytes) -> bool:
        if self._from is None and seq > self._last:
            self._last = seq
            if not self._is_clean(piece):
                self._from, self._member = seq, None
        return self._from is not None and seq >= self._from

    def _is_clean(self, piece: bytes) -> bool:
        try:
            text = self._inflated(piece)
        except Exception:  # noqa: BLE001 - each library has its own; what cannot be read stays unknown
            return False
        if text is None:
            return False
        whole = self._before + text
        self._before = whole[-MAX_BEFORE_BYTES:]
        return begun(whole) is None and not any(found(whole))

    def _inflated(self, piece: bytes) -> bytes | None:
        """Return what a piece inflates to; None where that is too much."""
        out = bytearray()
        while piece:
            if self._member.eof:  # members may follow each other
                self._member = _member(self._coding)
            room = MAX_INFLATED_BYTES - len(out)
            if room <= 0:
                return None
            out += self._member.decompress(piece, room)
            piece = self._member.unused_data or getattr(self._member, "unconsumed_tail", b"")
        if not getattr(self._member, "needs_input", True) and not self._member.eof:
            return None
        return bytes(out)


def _member(coding: str) -> Any:
    """Return what undoes a coding, or None."""
    if coding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(_GZIP_OR_ZLIB)
    if coding == "zstd":
        try:
            return importlib.import_module("backports.zstd").ZstdDecompressor()
        except ImportError:
            return None
    return None
