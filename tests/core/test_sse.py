import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.core import sse
from midstream.core.errors import FrameTooLarge
from midstream.core.sse import BOM, SseSplitter

LIMIT = 1 << 20


def split(*chunks: bytes, limit: int = LIMIT) -> tuple[list[bytes], bytes]:
    splitter = SseSplitter(limit)
    events = [event for chunk in chunks for event in splitter.receive(chunk)]
    return events, splitter.flush()


def chunked(stream: bytes, rnd: random.Random) -> list[bytes]:
    cuts = sorted(rnd.randrange(len(stream) + 1) for _ in range(rnd.randrange(20)))
    return [stream[a:b] for a, b in pairwise([0, *cuts, len(stream)])]


def read_by_the_standard(stream: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """What a browser makes of a stream (WHATWG HTML 9.2.6): (event, id, data) of each dispatch."""
    lines = re.split(rb"\r\n|\n|\r", stream.removeprefix(BOM))
    lines.pop()  # what the end of the stream cut off is no line
    dispatched = []
    event, last_id, data = b"", b"", b""
    for line in lines:
        if not line:
            if data:
                dispatched.append((event, last_id, data[:-1]))
            event, data = b"", b""
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            event = value
        elif name == b"id":
            last_id = value
        elif name == b"data":
            data += value + b"\n"
    return dispatched


RANDOM = st.randoms(use_true_random=True)
LINES = [
    *(b"", b"", b"data: a", b"data:b", b"data", b"data:  two", b"datax: y"),
    *(b"id: 7", b"event: x", b": note"),
]


def stream_by(rnd: random.Random) -> bytes:
    ends = rnd.choice([[b"\n"], [b"\r\n"], [b"\n", b"\r\n", b"\r"], [b"\n", b"\r"]])
    lines = b"".join(rnd.choice(LINES) + rnd.choice(ends) for _ in range(rnd.randrange(14)))
    return rnd.choice([b"", b"", BOM]) + lines + rnd.choice([b"", b"", b"data: cut o", b"\r", b":"])


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"data: a\n\n", b"data: b\n\n"]),
        (b"data: a\r\n\r\n: c\r\n\r\n", [b"data: a\r\n\r\n", b": c\r\n\r\n"]),
        (b"data: a\r\rdata: b\r\r:", [b"data: a\r\r", b"data: b\r\r"]),
        (b"data: a\r\r\n:", [b"data: a\r\r\n"]),
        (b"data: a\n\r\n\rx", [b"data: a\n\r\n", b"\r"]),
        (b"\n\r\n\rdata: a\n\n", [b"\n", b"\r\n", b"\r", b"data: a\n\n"]),
        (b"\xef\xbb\xbf\ndata: a\n\n", [b"\xef\xbb\xbf\n", b"data: a\n\n"]),
        (b"data: a\r\ndata: b\n\r\n", [b"data: a\r\ndata: b\n\r\n"]),
    ],
)
def test_an_event_ends_with_its_empty_line(stream: bytes, events: list[bytes]) -> None:
    assert split(stream)[0] == events
    assert split(*(stream[i : i + 1] for i in range(len(stream))))[0] == events


@settings(max_examples=1000)
@given(RANDOM)
def test_nothing_is_lost_and_the_cuts_do_not_depend_on_the_chunks(rnd: random.Random) -> None:
    stream = stream_by(rnd)
    events, rest = split(*chunked(stream, rnd))
    assert b"".join(events) + rest == stream
    assert (events, rest) == split(stream)


@settings(max_examples=1000)
@given(RANDOM)
def test_events_read_one_by_one_are_what_a_client_reads_from_the_stream(
    rnd: random.Random,
) -> None:
    stream = stream_by(rnd) + b"\n"
    events, rest = split(stream)
    read = []
    last_id = b""
    for event in [*events, rest]:
        for name, event_id, data in read_by_the_standard(event):
            last_id = event_id or last_id
            read.append((name, last_id, data))
            assert sse.data_of(event) == data
        if sse.field_of(event, b"id") is not None:
            last_id = sse.field_of(event, b"id") or b""
    assert read == read_by_the_standard(stream)


@pytest.mark.parametrize("event", [b"data: a\n\n", b"id: 1\r\ndata: a\r\n\r\n"])
def test_an_event_is_returned_with_its_last_byte(event: bytes) -> None:
    splitter = SseSplitter(LIMIT)
    assert splitter.receive(event[:-1]) == []
    assert splitter.pending_bytes == len(event) - 1
    assert splitter.receive(event[-1:]) == [event]
    assert splitter.pending_bytes == 0


def test_a_bare_cr_at_the_end_waits_for_the_next_byte() -> None:
    splitter = SseSplitter(LIMIT)
    assert splitter.receive(b"data: a\r\r") == []
    assert splitter.receive(b"d") == [b"data: a\r\r"]
    assert splitter.flush() == b"d"

    assert splitter.receive(b"data: a\r\r") == []
    assert splitter.receive(b"\n") == [b"data: a\r\r\n"]
    assert splitter.receive(b"data: b\r\r") == []
    assert splitter.flush() == b"data: b\r\r"
    assert splitter.flush() == b""


def test_an_event_of_exactly_the_limit_passes() -> None:
    assert split(b"data: 12\n\n", limit=10) == ([b"data: 12\n\n"], b"")
    with pytest.raises(FrameTooLarge, match="SSE event is 11 bytes, limit is 10"):
        split(b"data: 123\n\n", limit=10)


def test_events_before_one_too_large_can_be_taken_and_nothing_is_lost() -> None:
    splitter = SseSplitter(12)
    large = b"data: too large for this\n\ndata: b\n\n"
    with pytest.raises(FrameTooLarge, match="SSE event is 26 bytes, limit is 12"):
        splitter.receive(b"data: a\n\n" + large)
    with pytest.raises(FrameTooLarge):
        splitter.receive(b"more")
    assert splitter.pending_bytes == len(b"data: a\n\n" + large + b"more")
    assert splitter.completed() == [b"data: a\n\n"]
    assert splitter.flush() == large + b"more"
    assert splitter.completed() == []


@settings(max_examples=1000)
@given(RANDOM)
def test_over_the_limit_everything_not_returned_is_flushed(rnd: random.Random) -> None:
    stream = stream_by(rnd)
    limit = rnd.randrange(1, 30)
    splitter = SseSplitter(limit)
    out: list[bytes] = []
    for chunk in chunked(stream, rnd):
        try:
            out += splitter.receive(chunk)
        except FrameTooLarge:
            continue
    assert all(len(event) <= limit for event in out)
    assert b"".join(out) + splitter.flush() == stream


@pytest.mark.parametrize(
    ("wire", "data"),
    [
        (b"data: a\n\n", b"a"),
        (b"data:a\r\n\r\n", b"a"),
        (b"data:  a\n\n", b" a"),
        (b"data: a\ndata\ndata:\ndata: b\n\n", b"a\n\n\nb"),
        (b"\xef\xbb\xbfdata: a\n\n", b"a"),
        (b"id: 1\ndatax: no\n data: no\n: data: no\nevent: x\n\n", b""),
        (b"data: cut", b"cut"),
        (b"", b""),
    ],
)
def test_the_payload_is_the_data_lines(wire: bytes, data: bytes) -> None:
    assert sse.data_of(wire) == data


def test_fields_are_read_in_order_and_the_last_counts() -> None:
    wire = b"\xef\xbb\xbfid: 1\n: note\nid:2\nretry\ndata: a: b\n\n"
    assert sse.fields_of(wire) == [
        (b"id", b"1"),
        (b"id", b"2"),
        (b"retry", b""),
        (b"data", b"a: b"),
    ]
    assert sse.field_of(wire, b"id") == b"2"
    assert sse.field_of(wire, b"event") is None


@pytest.mark.parametrize(
    ("wire", "data", "expected"),
    [
        (b"data: a\n\n", b"b", b"data: b\n\n"),
        (b"data:a\n\n", b"b", b"data:b\n\n"),
        (b"data:a\n\n", b"b\n b", b"data: b\ndata:  b\n\n"),
        (
            b": c\r\nid: 1\r\ndata: a\r\nx: y\r\n\r\n",
            b"b",
            b": c\r\nid: 1\r\ndata: b\r\nx: y\r\n\r\n",
        ),
        (b"data: a\nid: 1\ndata: b\n\n", b"c\nd", b"data: c\ndata: d\nid: 1\n\n"),
        (b"id: 1\n\n", b"a", b"id: 1\ndata: a\n\n"),
        (b"id: 1\r\n\r\n", b"a", b"id: 1\r\ndata: a\r\n\r\n"),
        (b"\n", b"a", b"data: a\n\n"),
        (b"data\n\n", b"a", b"data: a\n\n"),
        (b"data: a\n\n", b"", b"data: \n\n"),
        (b"data: a\rdata: b\n\n", b"c", b"data: c\r\n\n"),
        (b"\xef\xbb\xbfdata: a\n\n", b"b", b"\xef\xbb\xbfdata: b\n\n"),
        (b": cut", b"a", b": cut\ndata: a\n"),
        (b"", b"a", b"data: a\n"),
    ],
)
def test_other_data_in_the_place_of_the_first_data_line(
    wire: bytes, data: bytes, expected: bytes
) -> None:
    assert sse.with_data(wire, data) == expected


@settings(max_examples=1000)
@given(RANDOM)
def test_an_event_with_other_data_keeps_all_else(rnd: random.Random) -> None:
    text = "".join(rnd.choices("a \n\u00e9", k=rnd.randrange(8)))
    for wire in split(stream_by(rnd))[0]:
        changed = sse.with_data(wire, text.encode())
        assert split(changed + b":")[0] == [changed]
        assert sse.data_of(changed) == text.encode()
        others = [field for field in sse.fields_of(wire) if field[0] != b"data"]
        assert [field for field in sse.fields_of(changed) if field[0] != b"data"] == others
        assert sse.with_data(changed, text.encode()) == changed


def test_an_event_is_built_from_nothing() -> None:
    assert sse.event(b"a\nb", event="x", id="1") == b"event: x\nid: 1\ndata: a\ndata: b\n\n"
    assert sse.event(b"") == b"data: \n\n"
    with pytest.raises(ValueError, match="line break"):
        sse.event(b"a", id="1\ndata: forged")
