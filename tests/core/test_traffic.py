"""Stalls: one count for each silence of a running answer."""

from tests.support import CLIENT, EVENT_STREAM, MS, SERVER, FakeAddon, request, session_of

from midstream.core.exchange import ResponseHead
from midstream.core.frames import Kind
from midstream.core.session import Session

AFTER_NS = 100 * MS


def event_stream() -> Session:
    session = session_of(FakeAddon(), head=request())
    session.open(0)
    session.end(CLIENT, 0)
    session.respond(EVENT_STREAM, 1_000 * MS)
    return session


def test_a_silent_event_stream_stalls_once_for_each_silence():
    session = event_stream()
    assert not session.stalled(1_099 * MS, AFTER_NS)
    assert session.stalled(1_100 * MS, AFTER_NS)
    assert not session.stalled(1_200 * MS, AFTER_NS)
    session.receive(SERVER, b"data: a\n\n", 1_300 * MS)
    assert not session.stalled(1_399 * MS, AFTER_NS)
    assert session.stalled(1_400 * MS, AFTER_NS)


def test_comments_do_not_break_a_silence_and_a_comment_with_data_does():
    session = event_stream()
    session.receive(SERVER, b": ping\n\n", 1_090 * MS)
    assert session.stalled(1_100 * MS, AFTER_NS)
    session.receive(SERVER, b": ping\ndata: a\n\n", 1_110 * MS)
    assert session.last_frame_ns == 1_110 * MS


def test_an_event_stream_that_has_ended_does_not_stall():
    session = event_stream()
    session.end(SERVER, 1_000 * MS)
    assert not session.stalled(9_000 * MS, AFTER_NS)


def test_a_stream_that_passes_unread_is_not_silent():
    session = session_of(FakeAddon(), head=request(), max_frame_bytes=10)
    session.open(0)
    session.respond(EVENT_STREAM, 0)
    session.receive(SERVER, b"data: 0123456789", 50 * MS)
    assert not session.stalled(149 * MS, AFTER_NS)
    assert session.stalled(150 * MS, AFTER_NS)


def test_a_quiet_websocket_does_not_stall():
    session = session_of(FakeAddon())
    session.open(0)
    session.receive_message(SERVER, Kind.WS_TEXT, b"chunk", 500 * MS)
    assert not session.stalled(9_000 * MS, AFTER_NS)


def test_plain_http_does_not_stall():
    session = session_of(FakeAddon(), head=request())
    session.open(0)
    session.respond(ResponseHead(200), 0)
    session.receive(SERVER, b"a", 0)
    assert not session.stalled(9_000 * MS, AFTER_NS)


def test_a_closed_session_does_not_stall():
    session = event_stream()
    session.abort(1_000 * MS)
    assert not session.stalled(9_000 * MS, AFTER_NS)
