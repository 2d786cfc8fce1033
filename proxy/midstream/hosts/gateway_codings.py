"""Undoes the content coding of a body, piece by piece, so that no bomb is ever whole in memory.

The gateway asks upstreams not to code what it reads; this is for those that do all the same. gzip
and deflate always work; br and zstd do where their libraries are installed.
"""

import importlib
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

from midstream.core.errors import BadEncoding

PIECE_BYTES = 64 << 10
BROTLI_BYTES = PIECE_BYTES // 4
"""Its library rounds this up to whole blocks of its own."""
GZIP = zlib.MAX_WBITS | 16
ZLIB = zlib.MAX_WBITS
RAW_DEFLATE = -zlib.MAX_WBITS
DEFLATE_METHOD = 8


class Inflater(Protocol):
    """Takes a coded body in chunks. Raises BadEncoding."""

    def inflate(self, data: bytes) -> Iterator[bytes]:
        """Return what a chunk inflates to, in pieces of at most `PIECE_BYTES`."""

    def finish(self) -> None:
        """Check that the body was whole."""


def inflater(coding: str) -> Inflater | None:
    """Return an inflater for the value of `Content-Encoding`, or None where there is none."""
    coding = coding.strip().lower()
    if coding in ("gzip", "x-gzip"):
        return _Zlib(GZIP)
    if coding == "deflate":
        return _Zlib(None)
    try:
        if coding == "br":
            return _Brotli(importlib.import_module("brotli"))
        if coding == "zstd":
            return _Zstd(importlib.import_module("backports.zstd"))
    except (ImportError, AttributeError):
        pass
    return None


class _Zlib:
    """gzip, of any number of members, and deflate, with or without its zlib header."""

    def __init__(self, wbits: int | None) -> None:
        self._wbits = wbits
        self._member = None if wbits is None else zlib.decompressobj(wbits)
        self._begun = False

    def inflate(self, data: bytes) -> Iterator[bytes]:
        while data:
            member = self._member_for(data)
            try:
                piece = member.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise BadEncoding(f"a compressed body cannot be inflated: {error}") from None
            self._begun = True
            data = member.unconsumed_tail or member.unused_data
            if piece:
                yield piece
            elif member.unconsumed_tail:
                raise BadEncoding("a compressed body cannot be inflated: no progress")

    def finish(self) -> None:
        if self._begun and self._member is not None and not self._member.eof:
            raise BadEncoding("a compressed body ends before its content")

    def _member_for(self, data: bytes) -> "zlib._Decompress":
        if self._member is None:
            # Some servers send deflate bare. A zlib header starts with its method, which is 8.
            self._wbits = ZLIB if data[0] & 0x0F == DEFLATE_METHOD else RAW_DEFLATE
            self._member = zlib.decompressobj(self._wbits)
        elif self._member.eof:
            if self._wbits != GZIP:
                raise BadEncoding("a compressed body ends before its bytes do")
            self._member = zlib.decompressobj(GZIP)
        return self._member


class _Brotli:
    def __init__(self, brotli: Any) -> None:
        self._error = brotli.error
        self._decompressor = brotli.Decompressor()
        self._more = self._decompressor.can_accept_more_data
        self._begun = False

    def inflate(self, data: bytes) -> Iterator[bytes]:
        self._begun = True
        while True:
            try:
                piece = self._decompressor.process(data, output_buffer_limit=BROTLI_BYTES)
            except self._error as error:
                raise BadEncoding(f"a compressed body cannot be inflated: {error}") from None
            if piece:
                yield piece
            if self._decompressor.is_finished() or (not piece and self._more()):
                return
            data = b""  # it takes more only when nothing of the last is left inside

    def finish(self) -> None:
        if self._begun and not self._decompressor.is_finished():
            raise BadEncoding("a compressed body ends before its content")


class _Zstd:
    def __init__(self, zstd: Any) -> None:
        self._zstd = zstd
        self._frame = zstd.ZstdDecompressor()
        self._begun = False

    def inflate(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._frame.needs_input or self._frame.eof):
            if self._frame.eof:
                self._frame = self._zstd.ZstdDecompressor()
            self._begun = True
            try:
                piece = self._frame.decompress(data, PIECE_BYTES)
            except self._zstd.ZstdError as error:
                raise BadEncoding(f"a compressed body cannot be inflated: {error}") from None
            data = self._frame.unused_data if self._frame.eof else b""
            if piece:
                yield piece

    def finish(self) -> None:
        if self._begun and not self._frame.eof:
            raise BadEncoding("a compressed body ends before its content")
