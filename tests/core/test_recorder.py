"""Records: one for each received frame, with what left for it, and a sink can stop nothing."""

import logging

import pytest
from tests.support import (
    CLIENT,
    EVENT_STREAM,
    MS,
    SERVER,
    UPGRADED,
    FakeAddon,
    FakeSink,
    Playbook,
    request,
    session_of,
    upgrade,
    ws,
)

from midstream.core import metrics
from midstream.core.addon import KEEP, Answer, Fetch, Mode, Verdict, Wait
from midstream.core.chain import Bounds
from midstream.core.frames import Frame, Kind
from midstream.core.metrics import Counts
from midstream.core.ports import RecordKind


def test_records_tell_the_life_of_an_exchange_in_order():
    sink = FakeSink()
    session = session_of(FakeAddon(), head=upgrade("/chat?x=1", Cookie="c"), sink=sink)
    session.open(1)
    session.respond(UPGRADED, 2)
    session.receive_message(CLIENT, Kind.WS_TEXT, b"a", 3)
    session.end(CLIENT, 4, code=1000)
    session.end(SERVER, 5)
    assert [(r.mono_ns, r.seq, r.kind, r.side) for r in sink.records] == [
        (1, 1, RecordKind.OPEN, None),
        (2, 2, RecordKind.HEADERS, SERVER),
        (3, 3, RecordKind.FRAME, CLIENT),
        (4, 4, RecordKind.CLOSE, CLIENT),
        (5, 5, RecordKind.CLOSE, SERVER),
        (5, 6, RecordKind.CLOSE, None),
    ]
    assert {record.exchange for record in sink.records} == {7}
    assert sink.records[0].meta == {
        "route": "chat",
        "upstream": "http://127.0.0.1:9",
        "origin": "",
        "method": "GET",
        "target": "/chat?x=1",
        "headers": (("Upgrade", "websocket"), ("Cookie", "c")),
        "addons": [("fake", "repair")],
    }
    assert sink.records[1].meta == {"status": 101, "headers": UPGRADED.headers}
    assert sink.records[3].meta == {"code": 1000}
    assert sink.records[5].meta == {"ending": "complete"}


def test_a_frame_that_left_as_it_came_is_recorded_without_what_was_sent():
    for addons in ((), (FakeAddon(),)):
        sink = FakeSink()
        Playbook(session_of(*addons, sink=sink)).server("a")
        (record,) = sink.of(RecordKind.FRAME)
        assert (record.frame, record.sent, record.rules) == (ws("a"), None, ())


@pytest.mark.parametrize(
    ("verdict", "sent", "rules", "skips"),
    [
        (Verdict.drop("cut"), (), (("fake", "cut"),), ()),
        (Verdict.replace("swap", ws("b")), (ws("b"),), (("fake", "swap"),), ()),
        (Verdict(hold=True), (), (), ()),
        (Verdict.skip("unsure"), None, (), (("fake", "unsure"),)),
    ],
)
def test_a_frame_that_was_mended_is_recorded_with_what_left_and_why(verdict, sent, rules, skips):
    sink = FakeSink()
    play = Playbook(session_of(FakeAddon(frame=verdict), sink=sink))
    play.server("a")
    (record,) = sink.of(RecordKind.FRAME)
    assert (record.frame, record.sent) == (ws("a"), sent)
    assert (record.rules, record.skips) == (rules, skips)


def test_in_observe_mode_a_record_has_the_rules_and_no_frames():
    sink = FakeSink()
    session = session_of(FakeAddon(frame=Verdict.drop("cut")), mode=Mode.OBSERVE, sink=sink)
    Playbook(session).server("a")
    (record,) = sink.of(RecordKind.FRAME)
    assert (record.sent, record.rules) == (None, (("fake", "cut"),))


def test_words_belong_to_the_frame_they_were_counted_for():
    verdicts = iter([Verdict.drop("cut"), Verdict.skip("unsure"), Verdict()])
    sink = FakeSink()
    addon = FakeAddon(open=Verdict.skip("unsure"), frame=lambda _frame, _ctx: next(verdicts))
    play = Playbook(session_of(addon, sink=sink))
    for text in "abc":
        play.server(text)
    unsure = (("fake", "unsure"),)
    assert [(r.rules, r.skips) for r in sink.of(RecordKind.FRAME)] == [
        ((("fake", "cut"),), ()),
        ((), unsure),
        ((), ()),
    ]
    assert [(r.rules, r.skips) for r in sink.of(RecordKind.REPAIR)] == [((), unsure)]


def test_frames_that_time_let_go_are_a_repair_record():
    sink = FakeSink()
    addon = FakeAddon(frame=Verdict(hold=True))
    play = Playbook(session_of(addon, sink=sink, bounds=Bounds(max_hold_ms=10)))
    play.server("a")
    play.after(10)
    (record,) = sink.of(RecordKind.REPAIR)
    assert (record.frame, record.sent, record.mono_ns) == (None, (ws("a"),), 10 * MS)
    assert record.skips == (("fake", "hold_bound"),)


def test_an_ask_record_has_the_number_the_ask_the_answer_and_what_left():
    sink = FakeSink()
    asks = (Wait(1, "first"), Fetch("/list"))
    addon = FakeAddon(open=Verdict.keep(asks=asks), answer=Verdict((ws("list"),), "swap"))
    play = Playbook(session_of(addon, sink=sink))
    play.asks.reverse()
    assert play.answer(200, b"[]") == ["< list"]
    (record,) = sink.of(RecordKind.ASK)
    assert record.meta == {"number": 2, "ask": Fetch("/list"), "answer": Answer(200, b"[]")}
    assert (record.sent, record.rules) == ((ws("list"),), (("fake", "swap"),))


def test_an_answer_that_changed_nothing_is_recorded_all_the_same():
    sink = FakeSink()
    play = Playbook(session_of(FakeAddon(open=Verdict.keep(asks=(Wait(1),))), sink=sink))
    play.answer(0)
    assert [record.sent for record in sink.of(RecordKind.ASK)] == [()]


def test_what_was_held_at_the_end_of_a_side_is_in_its_close_record():
    sink = FakeSink()
    play = Playbook(session_of(FakeAddon(frame=Verdict(hold=True)), sink=sink))
    play.server("a")
    play.end(SERVER)
    (record,) = sink.of(RecordKind.CLOSE)
    assert (record.side, record.sent) == (SERVER, (ws("a"),))


def test_an_abort_is_recorded_with_its_reason_and_what_was_waiting():
    sink = FakeSink()
    play = Playbook(session_of(FakeAddon(frame=Verdict(hold=True)), sink=sink))
    play.server("a")
    play.session.abort(5, code=1006)
    (record,) = sink.of(RecordKind.CLOSE)
    assert (record.side, record.sent) == (None, (ws("a"),))
    assert record.meta == {"ending": "aborted", "code": 1006}


def test_bytes_that_pass_unread_are_recorded_as_such():
    sink = FakeSink()
    session = session_of(FakeAddon(), head=request(), sink=sink, max_frame_bytes=10)
    session.open(0)
    session.respond(EVENT_STREAM, 0)
    session.receive(SERVER, b"data: 0123456789", 1)
    (record,) = sink.of(RecordKind.FRAME)
    assert record.frame == Frame(SERVER, Kind.BODY, b"data: 0123456789")
    assert (record.sent, record.meta) == (None, {"unread": "too_large"})
    (repair,) = sink.of(RecordKind.REPAIR)
    assert repair.skips == (("fake", "too_large"),)


def test_a_sink_that_raises_stops_nothing_and_is_counted_and_logged_once(caplog):
    counts = Counts()
    sink = FakeSink(OSError("secret payload"))
    play = Playbook(session_of(FakeAddon(), counts=counts, sink=sink))
    with caplog.at_level(logging.DEBUG):
        assert play.server("a") == ["< a"]
        assert play.client("b") == ["> b"]
        play.end(CLIENT)
        play.end(SERVER)
    assert counts.get(metrics.CAPTURE_DROPPED, ("unwritable",)) == 6
    assert len(caplog.records) <= 1
    assert "secret payload" not in caplog.text


def test_without_a_sink_the_words_of_the_addons_do_not_pile_up():
    session = session_of(FakeAddon(frame=Verdict.drop("cut"), end=Verdict.skip("unsure")))
    play = Playbook(session)
    for _ in range(3):
        play.server("a")
    play.end(SERVER)
    assert session._chain is not None
    assert (session._chain.rules, session._chain.skips) == ([], [])


def test_facts_stand_beside_the_words_they_belong_to_and_nowhere_else():
    sink = FakeSink()
    facts: dict[str, str | int | bool] = {"row": "r" * 100 + "\ud800", "half": "\ud800", "count": 3}
    verdicts = iter((Verdict.drop("cut", why=facts), Verdict.skip("unsure", why={"n": 1}), KEEP))
    addon = FakeAddon(frame=lambda _frame, _ctx: next(verdicts))
    session = session_of(addon, sink=sink)
    session.open(0)
    for _ in range(3):
        session.receive_message(CLIENT, Kind.WS_TEXT, b"x", 1)
    dropped, passed, untouched = sink.of(RecordKind.FRAME)
    short = {"row": "r" * 80, "half": "\\ud800", "count": 3}
    assert dropped.meta == {"why": [["fake", "cut", short]]}
    assert passed.meta == {"why": [["fake", "unsure", {"n": 1}]]}
    assert untouched.meta == {}
