"""The repair against models of the server and of every kind of client, in virtual time.

Not what a frame looks like, but what a person sees in the end: the message once, whole, whatever
was delivered before the connection broke, how often it broke, and what the page still held.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.clients import KINDS, Page
from tests.addons.replay_overlap.scenes import (
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
from tests.addons.replay_overlap.world import World, folded

cuts = st.lists(st.integers(0, 30), min_size=1, max_size=3)
states = st.sampled_from(["kept", "refreshed", "hydrated", "bare"])
latencies = st.sampled_from([(0, 0), (40, 30)])
pauses = st.integers(0, 15)
endings = st.sampled_from(["abort", "server_end", "server_abort"])


def drop_and_return(
    world: World, page: Page, number: int, state: str, pause: int, *, how: str = "abort"
) -> tuple[Page, int]:
    """Break a page's socket, at once or when all is quiet, and let it come back sooner or later."""
    world.run(200 * (pause & 1))
    world.drop(number, how)
    world.run(75 * (pause & 2))
    page, key = reopened(world, page, state)
    number = world.connect(page, key)
    world.run((200, 600, 5, 60)[pause >> 2])
    return page, number


@pytest.mark.parametrize("kind", KINDS)
@many(0.5)
@given(segments, segments, cuts, states, latencies, st.integers(0, 31), pauses, endings)
def test_the_answer_stands_once_and_whole_wherever_the_connection_drops(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    flags: int,
    pause: int,
    how: str,
) -> None:
    messages, stream = asked(before), whole(after)
    is_declared, has_attached = bool(flags & 1), bool(flags & 2)
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(flags & 4)},
        client=declared(kind, is_declared),
    )
    page = Page(kind, messages, shields=bool(flags & 8))
    number = continued(world, page, stream[0], has_attached=has_attached)
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        if flags & 16:
            world.is_deaf.add(number)
        page, number = drop_and_return(world, page, number, state, pause, how=how)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    want = wanted("A", folded(answered(messages), stream))
    if kind in ("r3", "r4") and not is_declared and not has_attached:
        # an undeclared client that had not attached to its tool's continuation when it dropped:
        # nothing on the wire tells it from one that is harmed by the other form
        beside = wanted("A", answered(messages)) + wanted("made-R", folded([], stream))
        assert shown(page) in (want, beside)
    else:
        assert shown(page) == want
