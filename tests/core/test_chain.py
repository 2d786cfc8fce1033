"""The chain: it fails open, holds within bounds, paces in order, and loses nothing."""

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import CLIENT, MS, SERVER, FakeAddon, Seen, chain_of, texts, ws

from midstream.core import metrics
from midstream.core.addon import (
    KEEP,
    Answer,
    Compared,
    Context,
    Ending,
    Fetch,
    Mode,
    Pace,
    Prefixed,
    Reconnected,
    Skipped,
    Verdict,
    Wait,
)
from midstream.core.chain import MAX_FAILURES, MAX_PENDING_ASKS, Bounds, Chain
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Side
from midstream.core.link import FRAME_BYTES
from midstream.core.metrics import Counts

HOLD = Verdict(hold=True)


def hold_all_but(word: str, verdict: Verdict | Exception) -> FakeAddon:
    """Return an addon that holds every frame until `word` comes."""

    def judge(frame: Frame, _ctx: Context[Seen, Seen]) -> Verdict:
        if frame.wire != word.encode():
            return HOLD
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return FakeAddon(frame=judge)


def settle_named() -> FakeAddon:
    """Return an addon that holds every frame until `settle` names it: then it leaves as it came."""

    def judge(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        words = frame.wire.split()
        if words[:1] != [b"settle"]:
            return HOLD
        settled = [held for held in ctx.held if held.wire in words[1:]]
        return Verdict((*settled, frame), settles=settled[::-1])

    return FakeAddon(frame=judge)


def pace_burst(count: int) -> FakeAddon:
    """Return an addon that answers the frame `burst` with a paced run of frames."""
    burst = tuple(ws(f"b{i}") for i in range(count))

    def judge(frame: Frame, _ctx: Context[Seen, Seen]) -> Verdict:
        return Verdict(burst, "swap", paced=True) if frame.wire == b"burst" else KEEP

    return FakeAddon(frame=judge)


def run(chain: Chain, *frames: Frame, now_ns: int = 0) -> list[str]:
    return [text for frame in frames for text in texts(chain.run(frame, now_ns))]


# --- failing open -------------------------------------------------------------------------------


def test_an_untouched_frame_leaves_as_the_same_object():
    frame = ws("a")
    assert chain_of(FakeAddon(), FakeAddon("second")).run(frame, 0)[0] is frame


@pytest.mark.parametrize("hook", ["open", "frame", "answer", "overdue", "end", "close"])
def test_an_exception_in_any_hook_is_counted_and_the_frames_pass(hook):
    counts = Counts()
    first = FakeAddon("first", **{hook: RuntimeError("fault")})
    if hook == "answer":
        first.hooks["open"] = Verdict.keep(asks=(Wait(1),))
    if hook == "overdue":
        first.hooks["frame"] = HOLD
    second = FakeAddon("second")
    chain = chain_of(first, second, counts=counts, bounds=Bounds(max_hold_ms=10))
    left = texts(chain.open(0)) + run(chain, ws("a"))
    left += [text for ask in chain.asks for text in texts(chain.answer(ask.number, Answer(), 1))]
    left += texts(chain.wake(10 * MS)) + texts(chain.end(SERVER, 11 * MS))
    chain.close(Ending.COMPLETE, 12 * MS)
    assert left == ["< a"]
    assert counts.get(metrics.ERRORS, ("first",)) == 1
    assert counts.get(metrics.ERRORS, ("second",)) == 0
    assert second.called("close") == [Ending.COMPLETE]


def test_an_addon_without_a_state_is_left_out_and_counted():
    counts = Counts()
    chain = chain_of(FakeAddon(state=RuntimeError()), FakeAddon("second"), counts=counts)
    assert chain.addons == ["second"]
    assert run(chain, ws("a")) == ["< a"]
    assert counts.get(metrics.ERRORS, ("fake",)) == 1


def test_three_failures_bench_an_addon_for_the_rest_of_the_exchange():
    counts = Counts()
    addon = FakeAddon(frame=RuntimeError("fault"))
    chain = chain_of(addon, counts=counts)
    assert run(chain, *[ws(str(i)) for i in range(5)]) == ["< 0", "< 1", "< 2", "< 3", "< 4"]
    assert texts(chain.end(SERVER, 0)) == []
    assert len(addon.called("frame")) == MAX_FAILURES
    assert addon.called("end") == []
    assert counts.get(metrics.ERRORS, ("fake",)) == MAX_FAILURES


def test_an_addon_benched_within_a_run_of_frames_is_not_asked_about_the_rest():
    many = FakeAddon("many", frame=Verdict.replace("swap", *[ws(str(i)) for i in range(5)]))
    broken = FakeAddon("broken", frame=RuntimeError())
    assert run(chain_of(many, broken), ws("a")) == ["< 0", "< 1", "< 2", "< 3", "< 4"]
    assert len(broken.called("frame")) == MAX_FAILURES


def test_a_benched_addon_is_still_told_of_the_close():
    addon = FakeAddon(frame=RuntimeError())
    chain = chain_of(addon)
    run(chain, *[ws("a")] * MAX_FAILURES)
    chain.close(Ending.ABORTED, 0)
    assert addon.called("close") == [Ending.ABORTED]


def test_a_failing_addon_lets_go_what_it_held_in_order_and_then_the_frame():
    chain = chain_of(hold_all_but("c", RuntimeError()))
    assert run(chain, ws("a"), ws("b")) == []
    assert run(chain, ws("c")) == ["< a", "< b", "< c"]
    assert chain.deadline_ns is None


def test_a_failing_addon_lets_go_what_it_paced_before_what_it_held():
    def judge(frame: Frame, _ctx: Context[Seen, Seen]) -> Verdict:
        match frame.wire:
            case b"burst":
                return Verdict((frame, *[ws(f"b{i}") for i in range(24)]), "swap", paced=True)
            case b"held":
                return HOLD
        raise RuntimeError

    chain = chain_of(FakeAddon(frame=judge))
    assert len(run(chain, ws("burst"), ws("held"))) == 24
    assert run(chain, ws("x")) == ["< b23", "< held", "< x"]


@pytest.mark.parametrize("hook", ["answer", "overdue", "end"])
def test_a_failing_hook_without_a_frame_at_hand_lets_go_what_was_held(hook):
    addon = FakeAddon(
        open=Verdict.keep(asks=(Wait(1),)), frame=HOLD, **{hook: RuntimeError("fault")}
    )
    chain = chain_of(addon, bounds=Bounds(max_hold_ms=10))
    chain.open(0)
    run(chain, ws("a"), ws("b"))
    steps = {
        "answer": lambda: chain.answer(1, Answer(), 1),
        "overdue": lambda: chain.wake(10 * MS),
        "end": lambda: chain.end(SERVER, 1),
    }
    assert texts(steps[hook]()) == ["< a", "< b"]


def test_a_failure_is_logged_once_in_an_exchange_and_never_quotes_a_payload(caplog):
    chain = chain_of(FakeAddon(frame=KeyError("secret payload")))
    with caplog.at_level(logging.DEBUG):
        run(chain, *[ws("secret payload")] * 5)
    failed = [record for record in caplog.records if "failed" in record.message]
    assert len(failed) == 1
    assert "KeyError" in failed[0].message
    assert "secret payload" not in caplog.text
    assert "benched" in caplog.records[-1].message


# --- verdicts that make no sense ----------------------------------------------------------------

BAD_VERDICTS = {
    "no verdict": None,
    "an undeclared rule": Verdict.drop("made up"),
    "an undeclared reason": Verdict.skip("made up"),
    "an unknown result": Verdict.keep(notes=(Reconnected("perhaps"),)),
    "an unknown state": Verdict.keep(notes=(Compared("upside_down", 1),)),
    "pairs below zero": Verdict.keep(notes=(Compared("comparable", -1),)),
    "more kept than was sent": Verdict.keep(notes=(Prefixed(2, 1),)),
    "less than nothing kept": Verdict.keep(notes=(Prefixed(-1, 1),)),
    "an unknown note": Verdict.keep(notes=("a note",)),  # type: ignore[arg-type]  # the point
    "an unknown ask": Verdict.keep(asks=("an ask",)),  # type: ignore[arg-type]  # the point
    "a frame that is not held": Verdict((), "cut", settles=(ws("a"),)),
    "something held that is no frame": Verdict((), "cut", settles=(b"a",)),  # type: ignore[arg-type]  # the point
    "a count of held frames": Verdict((), "cut", settles=1),  # type: ignore[arg-type]  # the point
    "repairs below zero": Verdict((), "cut", repairs=-1),
    "something that is no frame": Verdict((b"wire",), "swap"),  # type: ignore[arg-type]  # the point
    "a frame lost without a rule": Verdict(()),
}


@pytest.mark.parametrize("verdict", BAD_VERDICTS.values(), ids=BAD_VERDICTS)
def test_a_verdict_that_makes_no_sense_is_a_failure_and_changes_nothing(verdict):
    counts = Counts()
    chain = chain_of(hold_all_but("b", verdict), counts=counts)
    assert run(chain, ws("a"), ws("b")) == ["< a", "< b"]
    assert {name for name, _ in counts.values} == {metrics.ERRORS.name}
    assert (chain.rules, chain.skips, chain.asks) == ([], [], [])


def test_frames_that_can_be_read_only_once_are_not_lost():
    once = (ws(text) for text in "bc")
    addon = FakeAddon(frame=Verdict(once, "swap"))  # type: ignore[arg-type]  # the point
    assert run(chain_of(addon), ws("a")) == ["< b", "< c"]


def test_a_frame_that_stays_held_cannot_leave_at_the_same_time():
    frame = ws("a")
    for verdict in (Verdict((frame,), "swap", hold=True), Verdict((frame, ws("b")), "swap")):
        chain = chain_of(hold_all_but("b", verdict))
        assert run(chain, frame, ws("b")).count("< a") == 1


def test_a_hold_without_a_frame_at_hand_is_a_failure():
    counts = Counts()
    assert chain_of(FakeAddon(open=HOLD), counts=counts).open(0) == []
    assert counts.get(metrics.ERRORS, ("fake",)) == 1


# --- holding ------------------------------------------------------------------------------------


def test_a_later_verdict_settles_the_oldest_held_frame_and_the_others_stay():
    chain = chain_of(settle_named())
    assert run(chain, ws("a"), ws("b"), ws("settle a")) == ["< a", "< settle a"]
    assert texts(chain.end(SERVER, 0)) == ["< b"]


def test_a_younger_frame_is_settled_first_and_the_older_one_leaves_at_its_deadline():
    chain = chain_of(settle_named(), bounds=Bounds(max_hold_ms=100))
    run(chain, ws("old"), now_ns=5 * MS)
    run(chain, ws("young"), now_ns=50 * MS)
    assert run(chain, ws("settle young"), now_ns=60 * MS) == ["< young", "< settle young"]
    assert chain.deadline_ns == 105 * MS
    assert chain.wake(105 * MS - 1) == []
    assert texts(chain.wake(105 * MS)) == ["< old"]
    assert chain.deadline_ns is None


def test_frames_that_stay_held_keep_their_order_and_their_own_time():
    chain = chain_of(settle_named(), bounds=Bounds(max_hold_ms=100))
    for at_ms, text in enumerate("abcde"):
        run(chain, ws(text), now_ns=at_ms * MS)
    assert run(chain, ws("settle d b"), now_ns=9 * MS) == ["< b", "< d", "< settle d b"]
    assert chain.deadline_ns == 100 * MS
    assert run(chain, ws("settle a"), now_ns=9 * MS) == ["< a", "< settle a"]
    assert chain.deadline_ns == 102 * MS
    assert texts(chain.wake(102 * MS)) == ["< c", "< e"]


def test_the_bytes_of_a_younger_frame_that_was_settled_no_longer_count():
    bounds = Bounds(max_hold_bytes=2 * (4 + FRAME_BYTES))
    chain = chain_of(settle_named(), bounds=bounds)
    assert run(chain, ws("old1"), ws("new1")) == []
    for round_number in range(2, 6):
        left = run(chain, ws(f"settle new{round_number - 1}"))
        assert left == [f"< new{round_number - 1}", f"< settle new{round_number - 1}"]
        assert run(chain, ws(f"new{round_number}")) == []
    assert run(chain, ws("")) == ["< old1", "< new5", "< "]


def test_all_that_is_held_is_settled_by_the_list_that_the_context_shows():
    def judge(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        return Verdict((*ctx.held, frame), settles=ctx.held) if frame.wire == b"c" else HOLD

    chain = chain_of(FakeAddon(frame=judge))
    assert run(chain, ws("a"), ws("b"), ws("c")) == ["< a", "< b", "< c"]
    assert chain.deadline_ns is None
    assert chain.end(SERVER, 0) == []


def test_a_verdict_may_settle_a_younger_frame_and_hold_the_one_at_hand():
    def judge(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        if frame.wire != b"c":
            return HOLD
        return Verdict((ctx.held[1],), hold=True, settles=ctx.held[1:])

    chain = chain_of(FakeAddon(frame=judge))
    assert run(chain, ws("a"), ws("b"), ws("c")) == ["< b"]
    assert texts(chain.end(SERVER, 0)) == ["< a", "< c"]


def test_held_frames_can_be_named_by_what_can_be_read_only_once():
    def judge(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        once = (held for held in ctx.held[1:])
        return Verdict((), "cut", settles=once) if frame.wire == b"c" else HOLD  # type: ignore[arg-type]  # the point

    chain = chain_of(FakeAddon(frame=judge))
    assert run(chain, ws("a"), ws("b"), ws("c")) == []
    assert texts(chain.end(SERVER, 0)) == ["< a"]


def test_one_object_that_is_held_twice_can_be_settled_twice():
    chain = chain_of(
        FakeAddon("twin", frame=lambda frame, _ctx: Verdict.replace("swap", frame, frame)),
        FakeAddon(frame=HOLD, end=lambda _side, ctx: Verdict((), "cut", settles=tuple(ctx.held))),
    )
    assert run(chain, ws("a")) == []
    assert chain.end(SERVER, 0) == []


def misnamed(held: Sequence[Frame]) -> dict[str, Verdict]:
    """Return verdicts that name held frames wrongly."""
    first, second = held
    return {
        "one frame twice": Verdict((), "cut", settles=(second, second)),
        "one frame twice, as many as are held": Verdict((first,), "cut", settles=(first, first)),
        "one too many": Verdict((), "cut", settles=(first, second, second)),
        "only an equal frame": Verdict((), "cut", settles=(ws("a"),)),
        "a frame beside one that is not held": Verdict((), "cut", settles=(first, ws("x"))),
        "a younger frame that is lost without a rule": Verdict(settles=(second,)),
        "an older frame that is lost without a rule": Verdict((second,), settles=(first, second)),
        "one while another that stays leaves": Verdict((first,), "cut", settles=(second,)),
    }


@pytest.mark.parametrize("what", misnamed((ws(""), ws(""))))
def test_a_verdict_that_names_held_frames_wrongly_is_a_failure_and_loses_none(what):
    def judge(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        return misnamed(ctx.held)[what] if frame.wire == b"c" else HOLD

    counts = Counts()
    chain = chain_of(FakeAddon(frame=judge), counts=counts)
    assert run(chain, ws("a"), ws("b"), ws("c")) == ["< a", "< b", "< c"]
    assert counts.get(metrics.ERRORS, ("fake",)) == 1
    assert (chain.rules, chain.skips) == ([], [])


def test_a_verdict_may_hold_a_frame_and_send_others_to_either_side():
    inserted = (ws("ack", CLIENT), ws("list"))
    addon = FakeAddon(frame=Verdict(inserted, "swap", hold=True))
    assert run(chain_of(addon), ws("a")) == ["> ack", "< list"]


def test_the_context_shows_what_is_held():
    seen: list[list[str]] = []

    def judge(_frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        seen.append(texts(ctx.held[-2:]))
        return HOLD

    run(chain_of(FakeAddon(frame=judge)), ws("a"), ws("b"), ws("c"), ws("d"))
    assert seen == [[], ["< a"], ["< a", "< b"], ["< b", "< c"]]


def test_a_hold_of_too_many_bytes_asks_the_addon_and_lets_the_rest_go():
    counts = Counts()
    addon = FakeAddon(frame=HOLD)
    bounds = Bounds(max_hold_bytes=2 * (1 + FRAME_BYTES))
    chain = chain_of(addon, counts=counts, bounds=bounds)
    assert run(chain, ws("a"), ws("b")) == []
    assert run(chain, ws("c")) == ["< a", "< b", "< c"]
    assert len(addon.called("overdue")) == 1
    assert counts.get(metrics.SKIPPED, ("fake", "hold_bound")) == 1
    assert chain.skips == [("fake", "hold_bound")]
    assert counts.get(metrics.ERRORS, ("fake",)) == 0


def test_a_hold_that_takes_too_long_ends_at_its_deadline():
    addon = FakeAddon(frame=HOLD)
    chain = chain_of(addon, bounds=Bounds(max_hold_ms=100))
    run(chain, ws("a"), now_ns=5 * MS)
    run(chain, ws("b"), now_ns=50 * MS)
    assert chain.deadline_ns == 105 * MS
    assert chain.wake(105 * MS - 1) == []
    assert texts(chain.wake(105 * MS)) == ["< a", "< b"]
    assert chain.deadline_ns is None


def test_an_overdue_addon_may_settle_some_and_the_rest_leaves_as_it_came():
    def settle(ctx: Context[Seen, Seen]) -> Verdict:
        return Verdict((ws("A"),), "swap", settles=ctx.held[:1])

    addon = FakeAddon(frame=HOLD, overdue=settle)
    chain = chain_of(addon, bounds=Bounds(max_hold_ms=100))
    run(chain, ws("a"), ws("b", CLIENT), ws("c"))
    assert texts(chain.wake(100 * MS)) == ["< A", "> b", "< c"]


def test_frames_without_bytes_have_a_bound_too():
    chain = chain_of(FakeAddon(frame=HOLD), bounds=Bounds(max_hold_bytes=10 * FRAME_BYTES))
    assert run(chain, *[ws("")] * 10) == []
    assert len(run(chain, ws(""))) == 11


def test_the_end_of_a_side_lets_go_only_what_that_side_sent():
    chain = chain_of(FakeAddon(frame=HOLD))
    run(chain, ws("s1"), ws("c1", CLIENT), ws("s2"))
    assert texts(chain.end(CLIENT, 0)) == ["> c1"]
    assert texts(chain.end(SERVER, 0)) == ["< s1", "< s2"]


def test_the_end_of_a_side_is_shown_once():
    addon = FakeAddon()
    chain = chain_of(addon)
    for side in (SERVER, SERVER, CLIENT):
        chain.end(side, 0)
    assert addon.called("end") == [SERVER, CLIENT]


def test_what_an_addon_says_at_the_end_leaves_before_what_it_held():
    chain = chain_of(FakeAddon(frame=HOLD, end=Verdict((ws("last"),), "swap")))
    run(chain, ws("a"))
    assert texts(chain.end(SERVER, 0)) == ["< last", "< a"]


def test_at_the_last_end_nothing_of_either_side_stays():
    first = FakeAddon("first", open=Verdict.keep(asks=(Wait(1),)))
    first.hooks["answer"] = Verdict((ws("late", CLIENT),), "swap")
    chain = chain_of(first, FakeAddon("second", frame=HOLD))
    chain.open(0)
    chain.end(CLIENT, 0)
    assert chain.answer(1, Answer(), 1) == []
    assert texts(chain.end(SERVER, 2)) == ["> late"]


# --- pacing -------------------------------------------------------------------------------------


def test_paced_frames_leave_24_at_a_time_every_12_ms():
    chain = chain_of(pace_burst(60))
    assert run(chain, ws("burst")) == [f"< b{i}" for i in range(24)]
    assert chain.deadline_ns == 12 * MS
    assert chain.wake(12 * MS - 1) == []
    assert texts(chain.wake(12 * MS)) == [f"< b{i}" for i in range(24, 48)]
    assert chain.deadline_ns == 24 * MS
    assert texts(chain.wake(30 * MS)) == [f"< b{i}" for i in range(48, 60)]
    assert chain.deadline_ns is None


def test_later_frames_of_that_side_wait_behind_and_those_of_the_other_do_not():
    chain = chain_of(pace_burst(25))
    assert len(run(chain, ws("burst"))) == 24
    assert run(chain, ws("live"), now_ns=MS) == []
    assert run(chain, ws("up", CLIENT), now_ns=MS) == ["> up"]
    assert texts(chain.wake(12 * MS)) == ["< b24", "< live"]
    assert run(chain, ws("next"), now_ns=13 * MS) == ["< next"]


def test_a_paced_verdict_for_both_sides_paces_each():
    frames = (ws("ack", CLIENT), *[ws(f"b{i}") for i in range(30)])
    chain = chain_of(FakeAddon(frame=Verdict(frames, "swap", paced=True)))
    left = run(chain, ws("a"))
    assert left == ["> ack", *[f"< b{i}" for i in range(24)]]
    assert texts(chain.wake(12 * MS)) == [f"< b{i}" for i in range(24, 30)]


def test_a_second_burst_does_not_leave_before_its_time():
    chain = chain_of(pace_burst(24))
    assert len(run(chain, ws("burst"))) == 24
    assert run(chain, ws("burst"), now_ns=MS) == []
    assert len(texts(chain.wake(12 * MS))) == 24


def test_paced_frames_over_the_bound_of_bytes_leave_at_once():
    chain = chain_of(pace_burst(30), bounds=Bounds(max_hold_bytes=8 * (2 + FRAME_BYTES)))
    left = run(chain, ws("burst"))
    assert len(left) == 24
    left += run(chain, ws("x1"), ws("x2"), ws("x3"))
    assert left == [f"< b{i}" for i in range(30)] + ["< x1", "< x2", "< x3"]
    assert chain.deadline_ns is None


def test_held_frames_that_are_overdue_wait_behind_paced_ones():
    def judge(frame: Frame, _ctx: Context[Seen, Seen]) -> Verdict:
        burst = tuple(ws(f"b{i}") for i in range(5))
        return Verdict(burst, "swap", paced=True) if frame.wire == b"burst" else HOLD

    bounds = Bounds(max_hold_ms=10, pace=Pace(frames=2, every_ms=10))
    chain = chain_of(FakeAddon(frame=judge), bounds=bounds)
    assert run(chain, ws("held"), ws("up", CLIENT), ws("burst")) == ["< b0", "< b1"]
    assert texts(chain.wake(10 * MS)) == ["< b2", "< b3", "> up"]
    assert texts(chain.wake(20 * MS)) == ["< b4", "< held"]


def test_the_end_of_a_side_does_not_wait_for_the_pace():
    chain = chain_of(pace_burst(30))
    run(chain, ws("burst"))
    assert texts(chain.end(CLIENT, 0)) == []
    assert texts(chain.end(SERVER, 0)) == [f"< b{i}" for i in range(24, 30)]


# --- asking -------------------------------------------------------------------------------------


def test_an_answer_comes_back_to_the_addon_that_asked():
    asking = FakeAddon("second", frame=Verdict.keep(asks=(Fetch("/a"), Wait(5, "b"))))
    other = FakeAddon("first")
    chain = chain_of(other, asking)
    run(chain, ws("a"))
    assert [pending.ask for pending in chain.asks] == [Fetch("/a"), Wait(5, "b")]
    chain.answer(chain.asks[1].number, Answer(), 1)
    chain.answer(chain.asks[0].number, Answer(200, b"list"), 2)
    assert asking.called("answer") == [
        (Wait(5, "b"), Answer()),
        (Fetch("/a"), Answer(200, b"list")),
    ]
    assert other.called("answer") == []


def test_what_an_answer_makes_runs_through_the_later_addons_only():
    made = Verdict((ws("made"), ws("up", CLIENT)), "swap")
    before, after = FakeAddon("before"), FakeAddon("after")
    chain = chain_of(before, FakeAddon(open=Verdict.keep(asks=(Wait(1),)), answer=made), after)
    chain.open(0)
    assert texts(chain.answer(1, Answer(), 1)) == ["< made", "> up"]
    assert before.called("frame") == []
    assert after.called("frame") == [ws("made"), ws("up", CLIENT)]


def test_an_ask_is_answered_once_and_a_number_nobody_knows_is_no_ones():
    addon = FakeAddon(open=Verdict.keep(asks=(Wait(1),)), answer=Verdict((ws("made"),), "swap"))
    chain = chain_of(addon)
    chain.open(0)
    assert texts(chain.answer(1, Answer(), 0)) == ["< made"]
    assert chain.answer(1, Answer(), 0) == []
    assert chain.answer(99, Answer(), 0) == []


def test_an_answer_that_comes_after_the_addon_was_benched_makes_nothing():
    addon = FakeAddon(
        open=Verdict.keep(asks=(Wait(1),)),
        frame=RuntimeError(),
        answer=Verdict((ws("made"),), "swap"),
    )
    chain = chain_of(addon)
    chain.open(0)
    run(chain, *[ws("a")] * MAX_FAILURES)
    assert chain.answer(1, Answer(), 0) == []
    assert addon.called("answer") == []


def test_an_addon_may_have_64_asks_pending_and_one_more_is_a_failure():
    counts = Counts()
    greedy = FakeAddon("greedy", frame=Verdict.keep(asks=(Wait(1),)))
    modest = FakeAddon("modest", end=Verdict.keep(asks=(Wait(1),)))
    chain = chain_of(greedy, modest, counts=counts)
    frames = [ws(str(i)) for i in range(MAX_PENDING_ASKS + 1)]
    assert len(run(chain, *frames)) == MAX_PENDING_ASKS + 1
    assert len(chain.asks) == MAX_PENDING_ASKS
    assert counts.get(metrics.ERRORS, ("greedy",)) == 1
    chain.answer(chain.asks[0].number, Answer(), 0)
    run(chain, ws("again"))
    chain.end(CLIENT, 0)
    assert len(chain.asks) == MAX_PENDING_ASKS + 2
    assert counts.get(metrics.ERRORS, ("greedy",)) == 1
    assert counts.get(metrics.ERRORS, ("modest",)) == 0


# --- observing ----------------------------------------------------------------------------------

OBSERVED = {
    "drop": Verdict.drop("cut"),
    "replace": Verdict.replace("cut", ws("b"), ws("c", CLIENT)),
    "hold": Verdict(rule="cut", hold=True),
    "pace": Verdict((ws("b"),), "cut", paced=True),
    "settle": Verdict((), "cut", settles=(ws("a"),)),
    "ask": Verdict(rule="cut", asks=(Fetch("/list"),)),
}


@pytest.mark.parametrize("verdict", OBSERVED.values(), ids=OBSERVED)
def test_in_observe_mode_the_original_goes_on_and_only_the_count_is_made(verdict):
    counts = Counts()
    frame = ws("a")
    chain = chain_of(FakeAddon(frame=verdict), mode=Mode.OBSERVE, counts=counts)
    assert chain.run(frame, 0) == [frame]
    assert chain.asks == []
    assert chain.deadline_ns is None
    assert chain.rules == [("fake", "cut")]
    assert counts.get(metrics.REPAIRS, ("chat", "fake", "cut", "observe")) == 1
    assert counts.get(metrics.REPAIRS, ("chat", "fake", "cut", "repair")) == 0
    assert counts.get(metrics.REMOVED_BYTES, ("chat", "fake")) == 0


def test_in_observe_mode_nothing_is_made_without_a_frame_and_the_addon_knows():
    addon = FakeAddon(open=Verdict((ws("made"),), "swap"), end=Verdict((ws("made"),), "swap"))
    addon.hooks["frame"] = lambda _frame, ctx: Verdict.skip("unsure") if ctx.observe else KEEP
    counts = Counts()
    chain = chain_of(addon, mode=Mode.OBSERVE, counts=counts)
    assert chain.open(0) == []
    assert run(chain, ws("a")) == ["< a"]
    assert chain.end(SERVER, 0) == []
    assert counts.get(metrics.REPAIRS, ("chat", "fake", "swap", "observe")) == 2
    assert counts.get(metrics.SKIPPED, ("fake", "unsure")) == 1


def test_an_addon_that_is_off_sees_nothing():
    addon = FakeAddon(frame=Verdict.drop("cut"))
    assert run(chain_of(addon, mode=Mode.OFF), ws("a")) == ["< a"]
    assert addon.calls == []


# --- order and counts ---------------------------------------------------------------------------


def test_addons_run_in_their_order_and_each_sees_what_the_one_before_it_sent():
    first = FakeAddon("first", frame=Verdict.replace("swap", ws("b"), ws("up", CLIENT)))
    second = FakeAddon("second", frame=lambda frame, _ctx: Verdict.replace("swap", frame, ws("c")))
    assert run(chain_of(first, second), ws("a")) == ["< b", "< c", "> up", "< c"]
    assert first.called("frame") == [ws("a")]
    assert second.called("frame") == [ws("b"), ws("up", CLIENT)]


def test_frames_for_the_other_side_never_go_back_to_an_earlier_addon():
    first = FakeAddon("first")
    second = FakeAddon("second", frame=Verdict.replace("swap", ws("up", CLIENT)))
    assert run(chain_of(first, second), ws("a")) == ["> up"]
    assert first.called("frame") == [ws("a")]


def test_what_an_earlier_addon_lets_go_at_the_end_is_shown_to_a_later_one_first():
    second = FakeAddon("second")
    chain = chain_of(FakeAddon("first", frame=HOLD), second)
    run(chain, ws("a"))
    chain.end(SERVER, 0)
    assert [name for name, _ in second.calls] == ["state", "frame", "end"]


def test_repairs_notes_and_removed_bytes_are_counted():
    counts = Counts()
    notes = (
        Skipped("unsure"),
        Reconnected("passed"),
        Compared("comparable", 3),
        Compared("inverted_in", 1),
        Prefixed(3, 4),
    )
    verdict = Verdict((ws("ab"), ws("ack", CLIENT)), "cut", repairs=2, notes=notes)
    chain = chain_of(FakeAddon(frame=verdict), counts=counts)
    run(chain, ws("abcde"))
    assert counts.get(metrics.REPAIRS, ("chat", "fake", "cut", "repair")) == 2
    assert counts.get(metrics.REMOVED_BYTES, ("chat", "fake")) == 3
    assert counts.get(metrics.SKIPPED, ("fake", "unsure")) == 1
    assert counts.get(metrics.RECONNECTS, ("chat", "passed")) == 1
    assert counts.get(metrics.HISTORY_PAIRS, ("chat", "comparable")) == 3
    assert counts.get(metrics.HISTORY_PAIRS, ("chat", "inverted_in")) == 1
    assert counts.get(metrics.HISTORY_PREFIX, ("chat", "kept")) == 3
    assert counts.get(metrics.HISTORY_PREFIX, ("chat", "sent")) == 4
    assert chain.rules == [("fake", "cut")]
    assert chain.skips == [("fake", "unsure")]


def test_a_held_frame_counts_as_removed_when_it_is_settled_away():
    def judge(frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        return Verdict((), "cut", settles=ctx.held) if frame.wire == b"b" else HOLD

    counts = Counts()
    chain = chain_of(FakeAddon(frame=judge), counts=counts)
    run(chain, ws("four"))
    assert counts.get(metrics.REMOVED_BYTES, ("chat", "fake")) == 0
    run(chain, ws("b"))
    assert counts.get(metrics.REMOVED_BYTES, ("chat", "fake")) == 5


def test_a_frame_that_grew_removes_nothing():
    counts = Counts()
    chain = chain_of(FakeAddon(frame=Verdict.replace("swap", ws("longer"))), counts=counts)
    run(chain, ws("a"))
    assert counts.get(metrics.REMOVED_BYTES, ("chat", "fake")) == 0


def test_time_reaches_an_addon_with_every_call():
    times: list[int] = []

    def look(*arguments: object) -> Verdict:
        times.append(arguments[-1].now_ns)  # type: ignore[attr-defined]  # the context comes last
        return Verdict.keep(asks=(Wait(1),)) if len(times) == 1 else KEEP

    addon = FakeAddon(open=look, frame=look, answer=look, end=look, close=look)
    chain = chain_of(addon)
    chain.open(1)
    chain.run(ws("a"), 2)
    chain.answer(1, Answer(), 3)
    chain.end(SERVER, 4)
    chain.close(Ending.COMPLETE, 5)
    assert times == [1, 2, 3, 4, 5]


# --- properties ---------------------------------------------------------------------------------

DEEDS = st.sampled_from(
    ["keep", "hold", "settle", "settle youngest", "pace", "raise", "nonsense", "lose"]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("frame"), st.sampled_from(list(Side))),
        st.tuples(st.just("wake"), st.integers(0, 40)),
        st.tuples(st.just("end"), st.sampled_from(list(Side))),
        st.tuples(st.just("answer"), st.integers(1, 8)),
    ),
    max_size=40,
)
TIGHT = Bounds(max_hold_bytes=600, max_hold_ms=30, pace=Pace(frames=2, every_ms=12))


def whim(name: str, deeds: list[str]) -> FakeAddon:
    """Return an addon that does one deed after the other, in every hook, and never drops."""
    left = iter(deeds)

    def act(*arguments: object) -> Verdict:
        *given, ctx = arguments
        assert isinstance(ctx, Context)
        frame = given[0] if given and isinstance(given[0], Frame) else None
        own = () if frame is None else (frame,)
        match next(left, "keep"):
            case "hold" if frame is not None:
                return Verdict(hold=True, asks=(Wait(1),))
            case "settle":
                return Verdict((*ctx.held[:2], *own), "swap", settles=ctx.held[:2])
            case "settle youngest":
                return Verdict((*ctx.held[-1:], *own), settles=ctx.held[-1:])
            case "pace":
                return Verdict((*ctx.held, *own), "swap", settles=ctx.held, paced=True)
            case "raise":
                raise RuntimeError
            case "nonsense":
                return Verdict((), "cut", settles=(ws("stranger"),))
            case "lose":
                return Verdict((), settles=ctx.held)
        return KEEP

    hooks = ("open", "frame", "answer", "overdue", "end")
    return FakeAddon(name, **dict.fromkeys(hooks, act))


@settings(max_examples=300, deadline=None)
@given(st.lists(DEEDS, max_size=30), st.lists(DEEDS, max_size=30), STEPS)
def test_every_frame_leaves_once_whatever_addons_do_that_never_drop(one, two, steps):
    chain = chain_of(whim("one", one), whim("two", two), bounds=TIGHT)
    now_ns, ended, sent = 0, set[Side](), list[Frame]()
    left = chain.open(now_ns)
    for number, (step, value) in enumerate(steps):
        match step:
            case "frame" if value not in ended:
                sent.append(ws(str(number), Side(value)))
                left += chain.run(sent[-1], now_ns)
            case "wake":
                now_ns += int(value) * MS
                left += chain.wake(now_ns)
            case "end":
                ended.add(Side(value))
                left += chain.end(Side(value), now_ns)
            case "answer":
                left += chain.answer(int(value), Answer(), now_ns)
    for side in Side:
        left += chain.end(side, now_ns)
    assert sorted(map(id, left)) == sorted(map(id, sent))
    assert chain.deadline_ns is None


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["keep", "pace", "raise"]), max_size=30),
    st.lists(st.sampled_from(["keep", "pace"]), max_size=30),
    STEPS,
)
def test_pacing_never_reorders_what_one_side_sent(one, two, steps):
    chain = chain_of(whim("one", one), whim("two", two), bounds=TIGHT)
    now_ns, sent = 0, list[Frame]()
    left = chain.open(now_ns)
    for number, (step, value) in enumerate(steps):
        if step == "frame":
            sent.append(ws(str(number), Side(value)))
            left += chain.run(sent[-1], now_ns)
        elif step == "wake":
            now_ns += int(value) * MS
            left += chain.wake(now_ns)
    for side in Side:
        left += chain.end(side, now_ns)
    for side in Side:
        assert [f for f in left if f.sender is side] == [f for f in sent if f.sender is side]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["hold", "settle"]), st.integers(0, 255)), max_size=40))
def test_bounds_are_those_of_what_stays_held_whatever_is_settled_first(steps):
    bounds = Bounds(max_hold_bytes=8 * (2 + FRAME_BYTES), max_hold_ms=1000)
    chain = chain_of(settle_named(), bounds=bounds)
    held: dict[str, int] = {}
    for now_ms, (step, value) in enumerate(steps):
        if step == "hold":
            assert run(chain, ws(f"{now_ms:02}"), now_ns=now_ms * MS) == (
                [f"< {text}" for text in [*held, f"{now_ms:02}"]] if len(held) == 8 else []
            )
            held = {} if len(held) == 8 else {**held, f"{now_ms:02}": now_ms}
        else:
            words = [text for place, text in enumerate(held) if value >> place & 1]
            order = " ".join(["settle", *words])
            left = run(chain, ws(order), now_ns=now_ms * MS)
            assert left == [*[f"< {text}" for text in words], f"< {order}"]
            held = {text: at_ms for text, at_ms in held.items() if text not in words}
        oldest_ms = min(held.values(), default=None)
        assert chain.deadline_ns == (None if oldest_ms is None else (oldest_ms + 1000) * MS)
    assert texts(chain.end(SERVER, 0)) == [f"< {text}" for text in held]


def test_deadlines_come_to_an_end():
    chain = chain_of(pace_burst(100), FakeAddon("second", frame=HOLD), bounds=TIGHT)
    run(chain, ws("burst"), ws("a"))
    for _ in range(1000):
        if chain.deadline_ns is None:
            break
        chain.wake(chain.deadline_ns)
    assert chain.deadline_ns is None


JSON = ResponseHead(200, (("Content-Type", "application/json"),))


def test_of_a_response_only_those_are_shown_it_whose_dialect_reads_it():
    reader, other = FakeAddon("reader"), FakeAddon("other")
    chain = chain_of(reader, other)
    assert chain.listen(["reader"], JSON, 0)
    chain.run(ws("from the server"), 0)
    chain.run(ws("from the client", CLIENT), 0)
    assert len(reader.called("frame")) == 2
    assert other.called("frame") == [ws("from the client", CLIENT)]


@pytest.mark.parametrize("answer", [False, ValueError("no")])
def test_an_addon_is_not_shown_a_response_that_it_does_not_want(answer):
    addon = FakeAddon(wants=answer)
    chain = chain_of(addon)
    assert not chain.listen(["fake"], JSON, 0)
    assert [frame.wire for frame in chain.run(ws("words"), 0)] == [b"words"]
    assert addon.called("frame") == []
