"""The engine: routes, who reads what, conversations shared, and failures that stop nothing."""

import msgspec
import pytest
from tests.support import (
    CLIENT,
    SERVER,
    FakeAddon,
    FakeDialect,
    FakeSink,
    Playbook,
    Seen,
    request,
    upgrade,
)

from midstream.core import metrics
from midstream.core.addon import KEEP, Context, Mode, Verdict
from midstream.core.conversation import ConversationBounds
from midstream.core.engine import Engine, Limits, Route
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind
from midstream.core.metrics import Counts
from midstream.core.ports import RecordKind
from midstream.core.session import Reading, State

JSON = ResponseHead(200, (("content-type", "application/json"),))


class BrokenDialect(FakeDialect):
    """A dialect one of whose members raises."""

    def __init__(self, broken: str) -> None:
        super().__init__()
        setattr(self, broken, self._raise)

    def _raise(self, *_arguments: object) -> bool:
        raise RuntimeError("fault")


def engine_of(
    *addons: FakeAddon,
    mode: Mode = Mode.REPAIR,
    dialects: tuple[FakeDialect, ...] = (FakeDialect(),),
    sink: FakeSink | None = None,
    limits: Limits | None = None,
) -> Engine:
    route = Route("chat", "/*", "http://127.0.0.1:9", tuple((addon, mode) for addon in addons))
    return Engine([route], dialects, secret=b"s", sink=sink, limits=limits)


def play(engine: Engine, target: str = "/chat", **headers: str) -> Playbook:
    return Playbook(engine.open(upgrade(target, **headers), engine.routes[0]))


# --- routes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/*", "/", True),
        ("/*", "/a/b", True),
        ("/agents/*", "/agents/x", True),
        ("/agents/*", "/agents", False),
        ("/agents/*", "/other/agents/x", False),
        ("/agents", "/agents", True),
        ("/agents", "/agents/x", False),
        ("/a*c", "/abc", False),
        ("/a%2Fb", "/a%2Fb", True),
        ("/a%2Fb", "/a/b", False),
    ],
)
def test_a_star_at_the_end_of_a_pattern_stands_for_anything(pattern, path, expected):
    assert Route("r", pattern, "http://a").matches(path) is expected


def test_the_first_route_that_matches_the_path_is_taken():
    routes = [Route("a", "/a/*", "http://a"), Route("rest", "/*", "http://b")]
    engine = Engine(routes, [], secret=b"s")
    assert engine.route(request("/a/x?y=1")) is routes[0]
    assert engine.route(request("/b?/a/x")) is routes[1]
    assert Engine(routes[:1], [], secret=b"s").route(request("/b")) is None


# --- who reads an exchange ----------------------------------------------------------------------


def test_an_addon_runs_where_a_dialect_of_its_own_reads_the_exchange():
    engine = engine_of(FakeAddon(frame=Verdict.drop("cut")))
    assert play(engine, "/chat").server("a") == []
    elsewhere = play(engine, "/other")
    assert elsewhere.server("a") == ["< a"]
    assert elsewhere.session.state is State.BYPASS


def test_an_addon_of_another_dialect_or_that_is_off_does_not_run():
    foreign = engine_of(FakeAddon(frame=Verdict.drop("cut")), dialects=(FakeDialect("foreign"),))
    assert play(foreign).server("a") == ["< a"]
    switched_off = engine_of(FakeAddon(frame=Verdict.drop("cut")), mode=Mode.OFF)
    assert play(switched_off).session.state is State.BYPASS


def test_addons_run_in_the_order_of_the_route():
    order: list[str] = []

    def note(name: str) -> FakeAddon:
        def judge(frame: Frame, _ctx: Context[Seen, Seen]) -> Verdict:
            order.append(name)
            return Verdict()

        return FakeAddon(name, frame=judge)

    play(engine_of(note("b"), note("a"), note("c"))).server("x")
    assert order == ["b", "a", "c"]


def test_a_response_is_read_where_a_dialect_of_a_running_addon_reads_it():
    engine = engine_of(FakeAddon())
    session = engine.open(request("/chat"), engine.routes[0])
    session.open(0)
    assert session.edits_response(JSON)
    assert session.respond(JSON, 0) is Reading.BODY
    idle = engine_of(FakeAddon(), dialects=(FakeDialect("other"),))
    assert not idle.open(request("/chat"), idle.routes[0]).edits_response(JSON)


def test_addons_of_two_dialects_have_a_conversation_each():
    class Other(FakeAddon):
        dialects = ("other",)

    class OtherDialect(FakeDialect):
        def conversation_path(self, head: RequestHead) -> str:
            return "/elsewhere"

    engine = engine_of(
        FakeAddon("a", size=1),
        Other("b", size=2),
        dialects=(FakeDialect(), OtherDialect("other")),
    )
    playbook = play(engine)
    assert len(engine.conversations) == 2
    playbook.session.abort(1)
    kept = list(engine.conversations._known.values())
    assert [conversation.sizes for conversation in kept] == [{"a": 1}, {"b": 2}]


def test_exchanges_are_numbered_and_named_by_their_route():
    engine = engine_of(FakeAddon())
    exchanges = [engine.open(request("/chat"), engine.routes[0]).exchange for _ in range(2)]
    assert [exchange.number for exchange in exchanges] == [1, 2]
    assert {(e.route, e.upstream) for e in exchanges} == {("chat", "http://127.0.0.1:9")}


def test_an_addon_and_a_record_are_told_the_origin_and_an_addon_the_pattern_of_the_route():
    seen: list[tuple[str, str]] = []
    sink = FakeSink()

    def look(ctx: Context[Seen, Seen]) -> Verdict:
        seen.append((ctx.exchange.origin, ctx.exchange.pattern))
        return KEEP

    engine = engine_of(FakeAddon(open=look), sink=sink)
    route = msgspec.structs.replace(engine.routes[0], path="/chat/*")
    engine.open(request("/chat/1"), route, origin="http://a:1").open(0)
    engine.open(request("/chat/1"), route).open(0)
    assert seen == [("http://a:1", "/chat/*"), ("", "/chat/*")]
    assert [record.meta["origin"] for record in sink.of(RecordKind.OPEN)] == ["http://a:1", ""]


def test_the_frame_limit_and_the_sink_reach_the_session():
    sink = FakeSink()
    engine = engine_of(FakeAddon(), sink=sink, limits=Limits(max_frame_bytes=3))
    session = engine.open(request("/chat", method="POST"), engine.routes[0])
    session.open(0)
    assert session.receive(CLIENT, b"abcd", 0) != []
    assert sink.records[0].meta["route"] == "chat"


# --- conversations ------------------------------------------------------------------------------


def test_two_exchanges_of_a_conversation_share_its_state_and_not_their_own():
    contexts: list[Context[Seen, Seen]] = []
    engine = engine_of(FakeAddon(open=lambda ctx: (contexts.append(ctx), Verdict())[1]))  # type: ignore[func-returns-value]
    for target in ("/chat/1?a", "/chat/1?b", "/chat/2"):
        play(engine, target)
    one, two, other = contexts
    assert one.conversation is two.conversation
    assert one.conversation is not other.conversation
    assert one.state is not two.state
    assert len(engine.conversations) == 2


def test_two_addons_keep_their_states_of_a_conversation_apart():
    engine = engine_of(FakeAddon("a"), FakeAddon("b"))
    play(engine)
    (conversation,) = engine.conversations._known.values()
    assert set(conversation.states) == {"a", "b"}
    assert conversation.users == 1


@pytest.mark.parametrize("how", ["ends", "abort"])
def test_a_close_measures_the_states_and_gives_the_conversation_back(how):
    engine = engine_of(FakeAddon("a", size=30), FakeAddon("b", size=12))
    session = play(engine).session
    assert engine.conversations.size_bytes == 0
    if how == "abort":
        session.abort(1)
    else:
        session.end(CLIENT, 1)
        session.end(SERVER, 1)
    assert engine.conversations.size_bytes == 42
    assert engine.counts.get(metrics.CONVERSATIONS) == 1
    assert engine.counts.get(metrics.CONVERSATION_BYTES) == 42
    (conversation,) = engine.conversations._known.values()
    assert conversation.users == 0


def test_conversations_over_the_bound_are_forgotten_and_counted():
    bounds = ConversationBounds(max_conversations=1)
    engine = engine_of(FakeAddon(), limits=Limits(conversations=bounds))
    for number in range(3):
        play(engine, f"/chat/{number}").session.abort(1)
    assert len(engine.conversations) == 1
    assert engine.counts.get(metrics.EVICTIONS) == 2


# --- failing open -------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["state", "conversation"])
def test_an_addon_that_cannot_begin_is_left_out_and_counted(hook):
    engine = engine_of(
        FakeAddon("broken", **{hook: RuntimeError("fault")}),
        FakeAddon("sound", frame=Verdict.drop("cut")),
    )
    assert play(engine).server("a") == []
    assert engine.counts.get(metrics.ERRORS, ("broken",)) == 1


@pytest.mark.parametrize("hook", ["state", "conversation"])
def test_where_no_addon_can_begin_everything_passes(hook):
    engine = engine_of(FakeAddon(**{hook: RuntimeError("fault")}))
    playbook = play(engine)
    assert playbook.server("a") == ["< a"]
    playbook.session.abort(1)
    assert all(kept.users == 0 for kept in engine.conversations._known.values())


@pytest.mark.parametrize("broken", ["reads", "conversation_path"])
def test_a_dialect_that_fails_leaves_its_addons_out(broken):
    engine = engine_of(FakeAddon(frame=Verdict.drop("cut")), dialects=(BrokenDialect(broken),))
    assert play(engine).server("a") == ["< a"]
    assert engine.counts.get(metrics.ERRORS, ("fake",)) == 1


def test_a_dialect_that_fails_over_a_response_lets_it_pass_unread():
    engine = engine_of(FakeAddon(), dialects=(BrokenDialect("reads_response"),))
    session = engine.open(request("/chat"), engine.routes[0])
    session.open(0)
    assert session.respond(JSON, 0) is Reading.UNREAD
    assert engine.counts.get(metrics.ERRORS, ("fake",)) == 1


@pytest.mark.parametrize("size", [RuntimeError("fault"), -5, "large"], ids=repr)
def test_a_size_that_cannot_be_measured_breaks_no_close(size):
    engine = engine_of(FakeAddon("broken", size=size), FakeAddon("sound", size=7))
    session = play(engine).session
    session.abort(1)
    assert session.state is State.CLOSED
    assert engine.conversations.size_bytes == 7
    (conversation,) = engine.conversations._known.values()
    assert conversation.users == 0


def test_an_engine_counts_into_the_counts_it_is_given():
    counts = Counts()
    engine = Engine([Route("r", "/*", "http://a")], [], secret=b"s", counts=counts)
    session = engine.open(upgrade(), engine.routes[0])
    session.open(0)
    session.receive_message(SERVER, Kind.WS_TEXT, b"a", 0)
    assert engine.counts is counts
    assert counts.get(metrics.FRAMES, ("r", "ws", "server")) == 1
