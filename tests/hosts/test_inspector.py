"""What the inspector remembers, within which bounds, and what it makes of a record."""

import json

import pytest
from tests.support import CLIENT, SERVER, sse, ws

from midstream.adapters.capture_format import read
from midstream.adapters.capture_redact import Redactor
from midstream.core.frames import Frame, Kind
from midstream.core.ports import Record, RecordKind
from midstream.hosts.inspector import RECORD_BYTES, Ring, RingBounds
from midstream.hosts.inspector_view import View, became, shown_target

SECRET = "hunter2hunter2"
MS = 1_000_000


def opened(exchange: int = 1, target: str = "/chat", *headers: tuple[str, str]) -> Record:
    meta: dict[str, object] = {
        "route": "chat",
        "method": "GET",
        "target": target,
        "headers": (("Upgrade", "websocket"), *headers),
    }
    return Record(5 * MS, exchange, 1, RecordKind.OPEN, meta=meta)


def frame(seq: int, text: str = "x", exchange: int = 1, **fields: object) -> Record:
    record = Record(7 * MS, exchange, seq, RecordKind.FRAME, SERVER, ws(text))
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def closed(exchange: int = 1, seq: int = 9) -> Record:
    return Record(9 * MS, exchange, seq, RecordKind.CLOSE, meta={"ending": "complete"})


def filled(*records: Record, bounds: RingBounds | None = None) -> Ring:
    ring = Ring(bounds)
    for record in records:
        ring.write(record)
    return ring


def view(ring: Ring) -> View:
    return View(ring, Redactor(("authorization",)))


def seqs(ring: Ring, exchange: int = 1) -> list[int]:
    return [record.seq for record in ring.trails[exchange].records]


# --- what is remembered --------------------------------------------------------------------------


def test_it_counts_what_came_and_what_left():
    ring = filled(
        opened(),
        frame(2),
        frame(3, sent=(ws("a"), ws("b"), ws("c", CLIENT)), rules=(("fake", "swap"),)),
        frame(4, sent=()),
        frame(5, skips=(("fake", "unsure"),)),
        closed(),
    )
    row = view(ring).exchange(ring.trails[1])
    assert (row["in"], row["out"]) == ([0, 4], [1, 4])
    assert (row["mended"], row["declined"], row["outcome"]) == (1, 1, "complete")
    assert row["transport"] == "ws"


def test_the_response_tells_the_transport():
    head = Record(5, 1, 1, RecordKind.OPEN, meta={"method": "GET", "target": "/a", "headers": ()})
    events = (("Content-Type", "text/event-stream; charset=utf-8"),)
    answer = Record(6, 1, 2, RecordKind.HEADERS, SERVER, meta={"status": 200, "headers": events})
    ring = filled(head)
    assert ring.trails[1].transport == "http"
    ring.write(answer)
    assert ring.trails[1].transport == "sse"
    refused = Record(6, 2, 2, RecordKind.HEADERS, SERVER, meta={"status": 403, "headers": ()})
    ring.write(opened(2))
    ring.write(refused)
    assert ring.trails[2].transport == "http"


def test_the_oldest_record_goes_first_whichever_exchange_it_is_of():
    bounds = RingBounds(max_records=4)
    ring = filled(opened(1), opened(2), frame(2), frame(2, exchange=2), bounds=bounds)
    ring.write(frame(3))
    assert (seqs(ring, 1), seqs(ring, 2)) == ([2, 3], [1, 2])
    ring.write(frame(3, exchange=2))
    assert (seqs(ring, 1), seqs(ring, 2)) == ([2, 3], [2, 3])
    assert ring.trails[1].lost == 1
    assert ring.records == 4


def test_one_long_exchange_does_not_push_out_the_others():
    bounds = RingBounds(max_bytes=10_000_000, max_exchange_bytes=100_000, max_records=1_000)
    ring = filled(opened(1), frame(2), opened(2), bounds=bounds)
    for seq in range(2, 5_000):
        ring.write(frame(seq, "y" * 1_000, exchange=2))
    assert seqs(ring, 1) == [1, 2]
    assert ring.trails[2].size_bytes <= 100_000
    assert seqs(ring, 2)[-1] == 4_999


@pytest.mark.parametrize("text", ["z", "z" * 700])
def test_memory_stays_within_its_bounds_and_its_sums_are_right(text):
    bounds = RingBounds(
        max_bytes=100_000,
        max_records=120,
        max_exchange_bytes=30_000,
        max_exchange_records=50,
        max_exchanges=7,
    )
    ring = Ring(bounds)
    for number in range(1, 40):
        ring.write(opened(number))
        for seq in range(2, 90):
            ring.write(frame(seq, text, exchange=number if seq % 3 else max(1, number - 3)))
        if number % 2:
            ring.write(closed(number, 90))
        assert ring.size_bytes == sum(trail.size_bytes for trail in ring.trails.values())
        assert ring.records == sum(len(trail.records) for trail in ring.trails.values())
        assert ring.size_bytes <= bounds.max_bytes
        assert ring.records <= bounds.max_records
        assert len(ring.trails) <= bounds.max_exchanges
        assert len(ring._order) <= 2 * bounds.max_records


def test_an_exchange_that_is_over_is_forgotten_before_one_that_is_open():
    bounds = RingBounds(max_exchanges=2)
    ring = filled(opened(1), opened(2), closed(2), opened(3), bounds=bounds)
    assert list(ring.trails) == [1, 3]
    ring.write(opened(4))
    assert list(ring.trails) == [3, 4]
    ring.write(frame(2, exchange=1))  # it goes on, but is remembered no more
    assert list(ring.trails) == [3, 4]


def test_a_record_too_large_to_remember_leaves_a_gap_that_says_so():
    ring = filled(opened(), frame(2, "x" * 5_000), bounds=RingBounds(max_exchange_bytes=4_000))
    record = ring.trails[1].records[-1]
    assert (record.kind, record.seq, record.frame) == (RecordKind.GAP, 2, None)
    assert record.meta["bytes"] == 5_000 + RECORD_BYTES


def test_the_records_behind_a_place_are_found():
    ring = filled(opened(), *(frame(seq) for seq in range(2, 30)))
    trail = ring.trails[1]
    assert [record.seq for record in trail.after(0, 3)] == [1, 2, 3]
    assert [record.seq for record in trail.after(27, 5)] == [28, 29]
    assert trail.after(29, 5) == trail.after(300, 5) == []
    found = trail.find(17)
    assert found is not None
    assert found.seq == 17
    assert trail.find(30) is None


# --- what is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("/chat", "/chat"),
        ("/chat?", "/chat?"),
        ("/chat?token=a=b&x", "/chat?token=…&x"),
        ("/a%2Fb?_pk=1&_pk=2", "/a%2Fb?_pk=…&_pk=…"),
    ],
)
def test_of_a_query_only_the_names_are_shown(target, shown):
    assert shown_target(target) == shown


def test_nothing_that_is_redacted_is_shown():
    ring = filled(
        opened(1, f"/chat?key={SECRET}", ("Authorization", f"Bearer {SECRET}")), frame(2), closed()
    )
    shown, trail = view(ring), ring.trails[1]
    everything = [
        shown.exchange(trail),
        [shown.row(trail, record) for record in trail.records],
        [shown.detail(trail, record) for record in trail.records],
    ]
    assert SECRET not in json.dumps(everything)
    assert "redacted:" in json.dumps(everything)


def test_a_secret_cut_between_two_pieces_of_an_unread_body_is_not_shown():
    secret = b"sk-ant-api03-" + b"Ab1" * 20
    pieces = [b'{"key":"' + secret[:20], secret[20:] + b'"}']
    meta: dict[str, object] = {"unread": "too_large"}
    records = [
        Record(7, 1, seq, RecordKind.FRAME, SERVER, Frame(SERVER, Kind.BODY, piece), meta=meta)
        for seq, piece in enumerate(pieces, 2)
    ]
    ring = filled(opened(), *records)
    shown, trail = view(ring), ring.trails[1]
    for _ in range(2):  # in any order, and again
        for record in reversed(records):
            shown.row(trail, record)
        assert secret[20:].decode() not in json.dumps(shown.detail(trail, records[1]))
    trail.records.popleft()
    trail.records.popleft()  # without the first piece nobody can tell what the second one is
    assert secret[20:].decode() not in json.dumps(shown.detail(trail, records[1]))
    assert shown.row(trail, records[1])["record"] == "gap"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, ""),
        ({"skips": (("a", "unsure"),)}, "left alone"),
        ({"rules": (("a", "cut"),), "sent": ()}, "dropped"),
        ({"rules": (("a", "cut"),), "sent": (ws("b"),)}, "mended"),
        ({"rules": (("a", "cut"),)}, "would mend"),
        ({"sent": ()}, "held"),
        ({"sent": (ws("b"), ws("c"))}, "sent 2"),
    ],
)
def test_a_word_says_what_became_of_a_frame(fields, word):
    assert became(frame(2, **fields)) == word


def test_a_mended_record_is_shown_before_and_after():
    ring = filled(opened(), frame(2, '{"a":1}', sent=(sse('{"a":2}'),), rules=(("fake", "swap"),)))
    detail = view(ring).detail(ring.trails[1], ring.trails[1].records[1])
    before, after = detail["before"], detail["after"]
    assert isinstance(before, dict)
    assert isinstance(after, list)
    assert (before["text"], after[0]["text"], after[0]["kind"]) == ('{"a":1}', '{"a":2}', "sse")
    assert detail["rules"] == (("fake", "swap"),)


def test_long_frames_are_shown_in_part_and_say_so():
    ring = filled(opened(), frame(2, "x" * 600_000), frame(3, "y"))
    shown, trail = view(ring), ring.trails[1]
    assert len(str(shown.row(trail, trail.records[1])["text"])) == 600
    before = shown.detail(trail, trail.records[1])["before"]
    assert isinstance(before, dict)
    assert (len(before["text"]), before["cut"]) == (1 << 18, True)


@pytest.mark.parametrize(
    ("wire", "text"),
    [(b"\x81\xa1a\x01", '{"a":1}'), (b"\xc1\xff\x00\x01", "c1ff 0001"), (b"\xff\xfe", "�")],
)
def test_binary_messages_are_shown_as_json_or_hexadecimal(wire, text):
    kind = Kind.WS_TEXT if text == "�" else Kind.WS_BINARY
    record = Record(7, 1, 2, RecordKind.FRAME, SERVER, Frame(SERVER, kind, wire))
    ring = filled(opened(), record)
    assert str(view(ring).row(ring.trails[1], record)["text"]).startswith(text)


def test_a_download_is_a_capture_that_reads_back_and_says_what_it_lacks(tmp_path):
    bounds = RingBounds(max_exchange_records=3)
    target = f"/chat?key={SECRET}"
    ring = filled(opened(1, target), *(frame(seq, f"f{seq}") for seq in range(2, 7)), bounds=bounds)
    path = tmp_path / "exchange-1-000001.cap"
    path.write_bytes(b"".join(view(ring).capture(ring.trails[1])))
    reader = read(path)
    records = list(reader)
    assert reader.damage is None
    assert [record.kind for record in records] == ["gap", "frame", "frame", "frame"]
    assert records[0].meta == {"count": 3, "reason": "ring"}
    assert [record.data for record in records[1:]] == [b"f4", b"f5", b"f6"]
