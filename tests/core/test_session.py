"""The session: its state table, what it reads, and that bytes come out as they went in."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import (
    CLIENT,
    EVENT_STREAM,
    MS,
    SERVER,
    UPGRADED,
    FakeAddon,
    Playbook,
    request,
    session_of,
    texts,
    upgrade,
    ws,
)

from midstream.core import metrics
from midstream.core.addon import KEEP, Answer, Ending, Fetch, Pace, Verdict, Wait
from midstream.core.chain import Bounds, Pending
from midstream.core.exchange import RequestHead, ResponseHead, Transport
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.session import TABLE, Event, IllegalEvent, Reading, Session, State

HOLD = Verdict(hold=True)
JSON = ResponseHead(200, (("content-type", "application/json"),))
HTML = ResponseHead(200, (("content-type", "text/html"),))


def event_stream(*addons: FakeAddon, **settings: object) -> Session:
    """Return an open session whose server has begun an event stream; the client is done."""
    session = session_of(*addons, head=request(), **settings)  # type: ignore[arg-type]  # passed on
    session.open(0)
    session.end(CLIENT, 0)
    session.respond(EVENT_STREAM, 0)
    return session


def wire_of(frames: list[Frame]) -> bytes:
    return b"".join(frame.wire for frame in frames)


# --- the state table ----------------------------------------------------------------------------


def in_state(state: State) -> Session:
    """Return a session in a state; in HALF_CLOSED it is the client that has ended."""
    addons = () if state is State.BYPASS else (FakeAddon(),)
    session = session_of(*addons)
    if state is not State.NEW:
        session.open(0)
    if state is State.HALF_CLOSED:
        session.end(CLIENT, 0)
    if state is State.CLOSED:
        session.abort(0)
    assert session.state is state
    return session


STEPS: dict[str, Callable[[Session], object]] = {
    "open": lambda session: session.open(1),
    "message": lambda session: session.receive_message(SERVER, Kind.WS_TEXT, b"a", 1),
    "bytes": lambda session: session.receive(SERVER, b"a", 1),
    "late bytes": lambda session: session.receive(CLIENT, b"a", 1),
    "end": lambda session: session.end(SERVER, 1),
    "abort": lambda session: session.abort(1),
}


@pytest.mark.parametrize(
    ("state", "step", "expected"),
    [
        (State.NEW, "open", State.OPEN),
        (State.NEW, "abort", State.CLOSED),
        (State.OPEN, "message", State.OPEN),
        (State.OPEN, "end", State.HALF_CLOSED),
        (State.OPEN, "abort", State.CLOSED),
        (State.HALF_CLOSED, "message", State.HALF_CLOSED),
        (State.HALF_CLOSED, "end", State.CLOSED),
        (State.HALF_CLOSED, "abort", State.CLOSED),
        (State.BYPASS, "message", State.BYPASS),
        (State.BYPASS, "end", State.BYPASS),
        (State.BYPASS, "abort", State.CLOSED),
        (State.CLOSED, "end", State.CLOSED),
        (State.CLOSED, "abort", State.CLOSED),
    ],
)
def test_each_row_of_the_state_table(state, step, expected):
    session = in_state(state)
    STEPS[step](session)
    assert session.state is expected


def test_without_an_addon_a_session_is_a_bypass_until_both_sides_have_ended():
    session = session_of()
    session.open(0)
    states = [session.state]
    for side in Side:
        session.end(side, 0)
        states.append(session.state)
    assert states == [State.BYPASS, State.BYPASS, State.CLOSED]


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (State.NEW, "message"),
        (State.NEW, "bytes"),
        (State.NEW, "end"),
        (State.OPEN, "open"),
        (State.HALF_CLOSED, "open"),
        (State.HALF_CLOSED, "late bytes"),
        (State.BYPASS, "open"),
        (State.CLOSED, "open"),
        (State.CLOSED, "message"),
        (State.CLOSED, "bytes"),
    ],
)
def test_a_step_out_of_order_is_an_error_that_names_the_state_and_changes_nothing(state, step):
    session = in_state(state)
    with pytest.raises(IllegalEvent, match=f"in state {state.value} got"):
        STEPS[step](session)
    assert session.state is state


def test_data_from_a_side_that_has_ended_is_an_error_in_a_bypass_too():
    session = in_state(State.BYPASS)
    session.end(SERVER, 0)
    with pytest.raises(IllegalEvent, match="state bypass got data from the ended server"):
        session.receive_message(SERVER, Kind.WS_TEXT, b"a", 0)


def test_every_event_of_the_table_leads_to_a_state_and_closed_leads_nowhere():
    assert {event for _, event in TABLE} == set(Event)
    assert not [state for state, _ in TABLE if state is State.CLOSED]
    assert all((state, Event.ABORT) in TABLE for state in State if state is not State.CLOSED)


@pytest.mark.parametrize("mended", [True, False])
def test_addons_see_the_open_the_ends_and_how_it_closed(mended):
    addon = FakeAddon()
    session = session_of(addon)
    session.open(0)
    if mended:
        session.end(CLIENT, 1)
        session.end(SERVER, 2)
    else:
        session.abort(1)
    hooks = [(name, given) for name, given in addon.calls if name in ("open", "end", "close")]
    ending = Ending.COMPLETE if mended else Ending.ABORTED
    assert hooks == [("open", None), ("end", CLIENT), ("end", SERVER), ("close", ending)]


@pytest.mark.parametrize("ending", ["abort", "end"])
def test_on_close_is_called_once(ending):
    closed: list[int] = []
    session = session_of(FakeAddon())
    session._on_close = lambda: closed.append(1)
    session.open(0)
    for _ in range(2):
        if ending == "abort":
            session.abort(0)
        session.end(CLIENT, 0)
        session.end(SERVER, 0)
        session.abort(0)
    assert closed == [1]


# --- WebSocket ----------------------------------------------------------------------------------


def test_messages_of_both_sides_pass_and_are_counted_with_their_bytes():
    counts = Counts()
    play = Playbook(session_of(FakeAddon(), counts=counts))
    assert play.client("hello") == ["> hello"]
    assert play.server("a") == ["< a"]
    assert play.server("bc") == ["< bc"]
    assert counts.get(metrics.FRAMES, ("chat", "ws", "client")) == 1
    assert counts.get(metrics.FRAMES, ("chat", "ws", "server")) == 2
    assert counts.get(metrics.FRAME_BYTES, ("chat", "ws", "client")) == 5
    assert counts.get(metrics.FRAME_BYTES, ("chat", "ws", "server")) == 3


def test_frames_are_counted_as_received_and_not_as_sent():
    counts = Counts()
    play = Playbook(session_of(FakeAddon(frame=Verdict.drop("cut")), counts=counts))
    assert play.server("a") == []
    assert counts.get(metrics.FRAMES, ("chat", "ws", "server")) == 1


def test_the_time_to_the_first_event_is_that_of_the_servers_first_frame():
    counts = Counts()
    session = session_of(counts=counts)
    session.open(1_000 * MS)
    session.receive_message(CLIENT, Kind.WS_TEXT, b"hello", 1_100 * MS)
    session.receive_message(SERVER, Kind.WS_TEXT, b"a", 1_300 * MS)
    session.receive_message(SERVER, Kind.WS_TEXT, b"b", 9_000 * MS)
    buckets, total = counts.histograms[metrics.FIRST_EVENT.name, ("chat", "ws")]
    assert sum(buckets) == 1
    assert total == [pytest.approx(0.3)]


def test_a_binary_message_stays_binary():
    session = session_of(FakeAddon())
    session.open(0)
    (frame,) = session.receive_message(SERVER, Kind.WS_BINARY, b"\x81\xa1", 0)
    assert (frame.kind, frame.wire) == (Kind.WS_BINARY, b"\x81\xa1")


def test_an_upgrade_is_read_as_messages_and_a_refused_one_as_bytes():
    session = session_of(FakeAddon())
    session.open(0)
    assert session.respond(UPGRADED, 0) is Reading.MESSAGES
    assert session.transport is Transport.WS
    refused = session_of(FakeAddon())
    refused.open(0)
    assert refused.respond(ResponseHead(403, JSON.headers), 0) is Reading.UNREAD
    assert refused.transport is Transport.HTTP
    assert wire_of(refused.receive(SERVER, b'{"error":', 0)) == b'{"error":'


def test_an_addon_may_open_with_frames_and_asks():
    opening = Verdict((ws("hello", CLIENT),), "swap", asks=(Fetch("/list"),))
    play = Playbook(session_of(FakeAddon(open=opening, answer=Verdict((ws("list"),), "swap"))))
    assert play.opened == ["> hello"]
    assert [pending.ask for pending in play.asks] == [Fetch("/list")]
    assert play.answer() == ["< list"]


# --- event streams ------------------------------------------------------------------------------

LINES = st.sampled_from(
    [b"data: a", b"data:", b": ping", b"event: x", b"id: 1", b"data: \xc3\xa9", b"other"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.one_of(LINES, ENDS, st.binary(max_size=6)), max_size=40).map(b"".join)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut data into chunks of these sizes; the rest is one chunk."""
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    return [*chunks, data[at:]]


@settings(max_examples=300, deadline=None)
@given(STREAMS, st.lists(st.integers(0, 9), max_size=40), st.booleans(), st.integers(1, 64))
def test_an_event_stream_leaves_byte_for_byte_however_it_is_cut(data, sizes, watched, limit):
    session = event_stream(*[FakeAddon()] * watched, max_frame_bytes=limit)
    left = [f for chunk in cut(data, sizes) for f in session.receive(SERVER, chunk, 1)]
    left += session.end(SERVER, 2)
    assert wire_of(left) == data
    assert all(frame.wire and frame.sender is SERVER for frame in left)


@settings(max_examples=100, deadline=None)
@given(STREAMS, st.lists(st.integers(0, 9), max_size=40))
def test_addons_see_the_same_events_however_the_stream_is_cut(data, sizes):
    whole, pieces = FakeAddon(), FakeAddon()
    for addon, chunks in ((whole, [data]), (pieces, cut(data, sizes))):
        session = event_stream(addon)
        for chunk in chunks:
            session.receive(SERVER, chunk, 1)
        session.end(SERVER, 2)
    assert pieces.called("frame") == whole.called("frame")


@settings(max_examples=100, deadline=None)
@given(STREAMS, st.lists(st.integers(0, 9), max_size=40))
def test_an_aborted_stream_gives_back_all_that_it_took(data, sizes):
    session = event_stream(FakeAddon(frame=HOLD))
    left = [f for chunk in cut(data, sizes) for f in session.receive(SERVER, chunk, 1)]
    left += session.abort(2)
    assert wire_of(left) == data


def test_events_are_split_and_counted_where_no_addon_runs():
    counts = Counts()
    session = session_of(head=request(), counts=counts)
    session.open(0)
    assert session.respond(EVENT_STREAM, 5) is Reading.EVENTS
    assert session.transport is Transport.SSE
    left = session.receive(SERVER, b"data: a\n\ndata: b\n\ndata: c", 250 * MS)
    assert texts(left) == ["< data: a\n\n", "< data: b\n\n"]
    assert counts.get(metrics.FRAMES, ("chat", "sse", "server")) == 2
    assert counts.get(metrics.FRAMES, ("chat", "http", "server")) == 0
    assert counts.get(metrics.FRAME_BYTES, ("chat", "sse", "server")) == 18
    assert sum(counts.histograms[metrics.FIRST_EVENT.name, ("chat", "sse")][0]) == 1


def test_an_unfinished_event_leaves_with_the_end_and_is_shown_to_the_addons():
    addon = FakeAddon()
    session = event_stream(addon)
    assert session.receive(SERVER, b"data: a", 1) == []
    assert texts(session.end(SERVER, 2)) == ["< data: a"]
    assert addon.called("frame") == [Frame(SERVER, Kind.SSE, b"data: a")]


def test_an_event_over_the_limit_and_all_after_it_pass_unread():
    counts = Counts()
    addon, other = FakeAddon("one"), FakeAddon("two")
    session = event_stream(addon, other, counts=counts, max_frame_bytes=20)
    data = b"data: a\n\ndata: " + b"x" * 30
    left = session.receive(SERVER, data, 1)
    assert wire_of(left) == data
    assert session.reads(SERVER) is Reading.UNREAD
    later = [b"more\n\n", b"data: b\n\n", b"data: " + b"y" * 50, b"\n\n"]
    for chunk in later:
        assert wire_of(session.receive(SERVER, chunk, 2)) == chunk
    assert session.end(SERVER, 3) == []
    assert session.state is State.CLOSED
    assert [frame.wire for frame in addon.called("frame")] == [b"data: a\n\n"]  # type: ignore[attr-defined]
    assert counts.get(metrics.SKIPPED, ("one", "too_large")) == 1
    assert counts.get(metrics.SKIPPED, ("two", "too_large")) == 1
    assert counts.get(metrics.FRAMES, ("chat", "sse", "server")) == 1
    received = len(data) + sum(map(len, later))
    assert counts.get(metrics.FRAME_BYTES, ("chat", "sse", "server")) == received
    assert addon.called("end") == [CLIENT, SERVER]


def test_what_was_held_and_paced_leaves_before_an_event_that_is_too_large():
    def judge(frame: Frame, _ctx: object) -> Verdict:
        return HOLD if b"hold" in frame.wire else Verdict((frame,) * 3, "swap", paced=True)

    session = event_stream(
        FakeAddon(frame=judge), max_frame_bytes=20, bounds=Bounds(pace=Pace(frames=1))
    )
    left = texts(session.receive(SERVER, b"data: a\n\ndata: hold\n\n", 1))
    assert left == ["< data: a\n\n"]
    left = texts(session.receive(SERVER, b"data: " + b"x" * 20, 1))
    assert left == ["< data: a\n\n"] * 2 + ["< data: hold\n\n", "< data: " + "x" * 20]
    assert session.deadline_ns is None


def test_no_addon_can_put_a_frame_into_a_stream_that_is_no_longer_read():
    asking = FakeAddon(
        frame=Verdict.keep(asks=(Wait(1),)), answer=Verdict((ws("in the middle"),), "swap")
    )
    session = event_stream(asking, max_frame_bytes=20)
    session.receive(SERVER, b"data: a\n\n" + b"data: " + b"x" * 20, 1)
    (pending,) = session.take_asks()
    assert session.answer(pending, Answer(), 2) == []


def test_a_host_may_give_up_a_side_and_the_reason_is_counted():
    counts = Counts()
    session = event_stream(FakeAddon(frame=HOLD), counts=counts)
    session.receive(SERVER, b"data: a\n\ndata: b", 1)
    assert wire_of(session.give_up(SERVER, "bad_encoding", 2)) == b"data: a\n\ndata: b"
    assert session.give_up(SERVER, "bad_encoding", 2) == []
    assert wire_of(session.receive(SERVER, b"\x1f\x8b", 3)) == b"\x1f\x8b"
    assert counts.get(metrics.SKIPPED, ("fake", "bad_encoding")) == 1


def test_a_websocket_that_was_given_up_passes_whole_messages():
    session = session_of(FakeAddon(frame=Verdict.drop("cut")))
    session.open(0)
    assert session.give_up(SERVER, "too_large", 0) == []
    (frame,) = session.receive_message(SERVER, Kind.WS_TEXT, b"a", 1)
    assert (frame.kind, frame.wire) == (Kind.WS_TEXT, b"a")
    assert session.receive_message(CLIENT, Kind.WS_TEXT, b"a", 1) == []


# --- bodies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 99, 100, 101, 350])
@pytest.mark.parametrize("side", list(Side))
def test_a_body_passes_as_it_came_up_to_the_limit_and_over_it(size, side):
    counts = Counts()
    addon = FakeAddon()
    session = session_of(addon, head=request(method="POST"), counts=counts, max_frame_bytes=100)
    session.open(0)
    session.respond(JSON, 0)
    data = bytes(i % 256 for i in range(size))
    left = [f for i in range(0, size, 30) for f in session.receive(side, data[i : i + 30], 1)]
    left += session.end(side, 2)
    assert wire_of(left) == data
    fits = size <= 100
    assert addon.called("frame") == ([Frame(side, Kind.BODY, data)] if fits else [])
    assert counts.get(metrics.SKIPPED, ("fake", "too_large")) == (0 if fits else 1)
    assert counts.get(metrics.FRAMES, ("chat", "http", side.value)) == (1 if fits else 0)
    assert counts.get(metrics.FRAME_BYTES, ("chat", "http", side.value)) == size


def test_a_body_is_held_back_until_it_is_whole():
    session = session_of(FakeAddon(), head=request(method="POST"))
    session.open(0)
    assert session.reads(CLIENT) is Reading.BODY
    assert session.receive(CLIENT, b'{"a":', 0) == []
    assert session.receive(CLIENT, b"1}", 0) == []
    assert texts(session.end(CLIENT, 0)) == ['> {"a":1}']


def test_a_request_without_a_body_makes_no_frame():
    addon = FakeAddon()
    session = session_of(addon, head=request())
    session.open(0)
    assert session.receive(CLIENT, b"", 0) == []
    assert session.end(CLIENT, 0) == []
    assert addon.called("frame") == []


def test_a_response_that_no_addon_reads_passes_in_the_chunks_it_came_in():
    session = session_of(FakeAddon(), head=request())
    session.open(0)
    assert session.respond(HTML, 0) is Reading.UNREAD
    assert not session.edits_response(HTML)
    assert texts(session.receive(SERVER, b"<p>", 0)) == ["< <p>"]
    assert session.edits_response(JSON)


def test_without_an_addon_no_body_is_collected():
    session = session_of(head=request(method="POST"))
    session.open(0)
    assert session.respond(JSON, 0) is Reading.UNREAD
    assert not session.edits_response(JSON)
    assert texts(session.receive(CLIENT, b"a", 0)) == ["> a"]
    assert session.give_up(CLIENT, "too_large", 0) == []


def test_no_time_to_the_first_event_is_measured_for_plain_http():
    counts = Counts()
    session = session_of(head=request(), counts=counts)
    session.open(0)
    session.respond(HTML, 0)
    session.receive(SERVER, b"a", 1)
    assert counts.histograms == {}


# --- time and asks ------------------------------------------------------------------------------


def test_the_deadline_of_a_hold_wakes_the_session():
    play = Playbook(session_of(FakeAddon(frame=HOLD), bounds=Bounds(max_hold_ms=100)))
    assert play.session.deadline_ns is None
    assert play.server("a") == []
    assert play.session.deadline_ns == 100 * MS
    assert play.after(99) == []
    assert play.after(1) == ["< a"]


def test_asks_are_taken_once():
    session = session_of(FakeAddon(frame=Verdict.keep(asks=(Wait(1),))))
    session.open(0)
    session.receive_message(SERVER, Kind.WS_TEXT, b"a", 0)
    assert session.take_asks() == [Pending(1, Wait(1))]
    assert session.take_asks() == []


def test_an_ask_answered_after_the_close_makes_nothing():
    answering = FakeAddon(open=Verdict.keep(asks=(Wait(1),)), answer=Verdict((ws("late"),), "swap"))
    session = session_of(answering)
    session.open(0)
    (pending,) = session.take_asks()
    session.abort(1)
    assert session.answer(pending, Answer(), 2) == []
    assert answering.called("answer") == []


def test_after_the_close_nothing_is_due_and_nothing_is_asked():
    asking = FakeAddon(frame=Verdict(hold=True, asks=(Wait(1),)))
    session = session_of(asking)
    session.open(0)
    session.receive_message(SERVER, Kind.WS_TEXT, b"a", 0)
    assert texts(session.abort(1)) == ["< a"]
    assert session.deadline_ns is None
    assert session.take_asks() == []
    assert session.wake(10**12) == []
    assert session.respond(JSON, 2) is Reading.UNREAD


def test_a_session_without_addons_has_no_deadline_and_no_asks():
    session = session_of()
    session.open(0)
    assert session.deadline_ns is None
    assert session.take_asks() == []
    assert session.wake(1) == []
    assert session.answer(Pending(1, Wait(1)), Answer(), 1) == []
    assert session.abort(1) == []


def test_what_is_held_for_the_other_side_outlives_the_end_of_one():
    play = Playbook(session_of(FakeAddon(frame=HOLD)))
    assert play.client("up") + play.server("down") == []
    assert play.end(CLIENT) == ["> up"]
    assert play.end(SERVER) == ["< down"]


@pytest.mark.parametrize("head", [upgrade(), request(), request(method="POST")])
def test_a_keep_of_everything_changes_nothing_of_any_transport(head: RequestHead):
    session = session_of(FakeAddon(frame=KEEP), head=head)
    session.open(0)
    session.respond(UPGRADED if head.is_websocket else JSON, 0)
    if head.is_websocket:
        left = session.receive_message(SERVER, Kind.WS_TEXT, b"a", 0)
    else:
        left = session.receive(SERVER, b"a", 0)
    assert wire_of(left + session.end(SERVER, 0)) == b"a"
