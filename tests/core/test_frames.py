"""Frames: what they carry, and that another payload changes nothing else."""

import pytest
from tests.support import CLIENT, SERVER, sse, ws

from midstream.core.frames import Frame, Kind, Side

EVENT = b'id: 7\r\nevent: message\r\ndata: {"a":1}\r\nother: x\r\n\r\n'


def test_each_side_has_the_other():
    assert CLIENT.other is SERVER
    assert SERVER.other is CLIENT


@pytest.mark.parametrize("kind", [Kind.WS_TEXT, Kind.WS_BINARY, Kind.BODY])
def test_the_payload_of_a_message_or_a_body_is_its_wire_bytes(kind):
    frame = Frame(SERVER, kind, b"\x00data: a\n\n")
    assert frame.payload is frame.wire
    assert frame.with_payload(b"b") == Frame(SERVER, kind, b"b")


def test_the_payload_of_an_event_is_its_data():
    assert sse("a").payload == b"a"
    assert Frame(SERVER, Kind.SSE, b"data: a\ndata:b\n\n").payload == b"a\nb"
    assert Frame(SERVER, Kind.SSE, b": ping\n\n").payload == b""


def test_an_event_with_another_payload_keeps_every_other_line():
    frame = Frame(SERVER, Kind.SSE, EVENT).with_payload(b'{"a":2}')
    assert frame.wire == EVENT.replace(b"1", b"2")
    assert frame.payload == b'{"a":2}'
    assert (frame.sender, frame.kind) == (SERVER, Kind.SSE)


def test_frames_are_equal_by_what_they_carry_and_not_by_what_was_read():
    first, second = ws("a"), ws("a").remember("reading")
    assert first == second
    assert hash(first) == hash(second)
    assert {first, second} == {first}


@pytest.mark.parametrize(
    "other", [ws("b"), ws("a", CLIENT), Frame(SERVER, Kind.WS_BINARY, b"a"), b"a"]
)
def test_frames_differ_by_bytes_kind_and_sender(other):
    assert ws("a") != other


def test_a_reading_is_kept_with_the_frame_and_not_with_another_payload():
    reading = {"a": 1}
    frame = ws("a").remember(reading)
    assert frame.reading is reading
    assert frame.with_payload(b"b").reading is None
    assert frame.with_payload(b"b", "new").reading == "new"


def test_a_frame_cannot_be_changed():
    with pytest.raises(AttributeError):
        ws("a").wire = b"b"  # type: ignore[misc]  # the point


def test_sides_and_kinds_are_the_words_that_metrics_and_captures_use():
    assert [str(side) for side in Side] == ["client", "server"]
    assert [str(kind) for kind in Kind] == ["sse", "ws_text", "ws_binary", "body"]
