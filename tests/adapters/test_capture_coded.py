"""Compressed bodies that pass unread are left out from where a secret is in them."""

import gzip
import zlib
from collections.abc import Callable

import pytest
from backports import zstd
from tests.planted import SECRETS, chars

from midstream.adapters.capture_coded import MAX_BODIES
from midstream.adapters.capture_redact import Redactor
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

SECRET = SECRETS["github"].encode()
PLAIN = b"".join(b"%d words of an answer. " % number for number in range(9000))
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress,
    "GZIP ": lambda data: gzip.compress(data[:5000]) + gzip.compress(data[5000:]),
}  # fmt: skip


def begun(coding: str) -> Redactor:
    clean = Redactor([])
    clean.record(Record(1, 1, 1, RecordKind.OPEN, meta={"headers": ()}))
    headers = (("Content-Encoding", coding),)
    clean.record(Record(1, 1, 2, RecordKind.HEADERS, Side.SERVER, meta={"headers": headers}))
    return clean


def pieces(body: bytes, size: int) -> list[Record]:
    return [
        Record(
            1, 1, seq, RecordKind.FRAME, Side.SERVER,
            Frame(Side.SERVER, Kind.BODY, body[at : at + size]), meta={"unread": "coding"},
        )
        for seq, at in enumerate(range(0, len(body), size), 3)
    ]  # fmt: skip


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
def test_a_body_without_secrets_stays_as_it_came(coding: str, size: int):
    clean = begun(coding)
    for record in pieces(CODINGS[coding](PLAIN), size):
        assert clean.record(record) is record


@pytest.mark.parametrize("coding", CODINGS)
def test_from_the_secret_on_every_piece_is_left_out(coding: str):
    clean = begun(coding)
    noise = chars(40_000).encode().replace(b"sk", b"xx")
    body = CODINGS[coding](noise + b" " + SECRET + b" " + noise)
    records = pieces(body, 500)
    left = [clean.record(record) for record in records]
    kept = [record is before for record, before in zip(left, records, strict=True)]
    assert kept == sorted(kept, reverse=True)
    assert not kept[-1]
    for record, before in zip(left, records, strict=True):
        again = clean.record(before)
        assert again.frame == record.frame, "however often it is asked for"
    written = b"".join(b"" if record.frame is None else record.frame.wire for record in left)
    assert body[-400:] not in written
    assert left[-1].meta["redactions"] == {"coded": 1}


@pytest.mark.parametrize("coding", ["br", "compress", "gzip, br"])
def test_what_nobody_undoes_is_left_out(coding: str):
    clean = begun(coding)
    (record,) = pieces(b"\x8b\x02 anything " + SECRET, 1000)
    left = clean.record(record).frame
    assert left is not None
    assert left.wire.startswith(b"redacted:")
    assert SECRET not in left.wire


def test_a_bomb_and_a_broken_body_are_left_out():
    for body in (gzip.compress(b"\0" * (9 << 20)), b"\x1f\x8bnothing of that kind"):
        (record,) = pieces(body, 1 << 24)
        assert begun("gzip").record(record) is not record


def test_bodies_in_no_coding_and_of_other_exchanges_are_read():
    clean = begun("identity")
    (record,) = pieces(b"an answer " + SECRET, 1000)
    left = clean.record(record).frame
    assert left is not None
    assert left.wire.startswith(b"an answer redacted:")


def test_the_oldest_bodies_are_forgotten_and_an_exchange_with_its_close():
    clean = begun("br")
    (record,) = pieces(b"anything", 1000)
    assert clean.record(record) is not record
    clean.record(Record(1, 1, 9, RecordKind.CLOSE))
    assert clean.record(record) is record
    clean = begun("br")
    for number in range(2, MAX_BODIES + 2):
        headers = (("Content-Encoding", "br"),)
        meta: dict[str, object] = {"headers": headers}
        clean.record(Record(1, number, 1, RecordKind.HEADERS, Side.SERVER, meta=meta))
    assert clean.record(record) is record
