"""Planted secrets are found wherever they stand, and what only looks like one stays."""

import json
from pathlib import Path

import msgpack
import pytest
from tests.planted import NAMED, PLANTED, SECRETS, chars

from midstream.adapters.capture_format import StoredRecord, encode, read
from midstream.adapters.capture_redact import Redactor, redactor
from midstream.config.schema import CaptureTable
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

CAPTURES = sorted((Path(__file__).parents[1] / "captures").rglob("*.cap"))


def cleaned(frame: Frame, **meta: object) -> Record:
    record = Record(1, 1, 1, RecordKind.FRAME, frame.sender, frame, meta=dict(meta))
    return redactor(CaptureTable()).record(record)


def frame_of(record: Record) -> Frame:
    assert record.frame is not None
    return record.frame


@pytest.mark.parametrize(("name", "text", "secret"), PLANTED, ids=[p[0] for p in PLANTED])
def test_a_planted_secret_is_nowhere_left(name: str, text: str, secret: str):
    inner = json.dumps({"content": f"use {text} now"})
    wires = [
        (Kind.BODY, json.dumps({"text": f"use {text} now"}).encode()),
        (Kind.WS_TEXT, json.dumps({"init": {"body": inner}}).encode()),
        (Kind.SSE, b"data: " + inner.encode() + b"\n\n"),
        (Kind.WS_BINARY, msgpack.packb({"text": f"use {text} now", "n": 1})),
        (Kind.BODY, f"plain {text} text".encode()),
    ]
    for kind, wire in wires:
        record = cleaned(Frame(Side.CLIENT, kind, wire))
        assert secret.encode() not in encode(StoredRecord.of(record, 1)), (name, kind)
        assert record.meta["redactions"]
        if kind is Kind.WS_BINARY:
            assert msgpack.unpackb(frame_of(record).wire)["n"] == 1
        elif kind is Kind.SSE:
            json.loads(frame_of(record).payload)


@pytest.mark.parametrize(("name", "text", "secret"), PLANTED, ids=[p[0] for p in PLANTED])
def test_heads_targets_and_close_reasons_are_cleaned(name: str, text: str, secret: str):
    if name == "private key":
        text = text.replace(" ", "")  # no line of a head holds one as it is
    meta: dict[str, object] = {
        "target": f"/x?note={text.replace(' ', '+')}", "reason": f"because {text}",
        "headers": (("X-Note", text), ("Cookie", "a=" + chars(12))),
    }  # fmt: skip
    record = redactor(CaptureTable()).record(Record(1, 1, 1, RecordKind.OPEN, meta=meta))
    left = repr(record.meta["headers"]) + str(record.meta["reason"])
    assert secret not in left or name == "private key"
    assert chars(12) not in left


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_value_under_a_telling_name_is_a_secret_however_deep_it_is_quoted(name: str, depth: int):
    document = json.dumps({name: "hunter 2 \\ é", "n": 1}, ensure_ascii=False)
    for _ in range(depth):
        document = json.dumps({"body": document}, ensure_ascii=False)
    wire = frame_of(cleaned(Frame(Side.CLIENT, Kind.BODY, document.encode()))).wire
    assert b"hunter" not in wire
    found = json.loads(wire)
    for _ in range(depth):
        found = json.loads(found["body"])
    assert found[name].startswith("redacted:")
    assert found["n"] == 1


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_nothing_in_real_traffic_is_taken_for_a_secret(path: Path):
    clean = redactor(CaptureTable())
    for stored in read(path):
        frame = stored.received
        if frame is not None:
            record = Record(1, 1, 1, stored.kind, stored.side, frame)
            assert clean.record(record) is record


@pytest.mark.parametrize(
    "text",
    [
        "msg_0123456789abcdef0123456789abcdef", "call_abcdefghijklmnopqrstuvwx",
        "resp_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b",
        "123e4567-e89b-12d3-a456-426614174000", '{"token":" word","logprob":-0.1}',
        '{"max_tokens":100,"token_count":"17"}', "the basic idea and the bearer of news",
        "https://a.test/x?page=2&q=keys", '{"type":"reasoning","encrypted_content":"gAAAAABoQ=="}',
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_stays(text: str):
    frame = Frame(Side.SERVER, Kind.WS_TEXT, text.encode())
    assert frame_of(cleaned(frame)) is frame


def test_equal_secrets_stay_equal_within_a_capture_and_cannot_be_tested_from_outside():
    secret = SECRETS["openai"]
    one, other = redactor(CaptureTable()), redactor(CaptureTable())
    frame = Frame(Side.CLIENT, Kind.WS_TEXT, f"a {secret} b {secret}".encode())
    record = Record(1, 1, 1, RecordKind.FRAME, Side.CLIENT, frame, sent=(frame,))
    first, second = one.record(record), one.record(record)
    assert frame_of(first).wire == frame_of(second).wire
    assert first.sent is not None
    assert first.sent[0].wire == frame_of(first).wire
    words = frame_of(first).wire.split()
    assert words[1] == words[3]
    assert frame_of(other.record(record)).wire != frame_of(first).wire


@pytest.mark.parametrize("name", ["openai", "github", "aws", "gitlab", "google oauth", "jwt"])
def test_of_a_secret_across_the_pieces_of_a_body_no_more_than_a_prefix_is_left(name: str):
    secret = SECRETS[name]
    whole = f'{{"text":"{secret}","n":1}}'.encode()
    for cut in range(1, len(whole)):
        left = pieces_of(whole[:cut], whole[cut:])
        for at in range(len(secret) - 10):
            assert secret[at : at + 11].encode() not in left, cut
        assert left.endswith(b'","n":1}')


@pytest.mark.parametrize("cut", range(1, 50))
def test_a_named_value_across_the_pieces_of_a_body_is_found(cut: int):
    whole = b'{"n":"word","password":"correct horse battery","m":2}'
    left = pieces_of(whole[:cut], whole[cut:])
    assert b"horse" not in left
    assert b"correct" not in left
    assert b"battery" not in left
    assert left.endswith(b'","m":2}')


def test_a_piece_is_cleaned_alike_however_often_it_is_asked_for():
    secret = SECRETS["github"].encode()
    clean = Redactor([])
    records = [piece(secret[:20], 1), piece(secret[20:] + b" and more", 2), piece(b" end", 3)]
    first = [frame_of(clean.record(record)).wire for record in records]
    assert [frame_of(clean.record(record)).wire for record in records] == first
    assert secret[20:] not in b"".join(first)


def test_pieces_are_forgotten_with_their_exchange_and_none_reads_anothers_end():
    clean = Redactor([])
    clean.record(piece(b"gh" + b"p_", 1))
    clean.record(Record(2, 1, 2, RecordKind.CLOSE))
    later = piece(b"0123456789" * 4, 3)
    assert clean.record(later) is later


def piece(data: bytes, seq: int) -> Record:
    frame = Frame(Side.CLIENT, Kind.BODY, data)
    return Record(1, 1, seq, RecordKind.FRAME, Side.CLIENT, frame, meta={"unread": "too_large"})


def pieces_of(*data: bytes) -> bytes:
    clean = Redactor([])
    return b"".join(
        frame_of(clean.record(piece(each, seq))).wire for seq, each in enumerate(data, 1)
    )


def test_configured_paths_are_replaced_and_every_other_byte_stays():
    table = CaptureTable(redact_paths=("user.email", "items[*].note", "init.body.who"))
    wire = (
        b'{ "user":{"email":"a@b.test","n":1.50}, "items":[{"note":"x"},{"note":2,"k":"\\u00e9"}],'
        b'"init":{"body":"{\\"who\\":\\"me\\",\\"m\\":1}"} }'
    )
    frame = Frame(Side.CLIENT, Kind.WS_TEXT, wire)
    record = redactor(table).record(Record(1, 1, 1, RecordKind.FRAME, Side.CLIENT, frame))
    clean = frame_of(record).wire
    assert b"a@b.test" not in clean
    assert b'"n":1.50' in clean
    assert b'"\\u00e9"' in clean
    assert b'\\"m\\":1' in clean
    assert b"me\\" not in clean
    assert record.meta["redactions"] == {"path": 4}
