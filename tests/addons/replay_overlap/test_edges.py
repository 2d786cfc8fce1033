"""The properties at the edges: clear, stop, errors, hibernation, pages that do not resume."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.clients import KINDS, Message, Page
from tests.addons.replay_overlap.documents import clone, dumps
from tests.addons.replay_overlap.scenes import (
    USER,
    Shown,
    answered,
    asked,
    continued,
    declared,
    emit,
    many,
    reopened,
    shown,
    wanted,
)
from tests.addons.replay_overlap.streams import Piece, pieces, segments, streamed, whole
from tests.addons.replay_overlap.test_properties import (
    cuts,
    drop_and_return,
    latencies,
    pauses,
    states,
)
from tests.addons.replay_overlap.world import World, folded

from midstream.core import metrics
from midstream.core.addon import Answer
from midstream.core.frames import Side

kinds = st.sampled_from(KINDS)
flags = st.integers(0, 63)
few = st.lists(pieces, max_size=1)


def said(messages: Shown) -> bytes:
    """Return all the text of some messages, half a character being something, too."""
    text = "".join(part.get("text", "") for _, parts in messages for part in parts)
    return text.encode("utf-16-le", "surrogatepass")


MARK: Piece = ("text", ("zebra",), True, None)


@many()
@given(kinds, few, few, st.integers(0, 30), latencies, flags, st.integers(0, 700))
def test_nothing_of_before_is_sent_after_the_chat_was_emptied(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    latency: tuple[int, int],
    bits: int,
    at_ms: int,
) -> None:
    """P15: at every moment, by either side, with the stream running or over.

    The replay is short enough to leave in one slice: later slices would be on their way already.
    """
    messages, stream = asked([MARK, *before]), whole([MARK, *after])
    world = World(
        messages,
        latency=latency,
        server={"closing": ("never", "before", "after")[bits % 3]},
        client=declared(kind, bool(bits & 4)),
    )
    page, other = Page(kind, messages), Page(kind, messages)
    second = world.connect(other, "pk2")
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    if not bits & 16:
        world.drop(number)
        world.run(at_ms % 50)
        number = world.connect(page, "pk" if bits & 8 else "pk3")
    if bits & 32 and not bits & 8:
        emit(world, stream[cut:])
        world.server.finish()
    world.run(at_ms + latency[1])
    if bits & 8:
        page.clear()
        world.flush(number)
        world.run(latency[0])
        cleared = {number: len(world.sent[number]), second: None}
        world.run(latency[1])
        cleared[second] = len(world.sent[second])
    else:
        world.server.clear()
        world.run(latency[1])
        cleared = {n: len(world.sent[n]) for n in (number, second)}
    world.run(2_000)
    world.check(is_whole=False)
    for socket, since in cleared.items():
        assert not [f for f in world.sent[socket][since:] if b"zebra" in f.wire]
    page.messages = []  # what was on its way then may have come, as it does without the product
    page.observed.clear()
    fresh = whole(after, "z", messageId="A9")
    page.say("u9", "again", "R9")
    world.flush(number)
    world.run(200)
    world.server.start("R9", is_continuation=False, target="A9")
    emit(world, fresh[:3])
    page, number = drop_and_return(world, page, number, "kept", 1)
    emit(world, fresh[3:])
    world.server.finish()
    world.run(2_000)
    assert page.errors == []
    assert shown(page) == wanted("A9", folded([], fresh))


@many()
@given(kinds, segments, segments, st.integers(0, 30), latencies, flags, pauses)
def test_a_page_that_does_not_resume_gets_back_what_was_taken(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    """P19: every reset is followed by the whole replay, or by the undo."""
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages, shields=bool(bits & 4))
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    page.resumes = False
    page, number = drop_and_return(world, page, number, "kept", pause)
    had = shown(page)
    emit(world, stream[max(1, cut) :])
    world.run(2_000)
    world.check()
    grown = [folded(answered(messages), stream[:end]) for end in range(cut, len(stream) + 1)]
    assert shown(page) in [wanted("A", parts) for parts in grown]
    assert said(shown(page)).startswith(said(had))
    world.server.finish()
    world.run(2_000)
    assert shown(page) == wanted("A", grown[-1])


@many(0.15)
@given(kinds, segments, segments, st.integers(0, 30), latencies, flags, pauses)
def test_a_page_that_does_not_resume_gets_nothing_it_did_not_ask_for(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    """P19, where nothing is reset: the page shows what it showed, until the closing list."""
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, server={"closing": "after"})
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    world.run(200)
    page.resumes = False
    had = shown(page)
    world.drop(number)
    world.restart()
    world.fetched = lambda: Answer(500)
    number = world.connect(page)
    world.run(100 * pause)
    emit(world, stream[max(1, cut) :])
    world.run(2_000)
    world.check()
    assert shown(page) == had
    world.server.finish()
    world.run(2_000)
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many(0.5)
@given(kinds, segments, segments, st.integers(0, 30), st.integers(100, 400), flags)
def test_a_late_acceptance_still_gets_the_whole_replay(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    client_ms: int,
    bits: int,
) -> None:
    """On a slow line the undo comes before the client's ACK."""
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=(client_ms, 10),
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages, shields=bool(bits & 4))
    number = continued(world, page, stream[0])
    world.run(1_000)
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    page, number = drop_and_return(world, page, number, "kept", (bits >> 4) << 2)
    emit(world, stream[max(1, cut) :])
    world.run(2_000)
    world.server.finish()
    world.run(4_000)
    world.check()
    assert page.errors == []
    want = wanted("A", folded(answered(messages), stream))
    if kind in ("r3", "r4") and not bits & 2:
        beside = wanted("A", answered(messages)) + wanted("made-R", folded([], stream))
        assert shown(page) in (want, beside)
    else:
        assert shown(page) == want


@many(0.2)
@given(kinds, segments, segments, cuts, states, latencies, flags)
def test_a_drop_between_reset_and_replay_costs_nothing(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages, shields=bool(bits & 2))
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        world.drop(number)
        page, key = reopened(world, page, state)
        number = world.connect(page, key)
        for _ in range(800):
            world.run(1)
            if any(b"_resuming" in frame.wire for frame in world.delivered[number]):
                break
        world.run(bits >> 4)
    world.drop(number)
    if bits & 4:
        for chunk in stream[sent:]:
            world.server.emit(chunk)
        world.server.finish()
    page, key = reopened(world, page, "hydrated" if state == "bare" else state)
    number = world.connect(page, key)
    world.run(600)
    if not bits & 4:
        emit(world, stream[sent:])
        world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many(0.15)
@given(kinds, segments, segments, st.integers(0, 30), states, latencies, flags, pauses)
def test_a_stream_that_lost_its_life_is_shown_as_the_server_files_it(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    """Hibernation: the chunks are replayed, then closed, then filed."""
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    world.run(100 * pause)
    world.drop(number)
    world.server.hibernate()
    page, key = reopened(world, page, state)
    world.connect(page, key)
    world.run(3_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream[:cut]))


@many(0.2)
@given(kinds, segments, segments, segments, st.integers(0, 30), states, latencies, flags)
def test_a_recovery_under_a_new_id_goes_on_with_what_was_interrupted(
    kind: str,
    before: list[Piece],
    first: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    messages, lost, stream = asked(before), whole(first, "f"), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, lost[0])
    cut = 1 + cut % len(lost)
    emit(world, lost[1:cut])
    world.run(200)
    world.drop(number)
    world.server.is_running = False
    world.server._file()
    base = clone(world.server.messages[-1]["parts"])
    world.server.start("R2", is_continuation=True)
    world.server.emit(stream[0])
    page, key = reopened(world, page, state)
    number = world.connect(page, key)
    world.run(600)
    half = 1 + bits % len(stream)
    emit(world, stream[1:half])
    page, number = drop_and_return(world, page, number, state, bits >> 2)
    emit(world, stream[half:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    want = wanted("A", folded(base, stream))
    if kind in ("r3", "r4"):  # a tool that was cut off has no chunks that build it as it is
        beside = wanted("A", base) + wanted("made-R2", folded([], stream))
        assert shown(page) in (want, beside)
        assert shown(page) == want or any(p.get("state", "").startswith("input") for p in base)
    else:
        assert shown(page) == want


@many(0.2)
@given(kinds, segments, segments, cuts, states, latencies, flags, st.booleans())
def test_a_part_that_goes_on_without_a_start_stays_one_part(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
    is_text: bool,
) -> None:
    """V5: a server that goes on inside an interrupted part sends no start for it.

    Its first word is in the replay: before that, nothing tells which part will go on.
    """
    part = "text" if is_text else "reasoning"
    opened = streamed(part, "t", ("half of ",), None)[:-1]
    parts = folded([], [{"type": "start-step"}, *whole(before, "b")[2:-2], *opened])
    messages = [USER, {"id": "A", "role": "assistant", "parts": parts}]
    rest = streamed(part, "t9", ("an ", "answer"), None)[1:]
    stream = [{"type": "start"}, *rest, *whole(after)[2:]]
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages)
    world.hydrate()
    number = world.connect(page)
    world.run(200)
    world.server.start("R", is_continuation=True)
    emit(world, stream[:2])
    sent = 2
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, state, bits >> 2)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(parts, stream))


@many(0.2)
@given(kinds, segments, segments, st.integers(0, 30), st.integers(0, 30), latencies, flags)
def test_an_outcome_noted_while_the_stream_runs_is_kept(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    when: int,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """V14: another tool of the baseline gets its outcome in the middle of the stream."""
    messages = asked(before)
    other = {"type": "tool-place", "toolCallId": "call_other", "state": "input-available"}
    messages[-1]["parts"].insert(1, {**other, "input": {"v": 2}})
    stream = whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    when = 1 + when % cut
    emit(world, stream[1:when])
    world.server.take(0, {
        "type": "cf_agent_tool_result", "toolCallId": "call_other", "output": 7,
    })  # fmt: skip
    emit(world, stream[when:cut])
    world.run(200)
    page, number = drop_and_return(world, page, number, "kept", bits >> 2)
    emit(world, stream[max(1, cut) :])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    base = answered(messages)
    base[1].update(state="output-available", output=7)
    assert shown(page) == wanted("A", folded(base, stream))


@many(0.2)
@given(kinds, segments, segments, cuts, states, latencies, flags)
def test_a_tool_that_still_waits_is_never_built_as_something_else(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """No chunks make such a part and start no tool: the message is set back, not rebuilt."""
    messages = asked(before)
    other = {"type": "tool-place", "toolCallId": "call_other", "state": "input-available"}
    messages[-1]["parts"].insert(1, {**other, "input": {"v": 2}})
    stream = whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, state, bits >> 2)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert "call_other" not in page.fired
    base = answered(messages)
    want = wanted("A", folded(base, stream))
    if kind in ("r3", "r4"):
        assert shown(page) in (want, wanted("A", base) + wanted("made-R", folded([], stream)))
    else:
        assert shown(page) == want


@many(0.15)
@given(kinds, segments, segments, st.integers(0, 30), states, latencies, flags)
def test_a_stopped_stream_stays_stopped(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    if bits & 2:
        page, number = drop_and_return(world, page, number, state, bits >> 2)
    page.stop("R")
    world.flush(number)
    world.run(1_000)
    page, number = drop_and_return(world, page, number, "kept", 1)
    world.run(2_000)
    world.check()
    assert world.server.cancels == ["R"]
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream[:cut]))


@many(0.15)
@given(kinds, segments, segments, st.integers(0, 30), states, latencies, flags, pauses)
def test_a_stream_that_failed_passes_with_its_error(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    """P14: it is over for all, and nothing of it is rewritten."""
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    if bits & 2:
        world.server.fail("it broke")
        world.run(100 * (bits & 4))
        world.drop(number)
    else:
        world.drop(number)
        world.server.fail("it broke")
    page, key = reopened(world, page, state)
    number = world.connect(page, key)
    world.run(12_000)
    world.check()
    assert any(b"it broke" in frame.wire for frame in world.delivered[number])
    responses = [f for f in world.delivered[number] if b"use_chat_response" in f.wire]
    assert responses == [f for f in world.received[number] if b"use_chat_response" in f.wire]


BROKEN = [
    Answer(0, b""),
    Answer(404, b"[]"),
    Answer(500, b"no"),
    Answer(200, b"garbage"),
    Answer(200, b"{}"),
    Answer(200, b"[1,2]"),
    Answer(200, b'[{"id":1,"role":"assistant"}]'),
    Answer(200, b"\xff"),
]


@many(0.2)
@given(
    kinds, segments, segments, st.integers(0, 30), states, latencies, flags,
    st.sampled_from(BROKEN),
)  # fmt: skip
def test_where_nothing_can_be_learnt_everything_passes_as_it_came(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
    answer: Answer,
) -> None:
    """P14: a product started anew, and a server that gives out no messages."""
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    world.drop(number)
    world.restart()
    world.fetched = lambda: answer
    page, key = reopened(world, page, "kept" if state == "hydrated" else state)
    number = world.connect(page, key)
    world.run(600)
    emit(world, stream[max(1, cut) :])
    world.server.finish()
    world.run(2_000)
    world.check()
    responses = [f for f in world.delivered[number] if b"use_chat_response" in f.wire]
    assert responses == [f for f in world.received[number] if b"use_chat_response" in f.wire]
    assert world.running[0].counts.get(metrics.SKIPPED, ("replay-overlap", "unknown_stream")) == 1
    assert not [f for f in world.delivered[number] if b"message_updated" in f.wire]


@many()
@given(kinds, segments, segments, st.integers(0, 30), states, latencies, flags)
def test_a_stream_that_is_not_understood_passes_as_it_came(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """P14: a chunk nobody knows, a replay without its start, plain text without any start."""
    messages, stream = asked(before), whole(after)
    what = bits & 3
    if what == 0:
        stream.insert(1 + cut % len(stream), {"type": "never-seen", "value": 1})
    elif what == 1:
        stream = [chunk for chunk in stream if chunk["type"] != "start"]
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 4)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    emit(world, stream[1:])
    world.drop(number)
    if what > 1:
        del world.server.chunks[0]
    page, key = reopened(world, page, state)
    number = world.connect(page, key)
    world.run(2_000)
    world.check()
    responses = [f for f in world.delivered[number] if b"use_chat_response" in f.wire]
    assert responses == [f for f in world.received[number] if b"use_chat_response" in f.wire]


@many(0.2)
@given(kinds, segments, segments, st.integers(0, 30), st.integers(0, 700), latencies, flags)
def test_a_message_just_sent_is_never_wiped(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    at_ms: int,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """Whatever the product hands over on its own leaves alone what the page says meanwhile.

    But for one round trip around a reset: then the list is on its way already.
    """
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"closing": ("never", "after")[bits & 1]},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    if bits & 4:
        emit(world, stream[max(1, cut) :])
        world.server.finish()
        world.run(500)
    world.drop(number)
    if not bits & 4 and bits & 8:
        emit(world, stream[max(1, cut) :])
        world.server.finish()
    resumes = world.server.is_running
    number = world.connect(page)
    if bits & 16 and resumes:
        emit(world, stream[max(1, cut) :])
        world.server.finish()
    world.run(at_ms + (700 if resumes else 0))
    page.say("u2", "one more thing", "R2")
    world.flush(number)
    world.run(3_000)
    world.check()
    assert [m["id"] for m in page.messages if m["role"] == "user"] == ["u1", "u2"]


@many(0.15)
@given(kinds, segments, latencies, st.integers(0, 300))
def test_an_idle_reconnect_is_left_alone(
    kind: str, before: list[Piece], latency: tuple[int, int], at_ms: int
) -> None:
    messages = asked(before)
    world = World(messages, latency=latency)
    page = Page(kind, messages)
    world.hydrate()
    number = world.connect(page)
    world.run(300)
    world.drop(number)
    number = world.connect(page)
    world.run(at_ms)
    page.say("u2", "hello?", "R")
    world.flush(number)
    world.run(2_000)
    world.check()
    assert world.fetches == 0
    assert page.messages[-1]["id"] == "u2"
    assert world.delivered[number] == [f for f in world.received[number] if f.sender is Side.SERVER]


@many(0.15)
@given(segments, segments, cuts, st.sampled_from(["kept", "refreshed"]), latencies, flags)
def test_a_client_that_looks_too_early_is_mended_where_it_is_declared(
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """r1 takes its snapshot before it asks: only its observer can take a replay."""
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, server={"flags_replays": bool(bits & 1)}, client="r1")
    page = Page("r1", messages)
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, state, bits >> 2)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many(0.15)
@given(kinds, segments, segments, cuts, states, latencies, flags)
def test_two_messages_of_one_id_do_no_harm(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """V16: a damaged session gives a server-made message out twice."""
    made: Message = {
        "id": "compaction_1",
        "role": "assistant",
        "parts": [{"type": "text", "text": "so far"}],
    }
    messages = [made, USER, made, *asked(before)[1:]]
    stream = whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, state, bits >> 2)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    want = wanted("A", folded(answered(messages), stream))
    assert [found for found in shown(page) if found[0] == "A"] == want


def test_json_of_the_models_survives_half_a_character() -> None:
    assert json.loads(dumps({"a": "\ud83d"})) == {"a": "\ud83d"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_repeats_what_is_said_twice(kind: str) -> None:
    """P9: two equal deltas are two deltas."""
    messages = asked([])
    stream = whole([("text", ("ha", "ha", "150", "0"), True, None)])
    world = World(messages, client=declared(kind, True))
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    emit(world, stream[1:6])
    page, number = drop_and_return(world, page, number, "kept", 1)
    emit(world, stream[6:])
    world.server.finish()
    world.run(1_000)
    [(_, parts)] = shown(page)
    assert parts[-1]["text"] == "haha1500"
