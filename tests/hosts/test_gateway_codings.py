import gzip
import importlib
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from midstream.core.errors import BadEncoding
from midstream.hosts.gateway_codings import PIECE_BYTES, inflater

BODY = b"the quick brown fox " * 20_000


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def brotli(data: bytes) -> bytes:
    packed: bytes = importlib.import_module("brotli").compress(data)
    return packed


def zstd(data: bytes) -> bytes:
    packed: bytes = importlib.import_module("backports.zstd").compress(data)
    return packed


CODINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("X-GZIP", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", bare_deflate),
    ("br", brotli),
    ("zstd", zstd),
]


def inflated(coding: str, data: bytes, chunk: int) -> bytes:
    undo = inflater(coding)
    assert undo is not None
    pieces: list[bytes] = []
    for start in range(0, len(data), chunk):
        pieces += undo.inflate(data[start : start + chunk])
    undo.finish()
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    return b"".join(pieces)


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_body_is_inflated_however_it_is_cut(coding, encode, chunk):
    assert inflated(coding, encode(BODY), chunk) == BODY


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_body_without_a_byte_is_whole(coding, encode):
    assert inflated(coding, b"", 1) == b""
    assert inflated(coding, encode(b""), 1) == b""


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_cut_body_is_told_at_its_end(coding, encode):
    with pytest.raises(BadEncoding, match="ends before"):
        inflated(coding, encode(BODY)[:-9], 1 << 20)


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_bytes_in_no_coding_are_told(coding, encode):
    with pytest.raises(BadEncoding):
        inflated(coding, b"\xff\xfenot coded at all", 1 << 20)


def test_a_gzip_body_may_have_several_members():
    assert inflated("gzip", gzip.compress(b"one ") + gzip.compress(b"two"), 3) == b"one two"


def test_a_deflate_body_that_goes_on_behind_its_end_is_told():
    with pytest.raises(BadEncoding):
        inflated("deflate", zlib.compress(b"one") + b"more", 1 << 20)


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_bomb_is_never_whole_in_memory(coding, encode):
    bomb = encode(bytes(64 << 20))
    undo = inflater(coding)
    assert undo is not None
    tracemalloc.start()
    total = sum(map(len, undo.inflate(bomb)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 64 << 20
    assert peak < 8 << 20


@pytest.mark.parametrize("coding", ["identity", "compress", "rot13", "gzip, br", ""])
def test_other_codings_are_not_undone(coding):
    assert inflater(coding) is None
