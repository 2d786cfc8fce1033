import random

import pytest
from tests.planted import PLANTED

from midstream.adapters.capture_batch import Batches
from midstream.adapters.capture_format import StoredRecord, encode, encode_passed, split
from midstream.adapters.capture_ring import Trail
from midstream.adapters.capture_secrets import found, holding
from midstream.config.schema import CaptureTable
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

SOME = [text.encode() for _, text, _ in PLANTED]
CLEAN = [b"task-1", b'{"text":"accept the face of SKY"}', b"", b"\xff\xfe", b"a" * 300]


def frame(wire: bytes, kind: Kind = Kind.SSE, seq: int = 1) -> Record:
    return Record(5, 7, seq, RecordKind.FRAME, Side.SERVER, Frame(Side.SERVER, kind, wire))


@pytest.mark.parametrize("kind", [Kind.SSE, Kind.WS_TEXT])
@pytest.mark.parametrize("seq", [1, 200, 70_000, 1 << 40])
def test_a_frame_that_passed_is_encoded_as_any_other_record(kind: Kind, seq: int):
    buffer = bytearray()
    record = frame(b"data: x\n\n", kind, seq)
    encode_passed(buffer, [record, record], 1 << 60, ["chat", "r"])
    first, second = split(bytes(buffer))
    assert first == encode(StoredRecord.of(record, 5 + (1 << 60), "chat"))
    assert second == encode(StoredRecord.of(record, 5 + (1 << 60), "r"))


def test_a_search_of_many_finds_what_a_search_of_each_does():
    dice = random.Random(3)
    for _ in range(50):
        texts = dice.choices(SOME + CLEAN * 20, k=40)
        expected = {at for at, text in enumerate(texts) if any(found(text))}
        assert holding(texts) == expected
    assert holding([]) == set()
    assert holding(CLEAN) == set()


def test_secrets_go_and_all_else_stays_in_order_whatever_stands_beside_it():
    dice = random.Random(4)
    batches, trail = Batches(CaptureTable()), Trail(7, "chat", "/")
    for _ in range(20):
        plain = [(text, "") for text in CLEAN * 8]
        chosen = dice.sample(PLANTED, 8)
        mixed = plain + [(text.encode(), secret) for _, text, secret in chosen]
        dice.shuffle(mixed)
        records = [frame(text) for text, _ in mixed]
        data, left_out = batches.encoded(records, [trail] * len(records))
        assert left_out == []
        blocks = list(split(data))
        assert len(blocks) == len(mixed)
        for block, (text, secret) in zip(blocks, mixed, strict=True):
            assert (text in block) is not bool(secret)
            assert not secret or secret.encode() not in block


def test_what_cannot_be_encoded_is_left_out_and_told():
    trail = Trail(7, "chat", "/")
    bad = Record(5, 7, 1, RecordKind.CLOSE, meta={"what": object()})
    data, left_out = Batches(CaptureTable()).encoded([frame(b"a"), bad, frame(b"b")], [trail] * 3)
    assert left_out == [1]
    assert len(list(split(data))) == 2


def test_with_content_left_out_every_record_is_looked_into():
    batches = Batches(CaptureTable(content="none"))
    data, _ = batches.encoded([frame(b'data: {"text":"hello you"}\n\n')], [Trail(7, "chat", "/")])
    assert b"hello you" not in data
