"""Properties of whatever may happen in whatever order, and of two products in a row."""

from hypothesis import given
from hypothesis import strategies as st
from tests.addons.replay_overlap.clients import KINDS, Page
from tests.addons.replay_overlap.documents import dumps
from tests.addons.replay_overlap.scenes import (
    EVERY_MS,
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

from midstream.core.frames import Frame, Kind, Side

kinds = st.sampled_from(KINDS)
flags = st.integers(0, 63)
FOREIGN = (
    (Side.SERVER, b'{"type":"rpc","id":"1","success":true,"result":1.0}'),
    (Side.CLIENT, b'{"type":"rpc","id":"2","method":"x","args":[1e400]}'),
    (Side.SERVER, b'{"type":"cf_agent_state","state":{"a":[1,2]}}'),
    (Side.SERVER, b'{"mcp":{},"type":"cf_agent_mcp_servers"}'),
    (Side.CLIENT, b"not JSON"),
    (Side.SERVER, b'{"type":"cf_agent_never_seen","id":7}'),
)
actions = st.lists(st.integers(0, 255), min_size=4, max_size=20)


class Tabs:
    """Two pages of one chat that do whatever a number says."""

    def __init__(self, world: World, first: Page, number: int, other: Page) -> None:
        self.world = world
        self.pages = [first, other]
        self.numbers: list[int | None] = [number, world.connect(other, "other")]
        self.foreign: list[tuple[int, Frame]] = []

    def do(self, action: int) -> None:
        which, what = action & 1, (action >> 1) & 7
        number, page = self.numbers[which], self.pages[which]
        if number is None:
            if what & 1:
                key = "pk" if which == 0 else "other"
                self.numbers[which] = self.world.connect(page, f"{key}{action & 16}")
            return
        if what == 0:
            self.world.drop(number, ("abort", "server_end")[action >> 4 & 1])
            self.numbers[which] = None
        elif what == 1:
            self.world.is_deaf.add(number)
            self.world.run(EVERY_MS)
            self.world.drop(number)
            self.numbers[which] = None
        elif what == 2 and which == 0 and self.world.server.is_running:
            page.ask()
            self.world.flush(number)
        elif what == 3:
            side, wire = FOREIGN[(action >> 4) % len(FOREIGN)]
            self.foreign.append((number, Frame(side, Kind.WS_TEXT, wire)))
            self.world.pass_on(number, side, wire)
        self.world.run((1, 7, 30, 90, 200, 260, 450, 700)[action >> 5])

    def settle(self) -> None:
        """Let both pages be there, and all be quiet."""
        for which, page in enumerate(self.pages):
            if self.numbers[which] is None:
                self.numbers[which] = self.world.connect(page, f"last{which}")
        self.world.run(1_500)


@many()
@given(kinds, segments, segments, actions, latencies, flags)
def test_whatever_happens_every_page_ends_with_the_answer_once(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    todo: list[int],
    latency: tuple[int, int],
    bits: int,
) -> None:
    """P4, P5, P6: nothing is lost, nothing stands twice, no reducer fails, in any order."""
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        latency=latency,
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, True),
    )
    page, other = Page(kind, messages), Page(kind, messages, shields=bool(bits & 2))
    number = continued(world, page, stream[0])
    tabs = Tabs(world, page, number, other)
    world.run(500)
    rest = iter(stream[1:])
    for action in todo:
        tabs.do(action)
        if action & 8:
            world.run(300 if bits & 4 else 0)
            emit(world, [chunk for chunk in [next(rest, None)] if chunk is not None])
    tabs.settle()
    emit(world, list(rest))
    world.run(500)
    world.server.finish()
    world.run(3_000)
    world.check()
    assert page.errors == other.errors == []
    want = wanted("A", folded(answered(messages), stream))
    assert shown(page) == want
    assert shown(other) == want
    for number, frame in tabs.foreign:
        if frame.sender is Side.SERVER:
            assert frame in world.sent[number]


@many()
@given(kinds, segments, segments, st.integers(0, 30), st.integers(0, 30), states, latencies, flags)
def test_what_goes_out_depends_on_the_replay_not_on_what_was_delivered(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    one: int,
    other: int,
    state: str,
    latency: tuple[int, int],
    bits: int,
) -> None:
    """P3: the same replay goes out the same, whatever came before it."""
    messages, stream = asked(before), whole(after)
    outs: list[list[bytes]] = []
    for cut in (1 + one % len(stream), 1 + other % len(stream)):
        world = World(messages, latency=latency, client=declared(kind, bool(bits & 1)))
        page = Page(kind, messages)
        number = continued(world, page, stream[0])
        for chunk in stream[1:cut]:
            world.server.emit(chunk)
        world.run(100)
        world.drop(number)
        for chunk in stream[cut:]:
            world.server.emit(chunk)
        page, key = reopened(world, page, state)
        number = world.connect(page, key)
        world.run(1_000)
        outs.append([frame.wire for frame in world.sent[number]])
    assert outs[0] == outs[1]


@many(0.5)
@given(kinds, segments, segments, cuts, states, latencies, flags, pauses)
def test_two_products_in_a_row_do_what_one_does(
    kind: str,
    before: list[Piece],
    after: list[Piece],
    at: list[int],
    state: str,
    latency: tuple[int, int],
    bits: int,
    pause: int,
) -> None:
    messages, stream = asked(before), whole(after)
    world = World(
        messages,
        products=2,
        latency=latency,
        server={"flags_replays": bool(bits & 1)},
        client=declared(kind, bool(bits & 2)),
    )
    page = Page(kind, messages, shields=bool(bits & 4))
    number = continued(world, page, stream[0])
    sent = 1
    for cut in sorted(1 + cut % len(stream) for cut in at):
        emit(world, stream[sent:cut])
        sent = max(sent, cut)
        if bits & 8:
            world.is_deaf.add(number)
        page, number = drop_and_return(world, page, number, state, pause)
    emit(world, stream[sent:])
    world.run(500)
    world.server.finish()
    world.run(2_000)
    world.check()
    assert page.errors == []
    assert shown(page) == wanted("A", folded(answered(messages), stream))


def test_a_shown_message_is_what_the_reducer_makes() -> None:
    """The models agree with each other: a page that saw everything live shows what is wanted."""
    messages, stream = asked([]), whole([("text", ("a", "b"), True, None), ("tool", {})])
    world = World(messages)
    pages: dict[str, Shown] = {}
    for kind in KINDS:
        world = World(messages, client=declared(kind, True))
        page = Page(kind, messages)
        continued(world, page, stream[0])
        emit(world, stream[1:])
        pages[kind] = shown(page)
    assert all(seen == wanted("A", folded(answered(messages), stream)) for seen in pages.values())
    assert dumps({"a": 1}) == b'{"a":1}'
