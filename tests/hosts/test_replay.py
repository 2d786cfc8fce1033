"""A replay does what the live session did, to the byte and to the record."""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
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
    FakeDialect,
    FakeSink,
    Seen,
    request,
    upgrade,
)

from midstream.adapters.capture_format import HEADER, StoredRecord, encode, read
from midstream.core.addon import KEEP, Answer, Ask, Context, Fetch, Mode, Verdict, Wait
from midstream.core.chain import Pending
from midstream.core.engine import Engine, Limits, Route
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import Record, RecordKind
from midstream.core.session import Session, State
from midstream.hosts.replay import main, replay

JSON = ResponseHead(200, (("Content-Type", "application/json"),))
PACED = 60


def judge(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
    """Do what the frame says."""
    word = frame.wire.partition(b" ")[0].removeprefix(b"data:")
    match word:
        case b"drop":
            return Verdict.drop("cut")
        case b"hold":
            return Verdict(hold=True)
        case b"settle":
            held = tuple(ctx.held)
            return Verdict((*held[1:], frame), "swap", settles=held)
        case b"pace":
            many = tuple(Frame(SERVER, frame.kind, b"%d\n\n" % n) for n in range(PACED))
            return Verdict(many, "swap", paced=True)
        case b"fetch":
            return Verdict.keep(asks=(Fetch("/a"), Fetch("/b")))
        case b"wait":
            return Verdict.keep(asks=(Wait(30, "w"),))
        case b"skip":
            return Verdict.skip("unsure")
        case b"raise":
            raise ValueError("told to")
    return KEEP


def tell(ask: Ask, answer: Answer, ctx: Context[Seen, Seen]) -> Verdict:
    said = f"{ask} {answer.status} {ctx.now_ns}".encode()
    kind = Kind.WS_TEXT if ctx.exchange.head.is_websocket else Kind.SSE
    return Verdict((Frame(SERVER, kind, said + b"\n\n"),), "swap")


def engine(sink: FakeSink | None = None, max_frame_bytes: int = 200) -> Engine:
    addon = FakeAddon(frame=judge, answer=tell)
    limits = Limits(max_frame_bytes=max_frame_bytes)
    return Engine(
        [Route("chat", "/*", "http://127.0.0.1:9", ((addon, Mode.REPAIR),))],
        [FakeDialect()],
        secret=b"s",
        sink=sink,
        limits=limits,
    )


def through_a_file(records: Iterable[Record], path: Path) -> list[StoredRecord]:
    stored = (StoredRecord.of(record, 10**18 + record.mono_ns, "chat") for record in records)
    path.write_bytes(HEADER + b"".join(map(encode, stored)))
    reader = read(path)
    found = list(reader)
    assert reader.damage is None
    return found


class Live:
    """A host of the simplest kind, on a clock of its own. Its timers and answers may run late."""

    def __init__(self) -> None:
        self.sink = FakeSink()
        self.engine = engine(self.sink)
        self.now_ns = 5_000
        self.sessions: list[Session] = []
        self.left: list[list[Frame]] = []
        self.asks: list[tuple[int, Pending, int]] = []
        self.late_ms = 0

    def open(self, head: RequestHead, response: ResponseHead) -> None:
        session = self.engine.open(head, self.engine.routes[0])
        self.sessions.append(session)
        self.left.append([])
        self.do(len(self.sessions) - 1, lambda: session.open(self.now_ns))
        session.respond(response, self.now_ns)

    def do(self, index: int, step: Callable[[], list[Frame]]) -> None:
        self.left[index] += step()
        asks = self.sessions[index].take_asks()
        self.asks += [(index, pending, self.now_ns) for pending in asks]

    def wait_over(self) -> None:
        """Answer the waits that are over, as a host does: a little late."""
        asks, self.asks = self.asks, []
        for index, pending, asked_ns in asks:
            session, ask = self.sessions[index], pending.ask
            if isinstance(ask, Wait) and asked_ns + ask.ms * MS <= self.now_ns:
                self.do(
                    index,
                    lambda session=session, pending=pending: session.answer(  # type: ignore[misc]  # bound early
                        pending, Answer(), self.now_ns
                    ),
                )
            else:
                self.asks.append((index, pending, asked_ns))

    def wake(self) -> None:
        self.wait_over()
        for index, session in enumerate(self.sessions):
            due = session.deadline_ns
            if due is not None and due <= self.now_ns:
                self.do(index, lambda session=session: session.wake(self.now_ns))  # type: ignore[misc]  # bound early


WORDS = st.sampled_from(
    ["drop", "hold", "settle", "pace", "fetch", "wait", "skip", "raise", "plain", "x" * 250]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("message"), st.integers(0, 1), st.sampled_from(Side), WORDS),
        st.tuples(st.just("event"), st.just(2), st.just(SERVER), WORDS),
        st.tuples(st.just("body"), st.just(3), st.sampled_from(Side), WORDS),
        st.tuples(st.just("time"), st.integers(1, 40), st.booleans()),
        st.tuples(st.just("answer"), st.integers(0, 500)),
        st.tuples(st.just("end"), st.integers(0, 3), st.sampled_from(Side)),
        st.tuples(st.just("abort"), st.integers(0, 3)),
        st.tuples(st.just("give up"), st.integers(2, 3), st.sampled_from(Side)),
    ),
    max_size=40,
)


def perform(live: Live, step: tuple[object, ...]) -> None:
    match step:
        case ("time", int(ms), bool(punctual)):
            live.now_ns += ms * MS
            live.late_ms += ms
            if punctual or live.late_ms > 100:
                live.wake()
                live.late_ms = 0
        case ("answer", int(status)):
            if live.asks:
                index, pending, _ = live.asks.pop(0)
                session = live.sessions[index]
                answer = Answer(status, b"body")
                live.do(index, lambda: session.answer(pending, answer, live.now_ns))
        case (str(what), int(index), *rest) if live.sessions[index].state is not State.CLOSED:
            session = live.sessions[index]
            live.do(index, lambda: act(session, live.now_ns, what, rest))


def act(session: Session, now_ns: int, what: str, rest: list[object]) -> list[Frame]:
    match (what, *rest):
        case ("abort",):
            return session.abort(now_ns, side="client", code=1006)
        case ("end", Side() as side):
            return session.end(side, now_ns, code=1000)
        case ("give up", Side() as side):
            return session.give_up(side, "bad_encoding", now_ns)
        case (_, Side() as side, str(word)) if side not in ended(session):
            if what == "message":
                return session.receive_message(side, Kind.WS_TEXT, word.encode(), now_ns)
            data = f"data:{word}\n\ndata:half" if what == "event" else word
            return session.receive(side, data.encode(), now_ns)
    return []


def ended(session: Session) -> set[Side]:
    return session._ended


def plain(record: Record) -> Record:
    """Return a record without what a capture does not keep: its asks are builtins there."""
    meta = msgspec.to_builtins(record.meta, builtin_types=(bytes,))
    return msgspec.structs.replace(record, meta=meta)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_a_replay_of_any_live_run_writes_the_records_that_the_live_run_wrote(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    live = Live()
    live.open(upgrade("/chat/1"), UPGRADED)
    live.open(upgrade("/chat/1"), UPGRADED)
    live.open(request("/chat/1", "POST"), EVENT_STREAM)
    live.open(request("/chat/2", "POST"), JSON)
    for step in [("message", 0, CLIENT, "fetch"), ("answer", 200), *steps]:
        perform(live, step)
    records = through_a_file(live.sink.records, tmp_path_factory.getbasetemp() / "live.cap")

    again = FakeSink()
    result = replay(records, engine(again))

    assert [plain(r) for r in again.records] == [plain(r) for r in live.sink.records]
    for index, frames in enumerate(live.left, 1):
        assert result.left.get(index, []) == frames
    assert set(result.problems) <= {"fetches that the capture has no answer to"}


# --- what a replay needs and what it makes of a capture that lacks it -----------------------------


def recorded(*steps: tuple[object, ...]) -> list[StoredRecord]:
    """Return the records of one WebSocket that runs without addons: (ms, side or kind, text)."""
    sink = FakeSink()
    plain_engine = Engine([Route("chat", "/*", "http://a")], [], secret=b"s", sink=sink)
    session = plain_engine.open(upgrade("/chat/1"), plain_engine.routes[0])
    session.open(0)
    session.respond(UPGRADED, 0)
    for ms, side, text in steps:
        assert isinstance(ms, int)
        assert isinstance(side, Side)
        session.receive_message(side, Kind.WS_TEXT, str(text).encode(), ms * MS)
    return [StoredRecord.of(record, record.mono_ns) for record in sink.records]


def sent(records: list[StoredRecord], fetch: Callable[[str], Answer] | None = None) -> list[str]:
    """Replay records, and return what left the first exchange."""
    result = replay(records, engine(), fetch)
    return [frame.wire.decode() for frame in result.left[1]]


def test_timers_run_in_virtual_time_between_the_records():
    records = recorded((1, SERVER, "hold"), (9_000, SERVER, "early"), (11_000, SERVER, "late"))
    assert sent(records) == ["early", "hold", "late"]


def test_a_wait_without_a_recorded_answer_ends_when_its_time_is_over():
    records = recorded((1, SERVER, "wait"), (30, SERVER, "before"), (32, SERVER, "after"))
    over_ns = 31 * MS
    told = f"{Wait(30, 'w')} 0 {over_ns}\n\n"
    assert sent(records) == ["wait", "before", told, "after"]


def test_a_fetch_without_a_recorded_answer_fails_at_once_and_is_reported():
    records = recorded((1, SERVER, "fetch"), (2, SERVER, "after"))
    failed = [f"{Fetch(target)} 0 {1 * MS}\n\n" for target in ("/a", "/b")]

    assert sent(records) == ["fetch", *failed, "after"]
    problems = replay(records, engine()).problems
    assert problems == {"fetches that the capture has no answer to": 2}


def test_a_fetch_is_answered_by_the_function_given():
    records = recorded((1, SERVER, "fetch"), (2, SERVER, "after"))
    answers = [f"{Fetch(target)} 203 {1 * MS}\n\n" for target in ("/a", "/b")]
    assert sent(records, lambda _target: Answer(203)) == ["fetch", *answers, "after"]


def test_recorded_answers_reach_the_ask_they_belong_to_when_numbers_have_shifted():
    live = Live()
    live.open(upgrade("/chat/1"), UPGRADED)
    for step in [
        ("message", 0, SERVER, "wait"),
        ("message", 0, SERVER, "fetch"),
        ("time", 40, True),
    ]:
        perform(live, step)
    for status in (200, 201):
        perform(live, ("answer", status))
    records = [StoredRecord.of(record, 0) for record in live.sink.records]
    without_the_wait = [record for record in records if record.data != b"wait"]

    result = replay(without_the_wait, engine())

    told = [frame.wire.decode().rpartition(" ")[0] for frame in result.left[1][1:]]
    assert told == [f"{Fetch('/a')} 200", f"{Fetch('/b')} 201"]
    assert result.problems == {"recorded answers to what was not asked": 1}


def test_records_that_cannot_be_played_are_counted_and_the_others_are_played():
    records = recorded((1, SERVER, "one"), (2, SERVER, "two"))
    opening, _, first, second = records
    stray = msgspec.structs.replace(first, exchange=9)
    late_end = msgspec.structs.replace(
        first, kind=RecordKind.CLOSE, frame=None, data=b"", mono_ns=3 * MS
    )
    after_end = msgspec.structs.replace(second, mono_ns=4 * MS)
    gap = StoredRecord(0, 0, 0, 0, RecordKind.GAP, meta={"count": 3})
    headless = msgspec.structs.replace(opening, exchange=5, meta={})

    played = [opening, gap, stray, headless, first, second, late_end, after_end]
    result = replay(played, engine())

    assert result.octets(1, SERVER) == b"onetwo"
    assert result.problems == {
        "records lost in the capture": 3,
        "records of an exchange without a head": 1,
        "records that cannot be played": 2,
    }


@pytest.mark.parametrize("origin", ["", "http://[::1]:8080"])
def test_a_replay_tells_addons_the_origin_of_the_recorded_exchange(origin: str, tmp_path: Path):
    live, again = FakeSink(), FakeSink()
    first = engine(live)
    first.open(upgrade("/chat/1"), first.routes[0], origin=origin).open(0)
    replay(through_a_file(live.records, tmp_path / "c-000001.cap"), engine(again))
    assert again.records[0].meta["origin"] == live.records[0].meta["origin"] == origin


@pytest.mark.parametrize(
    ("told", "found"), [("http://b", "http://b"), ("", "http://c"), (1, "http://c")]
)
def test_a_replay_tells_addons_the_recorded_upstream_or_else_that_of_the_route(
    told: object, found: str
):
    records, again = recorded(), FakeSink()
    meta = {**records[0].meta, "upstream": told}
    records[0] = msgspec.structs.replace(records[0], meta=meta)
    replay(records, Engine([Route("chat", "/*", "http://c")], [], secret=b"s", sink=again))
    assert again.records[0].meta["upstream"] == found


@pytest.mark.parametrize("meta", [{}, {"origin": 1}, {"origin": b"a\xff"}, {"origin": None}])
def test_a_capture_that_does_not_tell_the_origin_is_played_without(meta: dict[str, object]):
    records, again = recorded(), FakeSink()
    kept = {key: value for key, value in records[0].meta.items() if key != "origin"}
    records[0] = msgspec.structs.replace(records[0], meta={**kept, **meta})
    assert not replay(records, engine(again)).problems
    assert again.records[0].meta["origin"] == ""


def test_an_exchange_that_no_route_matches_is_counted():
    narrow = Engine([Route("other", "/other", "http://a")], [], secret=b"s")
    assert replay(recorded(), narrow).problems["exchanges that no route matches"] == 1


# --- midstream replay -----------------------------------------------------------------------------

MASK = """
[[route]]
upstream = "http://127.0.0.1:9"
addons = ["tests.hosts.mask_addon:Mask"]
"""
NO_ADDONS = MASK.replace('"tests.hosts.mask_addon:Mask"', "")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    records = recorded(
        (1, CLIENT, "hello"),
        (2, SERVER, "the secret word"),
        (3, SERVER, "drop this"),
        (4, SERVER, "x"),
    )
    path = tmp_path / "c-000001.cap"
    path.write_bytes(HEADER + b"".join(map(encode, records)))
    return path


@pytest.fixture
def mask(tmp_path: Path) -> str:
    path = tmp_path / "mask.toml"
    path.write_text(MASK)
    return str(path)


@pytest.fixture
def no_addons(tmp_path: Path) -> str:
    path = tmp_path / "plain.toml"
    path.write_text(NO_ADDONS)
    return str(path)


def test_a_replay_that_sends_what_was_sent_has_no_differences(
    capture: Path, no_addons: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(capture), no_addons, observe=False, out=None, diff=True) == 0
    out = capsys.readouterr().out
    assert "1 exchanges: 4 frames received, 4 sent" in out
    assert "differences to the capture: 0" in out


def test_differences_are_printed_with_their_place_and_exit_1(
    capture: Path, mask: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(capture), mask, observe=False, out=None, diff=True) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "exchange 1 seq 4: captured 1 frame of 15 bytes, replay 1 frame of 15 bytes",
        "  - server ws_text 'the secret word'",
        "  + server ws_text 'the masked word'",
    ]
    assert "exchange 1 seq 5: captured 1 frame of 9 bytes, replay 0 frames of 0 bytes" in lines
    assert "repair mask drop: 1" in lines
    assert "differences to the capture: 2" in lines


def test_without_diff_differences_are_only_counted(
    capture: Path, mask: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(capture), mask, observe=False, out=None, diff=False) == 0
    out = capsys.readouterr().out
    assert "differences to the capture: 2" in out
    assert "secret" not in out


def test_observe_counts_what_would_be_mended_and_sends_what_was_sent(
    capture: Path, mask: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "observed.cap"
    assert main(str(capture), mask, observe=True, out=str(out), diff=True) == 0
    assert "repair mask mask: 1" in capsys.readouterr().out
    frames = [record for record in read(out) if record.kind is RecordKind.FRAME]
    assert [record.sent for record in frames] == [None] * 4
    assert frames[1].rules == (("mask", "mask"),)


def test_the_new_capture_holds_what_was_sent_and_replays_without_differences(
    capture: Path, mask: str, tmp_path: Path
) -> None:
    out = tmp_path / "mended.cap"
    assert main(str(capture), mask, observe=False, out=str(out), diff=False) == 0

    before, after = list(read(capture)), list(read(out))
    assert [(r.exchange, r.seq, r.kind, r.wall_ns, r.mono_ns, r.data) for r in after] == [
        (r.exchange, r.seq, r.kind, r.wall_ns, r.mono_ns, r.data) for r in before
    ]
    assert after[3].sent == ((SERVER, Kind.WS_TEXT, b"the masked word"),)
    assert after[4].sent == ()
    assert out.stat().st_mode & 0o777 == 0o600
    assert main(str(out), mask, observe=False, out=None, diff=True) == 0


def test_a_body_recorded_in_pieces_equals_the_body_replayed_whole(
    tmp_path: Path, mask: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = FakeSink()
    plain_engine = Engine([Route("chat", "/*", "http://a")], [], secret=b"s", sink=sink)
    head = request("/chat/1", "POST", Content_Type="application/json")
    session = plain_engine.open(head, plain_engine.routes[0])
    session.open(0)
    for piece in (b'{"a":', b"1}"):
        session.receive(CLIENT, piece, 1)
    session.end(CLIENT, 2)
    session.respond(JSON, 3)
    session.receive(SERVER, b"[]", 4)
    session.end(SERVER, 5)
    path = tmp_path / "c-000001.cap"
    records = [StoredRecord.of(record, 0) for record in sink.records]
    path.write_bytes(HEADER + b"".join(map(encode, records)))

    assert main(str(path), mask, observe=False, out=None, diff=True) == 0
    assert "differences to the capture: 0" in capsys.readouterr().out


def test_a_damaged_capture_is_played_as_far_as_it_is_whole(
    capture: Path, no_addons: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = capture.read_bytes()
    capture.write_bytes(whole[:-1])

    assert main(str(capture), no_addons, observe=False, out=None, diff=True) == 0

    out, err = capsys.readouterr()
    assert "3 frames received" in out
    assert "damaged at byte" in err
    assert "note: exchanges without an end: 1" in out


@pytest.mark.parametrize("content", [None, b"not a capture", HEADER[:8] + b"\x09" + HEADER[9:]])
def test_a_missing_foreign_or_newer_capture_exits_2_with_one_line(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.cap"
    if content is not None:
        path.write_bytes(content)

    assert main(str(path), None, observe=False, out=None, diff=False) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("midstream replay: ")
    assert err.count("\n") == 1


def test_a_wrong_configuration_or_target_exits_2_with_one_line(
    capture: Path, tmp_path: Path, no_addons: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('lisen = "127.0.0.1:1"')
    before = capture.read_bytes()

    assert main(str(capture), str(wrong), observe=False, out=None, diff=False) == 2
    assert main(str(capture), no_addons, observe=False, out=str(capture), diff=False) == 2
    gone = str(tmp_path / "gone" / "out.cap")
    assert main(str(capture), no_addons, observe=False, out=gone, diff=False) == 2

    assert capsys.readouterr().err.count("\n") == 3
    assert capture.read_bytes() == before
