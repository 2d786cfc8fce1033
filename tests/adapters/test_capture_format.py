import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.adapters.capture_format import (
    HEADER,
    HEADER_BYTES,
    PREFIX_BYTES,
    StoredRecord,
    encode,
    read,
    segment_name,
    segments,
)
from midstream.adapters.capture_heads import asked, request_head, response_head
from midstream.core.addon import Answer, Fetch, Wait
from midstream.core.errors import CaptureError
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind

WORDS = st.text(st.characters(min_codepoint=97, max_codepoint=122), max_size=12)
PAIRS = st.lists(st.tuples(WORDS, WORDS), max_size=3).map(tuple)
SENT = st.tuples(st.sampled_from(Side), st.sampled_from(Kind), st.binary(max_size=40))
RECORDS = st.builds(
    StoredRecord,
    wall_ns=st.integers(0, 2**63 - 1),
    mono_ns=st.integers(0, 2**63 - 1),
    exchange=st.integers(0, 2**40),
    seq=st.integers(0, 2**40),
    kind=st.sampled_from(RecordKind),
    side=st.none() | st.sampled_from(Side),
    route=WORDS,
    frame=st.none() | st.sampled_from(Kind),
    data=st.binary(max_size=200),
    sent=st.none() | st.lists(SENT, max_size=3).map(tuple),
    rules=PAIRS,
    skips=PAIRS,
    meta=st.dictionaries(
        WORDS, st.integers(-(2**40), 2**40) | WORDS | st.binary(max_size=9), max_size=3
    ),
)


def record(seq: int, data: bytes = b"x") -> StoredRecord:
    return StoredRecord(10, 20, 3, seq, RecordKind.FRAME, Side.SERVER, "chat", Kind.WS_TEXT, data)


def written(path: Path, data: bytes) -> Path:
    file = path / segment_name("c", 1)
    file.write_bytes(data)
    return file


@given(st.lists(RECORDS, max_size=8))
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, records: list[StoredRecord]
) -> None:
    file = tmp_path_factory.getbasetemp() / "round.cap"
    file.write_bytes(HEADER + b"".join(encode(record) for record in records))

    reader = read(file)

    assert list(reader) == records
    assert reader.damage is None


def test_a_cut_at_any_byte_keeps_every_whole_record_and_names_the_torn_one(tmp_path: Path) -> None:
    blocks = [encode(record(seq, b"payload" * seq)) for seq in range(1, 4)]
    whole = HEADER + b"".join(blocks)
    starts = [HEADER_BYTES + sum(map(len, blocks[:n])) for n in range(len(blocks) + 1)]

    for cut in range(HEADER_BYTES, len(whole) + 1):
        reader = read(written(tmp_path, whole[:cut]))
        found = [stored.seq for stored in reader]

        complete = sum(start <= cut for start in starts[1:])
        assert found == list(range(1, complete + 1))
        if cut in starts:
            assert reader.damage is None
        else:
            assert reader.damage is not None
            assert reader.damage.offset == starts[complete]


def test_a_flipped_bit_anywhere_in_a_record_stops_the_reader_at_that_record(tmp_path: Path) -> None:
    first, second, third = (encode(record(seq)) for seq in (1, 2, 3))
    start = HEADER_BYTES + len(first)

    for bit in range(len(second) * 8):
        bad = bytearray(second)
        bad[bit // 8] ^= 1 << bit % 8
        reader = read(written(tmp_path, HEADER + first + bad + third))

        assert [stored.seq for stored in reader] == [1]
        assert reader.damage is not None
        assert reader.damage.offset == start


def test_a_tail_of_zeros_is_damage_and_not_a_row_of_empty_records(tmp_path: Path) -> None:
    first = encode(record(1))
    reader = read(written(tmp_path, HEADER + first + bytes(64)))

    assert len(list(reader)) == 1
    assert reader.damage is not None
    assert reader.damage.offset == HEADER_BYTES + len(first)
    assert "length is 0" in reader.damage.reason


def test_a_whole_record_of_something_else_is_damage(tmp_path: Path) -> None:
    body = b"\x93\x01\x02\x03"
    block = struct.pack("<II", len(body), zlib.crc32(body)) + body

    reader = read(written(tmp_path, HEADER + block))

    assert list(reader) == []
    assert reader.damage is not None
    assert reader.damage.offset == HEADER_BYTES
    assert "decoded" in reader.damage.reason


def test_an_unknown_key_of_a_later_writer_is_passed_over(tmp_path: Path) -> None:
    known = encode(record(1))[PREFIX_BYTES:]
    body = bytes([known[0] + 1]) + known[1:] + b"\xa5later\x01"
    block = struct.pack("<II", len(body), zlib.crc32(body)) + body

    assert list(read(written(tmp_path, HEADER + block))) == [record(1)]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"", "not a capture"),
        (HEADER[:15], "not a capture"),
        (b"GIF89a, as it happens", "not a capture"),
        (HEADER.replace(b"\r\n", b"\n") + b"\0", "not a capture"),
        (HEADER[:10] + b"\x01\x02" + HEADER[12:], "not a capture"),
        (HEADER[:8] + b"\x02\x00" + HEADER[10:], "version 2"),
        (HEADER[:12] + b"\x01\x00\x00\x00", "flags 0x1"),
    ],
)
def test_a_foreign_or_newer_file_is_refused_in_one_line(
    tmp_path: Path, header: bytes, reason: str
) -> None:
    with pytest.raises(CaptureError, match=reason) as caught:
        read(written(tmp_path, header))
    assert "\n" not in str(caught.value)


def test_a_capture_is_named_by_a_segment_by_its_name_or_by_its_directory(tmp_path: Path) -> None:
    for number in (2, 1):
        block = encode(record(number))
        (tmp_path / segment_name("c", number)).write_bytes(HEADER + block)
    (tmp_path / "other.txt").write_text("no capture")

    assert [r.seq for r in read(tmp_path / "c-000002.cap")] == [2]
    assert [r.seq for r in read(tmp_path / "c")] == [1, 2]
    assert [r.seq for r in read(str(tmp_path))] == [1, 2]


def test_damage_in_one_segment_ends_the_capture_there(tmp_path: Path) -> None:
    (tmp_path / segment_name("c", 1)).write_bytes(HEADER + encode(record(1))[:-1])
    (tmp_path / segment_name("c", 2)).write_bytes(HEADER + encode(record(2)))

    reader = read(tmp_path / "c")

    assert list(reader) == []
    assert reader.damage is not None
    assert reader.damage.path == tmp_path / segment_name("c", 1)


def test_a_missing_capture_and_a_directory_of_several_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such capture"):
        segments(tmp_path / "gone")
    with pytest.raises(CaptureError, match="no such capture"):
        segments(tmp_path / "gone" / "gone")
    with pytest.raises(CaptureError, match="holds no capture"):
        segments(tmp_path)
    for name in ("a", "b"):
        (tmp_path / segment_name(name, 1)).write_bytes(HEADER)
    with pytest.raises(CaptureError, match="holds 2 captures"):
        segments(tmp_path)


def test_a_record_of_the_core_keeps_its_frames_and_says_what_left() -> None:
    came = Frame(Side.CLIENT, Kind.WS_TEXT, b"came")
    went = Frame(Side.CLIENT, Kind.WS_TEXT, b"went")
    answer = Frame(Side.SERVER, Kind.WS_BINARY, b"\x80")
    base = Record(5, 1, 2, RecordKind.FRAME, Side.CLIENT, came)

    plain = StoredRecord.of(base, 9, "chat")
    assert (plain.received, plain.left, plain.route) == (came, (came,), "chat")
    assert plain.sent is None

    base.sent, base.rules = (went, answer), (("addon", "rule"),)
    mended = StoredRecord.of(base, 9)
    assert mended.received == came
    assert mended.left == (went, answer)
    assert mended.rules == (("addon", "rule"),)

    base.sent = ()
    assert StoredRecord.of(base, 9).left == ()
    assert StoredRecord.of(Record(5, 1, 2, RecordKind.CLOSE), 9).left == ()


def test_heads_and_asks_survive_with_text_that_is_not_utf_8(tmp_path: Path) -> None:
    headers = (("X-Name", "caf\udce9"), ("Accept", "text/plain, é"))
    heads: dict[str, object] = {"method": "GET", "target": "/a%2Fb?\udcff", "headers": headers}
    ask = Fetch("/history")
    records = [
        Record(1, 1, 1, RecordKind.OPEN, meta=heads),
        Record(2, 1, 2, RecordKind.HEADERS, Side.SERVER, meta={"status": 200, "headers": headers}),
        Record(
            3, 1, 3, RecordKind.ASK, meta={"number": 4, "ask": ask, "answer": Answer(200, b"\xff")}
        ),
        Record(
            4, 1, 4, RecordKind.ASK, meta={"number": 5, "ask": Wait(9, "w"), "answer": Answer()}
        ),
    ]
    data = b"".join(encode(StoredRecord.of(record, 0)) for record in records)

    first, second, third, fourth = read(written(tmp_path, HEADER + data))

    assert request_head(first).target == "/a%2Fb?\udcff"
    assert request_head(first).headers == headers
    assert response_head(second).status == 200
    assert response_head(second).headers == headers
    pending, answer = asked(third)
    assert (pending.number, pending.ask, answer) == (4, ask, Answer(200, b"\xff"))
    assert asked(fourth)[0].ask == Wait(9, "w")


@pytest.mark.parametrize("meta", [{}, {"method": "GET", "target": "/", "headers": 3}])
def test_a_record_without_its_head_says_so(meta: dict[str, object]) -> None:
    bare = StoredRecord(0, 0, 7, 1, RecordKind.OPEN, meta=meta)
    for read_head in (request_head, response_head, asked):
        with pytest.raises(CaptureError, match="exchange 7"):
            read_head(bare)
