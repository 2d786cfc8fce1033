"""The properties in the other turns of a chat: first turns, several continuations, two tabs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.clients import KINDS, Message, Page
from tests.addons.replay_overlap.scenes import (
    OUTPUT,
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
from tests.addons.replay_overlap.streams import Piece, segments, whole
from tests.addons.replay_overlap.test_properties import (
    cuts,
    drop_and_return,
    latencies,
    pauses,
    states,
)
from tests.addons.replay_overlap.world import World, folded

from midstream.core import metrics
from midstream.core.addon import Mode
from midstream.dialects import cloudflare_transcript

kinds = st.sampled_from(KINDS)
flags = st.integers(0, 63)


@many(0.5)
@given(kinds, segments, segments, cuts, states, latencies, flags, pauses)
def test_a_first_answer_stands_once_and_whole(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    """The server may have answered before, and the new answer may take an old one's place."""
    messages: list[Message] = [USER]
    regenerates = bool(bits & 1)
    if bits & 2 or regenerates:
        messages = asked(before)
        messages[-1]["parts"] = answered(messages)
    stream = whole(after, messageId="A2")
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 4)))
    page = Page(kind, messages, shields=bool(bits & 8))
    if bits & 16:
        world.hydrate()
    number = world.connect(page)
    world.run(200)
    page.say("u2", "and now?", "R", regenerates=regenerates)
    world.flush(number)
    world.run(200)
    world.server.start("R", is_continuation=False)
    sent = 0
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        if bits & 32:
            world.is_deaf.add(number)
        page, number = drop_and_return(world, page, number, state, pause)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    want = wanted("A2", folded([], stream))
    earlier = [] if regenerates else messages[1:]
    known = [found for m in earlier for found in wanted(m["id"], m["parts"])]
    assert shown(page) in ([known + want, want] if state == "bare" else [known + want])


@many(0.2)
@given(kinds, segments, segments, segments, cuts, states, latencies, flags, pauses)
def test_a_second_tool_on_the_same_socket_is_continued_in_the_same_message(
    kind: str,
    before: list[Piece],
    middle: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    """The baseline of the second continuation is what the first one made."""
    second = "call_second"
    ask = {"type": "tool-input-available", "toolCallId": second, "toolName": "place", "input": {}}
    messages, first = asked(before), [*whole(middle, "m"), ask]
    stream = whole(after)
    is_declared = bool(bits & 1)
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 2), "closing": "after"},
        client=declared(kind, is_declared),
    )
    page = Page(kind, messages, shields=bool(bits & 4))
    number = continued(world, page, first[0])
    if bits & 8:
        emit(world, first[1:])
    else:
        cut = 1 + at[0] % len(first)
        emit(world, first[1:cut])
        page, number = drop_and_return(world, page, number, "kept", pause)
        emit(world, first[max(1, cut) :])
    world.server.finish()
    world.run(500)
    page.answer_tool(second, OUTPUT)
    world.flush(number)
    world.run(300)
    world.server.closing = "never"
    world.server.start("R2", is_continuation=True)
    world.server.emit(stream[0])
    world.run(300)
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, state, pause)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    base = folded(answered(messages), first)
    base[-1].update(state="output-available", output=OUTPUT)
    assert shown(page) == wanted("A", folded(base, stream))


@many(0.2)
@given(kinds, segments, segments, cuts, st.sampled_from(["kept", "refreshed"]), latencies, flags)
def test_both_of_two_tabs_show_the_answer_once(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    owner, other = Page(kind, messages), Page(kind, messages)
    tabs: dict[str, tuple[Page, int]] = {"pk2": (other, world.connect(other, "pk2"))}
    world.run(100)
    tabs["pk"] = (owner, continued(world, owner, stream[0]))
    dropped = set()
    sent = 1
    for index, cut in enumerate(sorted(1 + cut % len(stream) for cut in at)):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        name = "pk" if bits & (4 << index) else "pk2"
        page, number = tabs[name]
        world.drop(number)
        world.run(50)
        key = name if state == "kept" else f"{name}{world.now}"
        tabs[name] = (page, world.connect(page, key))
        dropped.add(name)
        world.run(300)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert owner.errors == other.errors == []
    want = wanted("A", folded(answered(messages), stream))
    assert shown(other) == want
    if kind in ("r3", "r4") and "pk" not in dropped and not bits & 2:
        # an undeclared client shows the continuation of its own tool in a second message
        assert shown(owner) in (
            want,
            wanted("A", answered(messages)) + wanted("made-R", folded([], stream)),
        )
    else:
        assert shown(owner) == want


@many()
@given(
    st.sampled_from(["r2", "r3", "r4"]), segments, segments, st.integers(0, 30), latencies, flags
)
def test_asking_again_changes_nothing(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """P2: any number of replays makes what one makes."""
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    page, number = drop_and_return(world, page, number, "kept", 4)
    bursts = []
    for _ in range(1 + (bits >> 4)):
        seen = len(world.delivered[number])
        page.ask()
        world.flush(number)
        world.run(300)
        bursts.append([frame.wire for frame in world.delivered[number][seen:]])
    emit(world, stream[max(1, cut) :])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert all(burst == bursts[0] for burst in bursts)
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many(0.2)
@given(
    kinds, segments, segments, st.integers(0, 30), latencies, flags, st.integers(0, 400),
    st.sampled_from(["before", "after"]),
)  # fmt: skip
def test_a_closing_list_at_any_moment_of_the_handshake_has_the_last_word(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    latency: tuple[int, int],
    bits: int,
    at_ms: int,
    closing: str,
) -> None:
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 1), "closing": closing, "splits": bool(bits & 8)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages, shields=bool(bits & 4))
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    world.drop(number)
    for chunk in stream[cut:]:
        world.server.emit(chunk)
    number = world.connect(page)
    world.run(at_ms)
    world.server.finish()
    world.run(12_000)
    world.check()
    assert page.errors == []
    assert shown(page) == filed(world)


def filed(world: World) -> Shown:
    """Return what a page shows that shows what the server has."""
    assistants = [m for m in world.server.messages if m["role"] == "assistant"]
    return [found for m in assistants for found in wanted(m["id"], m["parts"])]


@pytest.mark.parametrize("splits", [False, True])
@many(0.15)
@given(
    kinds, segments, segments, cuts, states, latencies, flags, st.sampled_from(["before", "after"])
)
def test_the_closing_list_has_the_last_word(
    splits: bool,
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
    closing: str,
) -> None:
    """Some servers send it before the end, some file a continuation as a message of its own."""
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"closing": closing, "splits": splits, "flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at) if bits & 4 else []:
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, state, bits >> 4)
    emit(world, stream[sent:])
    if bits & 8:
        world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == filed(world)


@many(0.2)
@given(kinds, segments, segments, st.integers(0, 30), states, latencies, flags, pauses)
def test_a_stream_that_ends_while_the_page_is_away_is_shown_whole(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    messages, stream = asked(before), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages, shields=bool(bits & 2))
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    if bits & 4:
        world.is_deaf.add(number)
    world.run(100 * pause)
    world.drop(number)
    for chunk in stream[cut:]:
        world.server.emit(chunk)
    world.server.finish()
    page, key = reopened(world, page, "kept" if state == "bare" else state)
    world.connect(page, key)
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many(0.2)
@given(kinds, segments, segments, st.integers(0, 30), states, latencies, flags, pauses)
def test_a_product_started_anew_learns_the_baseline_from_the_server(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
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
    world.drop(number)
    world.restart()
    page, key = reopened(world, page, state)
    number = world.connect(page, key)
    world.run(100 * pause)
    emit(world, stream[max(1, cut) :])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many(0.2)
@given(kinds, segments, segments, st.integers(0, 30), latencies, flags, st.integers(0, 300))
def test_a_stream_that_ends_while_its_baseline_is_learnt_is_shown_once(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    latency: tuple[int, int],
    bits: int,
    at_ms: int,
) -> None:
    """The server files the stream at its end: then its messages are no baseline any more."""
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"closing": ("never", "before", "after")[bits % 3], "flags_replays": bits < 32},
        client=declared(kind, bool(bits & 4)),
    )
    page = Page(kind, messages, shields=bool(bits & 8))
    number = continued(world, page, stream[0])
    cut = 1 + cut % len(stream)
    emit(world, stream[1:cut])
    world.drop(number)
    for chunk in stream[cut:]:
        world.server.emit(chunk)
    world.restart()
    world.connect(page)
    world.run(latency[1] + at_ms)  # the offer is on its way: before it, nothing would be known
    world.server.finish()
    world.run(12_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many()
@given(kinds, segments, segments, st.integers(0, 30), latencies, flags, st.integers(0, 400))
def test_an_end_between_offer_and_replay_takes_nothing_away(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    cut: int,
    latency: tuple[int, int],
    bits: int,
    at_ms: int,
) -> None:
    """P18: the end may overtake the replay at any moment of the handshake."""
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
    world.drop(number)
    for chunk in stream[max(1, cut) :]:
        world.server.emit(chunk)
    number = world.connect(page)
    world.run(at_ms)
    if bits & 8:
        world.server.fail("it broke")
    else:
        world.server.finish()
    world.run(12_000)
    world.check()
    if bits & 8:
        assert any(b"it broke" in frame.wire for frame in world.delivered[number])
    else:
        assert page.errors == []
        assert shown(page) == wanted("A", folded(answered(messages), stream))


@many(0.2)
@given(kinds, segments, segments, cuts, states, latencies, flags, pauses)
def test_numbered_chunks_leave_no_holes(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    """A client of agents 0.32 skips replayed chunks by their number."""
    messages, stream = asked(before), whole(after)
    world = World(
        messages, latency=latency, server={"counts": True}, client=declared(kind, bool(bits & 1))
    )
    page = Page(kind, messages, has_ledger=bool(bits & 2))
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, state, pause)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudflare_transcript, "STORED_CHUNK_BYTES", 400)


@pytest.mark.usefixtures("small_chunks")
@many()
@given(kinds, segments, segments, cuts, states, latencies, flags, st.lists(st.integers(1, 30)))
def test_a_chunk_too_large_to_be_stored_is_not_lost(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
    where: list[int],
) -> None:
    """P10: it passes once, live, and no replay has it."""
    messages, stream = asked(before), whole(after)
    for count, index in enumerate(where):
        index %= len(stream)
        text = f"{count}" * 500
        if stream[index]["type"].endswith("text-delta"):
            stream[index] = {**stream[index], "delta": text, "huge": True}
        elif index:
            stream.insert(index, {"type": "data-large", "data": text, "huge": True})
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        if bits & 4:
            world.is_deaf.add(number)
        world.run(200)  # what no socket carried, nobody can have seen
        is_near = latency == (0, 0)
        page, number = drop_and_return(world, page, number, state, bits >> 2 if is_near else 1)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


@many()
@given(kinds, segments, segments, segments, st.integers(0, 30), states, latencies, flags)
def test_a_replay_that_says_something_else_replaces_what_was_said(
    kind: str,
    before: list[Piece],
    first: list[Piece],
    after: list[Piece],
    cut: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """P8: what goes out is the replay, whatever was delivered."""
    messages, one, other = asked(before), whole(first, "f"), whole(after)
    world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
    page = Page(kind, messages)
    number = continued(world, page, one[0])
    emit(world, one[1 : 1 + cut % len(one)])
    world.drop(number)
    world.server.chunks = []
    for chunk in other[: 1 + (cut + bits) % len(other)]:
        world.server.emit(chunk)
    page, key = reopened(world, page, state)
    number = world.connect(page, key)
    world.run(600)
    emit(world, other[1 + (cut + bits) % len(other) :])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), other))


@many(0.2)
@given(kinds, segments, segments, cuts, latencies, flags, pauses)
def test_observing_changes_nothing_and_asks_nothing(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    messages, stream = asked(before), whole(after)
    closing = ("never", "before", "after")[bits % 3]
    world = World(messages, latency=latency, mode=Mode.OBSERVE, server={"closing": closing})
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        page, number = drop_and_return(world, page, number, "kept", pause & 3)
    emit(world, stream[sent:])
    world.server.finish()
    world.run(2_000)
    world.check()
    for number, left in world.delivered.items():
        came = [f for f in world.received[number] if f.sender is left[0].sender] if left else []
        assert left == came[: len(left)]
    assert world.fetches == 0
    assert world.count(metrics.RECONNECTS) == len(at)
    assert world.count(metrics.REPAIRS, "observe") > 0
