"""The heart of the suite: every capture through every host, bytes equal."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conformance.clock import Clock, virtual_runner
from tests.conformance.conductor import Arrived, Conductor
from tests.conformance.hosts import HOSTS, Host, engine
from tests.conformance.upstream import Upstream
from tests.conformance.watch import Watch
from tests.conformance.wire import Received

from midstream.adapters.capture_format import StoredRecord, read
from midstream.adapters.capture_recorder import Recorder
from midstream.config.schema import CaptureTable
from midstream.core.addon import Answer
from midstream.core.frames import Kind
from midstream.core.metrics import Counts
from midstream.core.ports import RecordKind
from midstream.hosts.replay import replay

CAPTURES = Path(__file__).parent.parent / "captures"
FILES = sorted(CAPTURES.rglob("*.cap"))
IDS = [str(path.relative_to(CAPTURES)).removesuffix("-000001.cap") for path in FILES]

CHATS = [path for path in FILES if CAPTURES / "cloudflare" in path.parents]
CHAT_IDS = [path.name.removesuffix("-000001.cap") for path in CHATS]
MENDED = (
    "aichat-02b-midstream-reconnect-first-turn-with-reasoning",
    "aichat-03-midcontinuation-reconnect",
    "aichat-04-midcontinuation-reconnect-rich",
    "aichat-06-midcontinuation-query-refresh",
    "golden/g1-default-continuation-aichat",
    "golden/g3-default-first-turn-reasoning",
    "golden/g5-r3plus-rebuild-continuation",
    "raw-01-resume-single-ack",
    "think-02-compaction-then-turns",
    "think-03-midcontinuation-reconnect",
    "think-06-natural-compaction-no-forced-broadcast",
)
CLEAN = ("aichat-01-normal-turn", "aichat-07-two-tabs", "think-01-normal-turn")


def fetched(_target: str) -> Answer:
    """Answer what an addon fetches: this upstream keeps no history."""
    return Answer(404, b"{}")


def received(records: list[StoredRecord]) -> Arrived:
    """Return what the records say was received, as a player sees it arrive."""
    arrived: Arrived = {}
    for record in records:
        if record.kind is not RecordKind.FRAME:
            continue
        assert record.side is not None
        assert record.frame is not None
        messages = arrived.setdefault((record.exchange, record.side), [])
        add(messages, record.frame, record.data)
    return {key: messages for key, messages in arrived.items() if messages != [(Kind.BODY, b"")]}


def played(
    records: list[StoredRecord],
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    *,
    repairs: bool,
    watch: Watch | None = None,
) -> Arrived:
    """Play a capture through a host over real sockets."""
    clock, rng = Clock(), random.Random(len(records))

    async def play() -> Arrived:
        async with (
            Upstream(rng, fetched) as upstream,
            host(upstream, clock, rng, watch or Watch(), repairs) as conductor,
        ):
            return await conductor.play(records)

    with virtual_runner(clock, monkeypatch) as runner:
        return runner.run(play())


def replayed(
    records: list[StoredRecord],
    *,
    repairs: bool,
    fetch: Callable[[str], Answer] | None = fetched,
) -> Arrived:
    """Play a capture offline."""
    result = replay(records, engine(repairs=repairs), fetch)
    assert not result.problems
    arrived: Arrived = {}
    for exchange, frames in result.left.items():
        for frame in frames:
            add(arrived.setdefault((exchange, frame.sender), []), frame.kind, frame.wire)
    return {key: messages for key, messages in arrived.items() if messages != [(Kind.BODY, b"")]}


def add(messages: list[Received], kind: Kind, wire: bytes) -> None:
    """Add a frame as a player sees it arrive: events and pieces make one body."""
    if kind not in (Kind.BODY, Kind.SSE):
        messages.append((kind, wire))
        return
    body = messages.pop()[1] if messages else b""
    messages.append((Kind.BODY, body + wire))


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_without_a_proxy_what_is_played_is_what_was_received(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = list(read(path))
    clock, rng = Clock(), random.Random(path.name)

    async def play() -> Arrived:
        async with Upstream(rng, fetched) as upstream:
            return await Conductor(upstream.port, upstream, clock, rng, None).play(records)

    with virtual_runner(clock, monkeypatch) as runner:
        assert runner.run(play()) == received(records)


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_without_addons_every_host_passes_every_byte_however_it_is_cut(
    path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = list(read(path))
    assert played(records, host, monkeypatch, repairs=False) == received(records)


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_a_replay_without_addons_gives_what_was_received(path: Path) -> None:
    records = list(read(path))
    assert replayed(records, repairs=False) == received(records)


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_with_every_addon_every_host_sends_the_bytes_that_a_replay_sends(
    path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = list(read(path))
    assert played(records, host, monkeypatch, repairs=True) == replayed(records, repairs=True)


@pytest.mark.parametrize("path", CHATS, ids=CHAT_IDS)
def test_what_the_gateway_captures_replays_to_what_the_gateway_sent(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Recorder(CaptureTable(dir=str(tmp_path), min_free_bytes=0), "gateway", Counts())
    watch = Watch(recorder)
    recorder.start()
    arrived = played(list(read(path)), HOSTS["gateway"], monkeypatch, repairs=True, watch=watch)
    recorder.stop()

    again = replayed(list(read(tmp_path)), repairs=True, fetch=None)

    assert {
        (watch.numbers[number], side): left for (number, side), left in again.items()
    } == arrived


@pytest.mark.parametrize("name", MENDED)
def test_the_captures_that_show_a_fault_are_mended(name: str) -> None:
    records = list(read(CAPTURES / "cloudflare" / name))
    assert replayed(records, repairs=True) != received(records)


@pytest.mark.parametrize("name", CLEAN)
def test_the_captures_that_show_none_pass_untouched(name: str) -> None:
    records = list(read(CAPTURES / "cloudflare" / name))
    assert replayed(records, repairs=True) == received(records)
