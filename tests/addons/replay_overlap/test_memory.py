"""What is remembered stays within its bounds, however long a process, a chat or a socket lives."""

import gc
import os

import psutil
import pytest
from tests.addons.replay_overlap.documents import dumps, loads
from tests.addons.replay_overlap.tape import NS
from tests.addons.replay_overlap.world import HEADERS, PATH

from midstream.core import metrics
from midstream.core.addon import Answer, Fetch, Mode, Wait
from midstream.core.chain import Pending
from midstream.core.conversation import ConversationBounds
from midstream.core.engine import Engine, Limits, Route
from midstream.core.exchange import RequestHead
from midstream.core.frames import Kind, Side
from midstream.core.session import Session
from midstream.dialects.cloudflare_chat import DIALECT
from midstream_addons.replay_overlap import ADDON
from midstream_addons.replay_overlap.state import (
    MAX_MENDED,
    MAX_RESULT_BYTES,
    MAX_RESULTS,
    MAX_STREAMS,
    Chat,
    Socket,
)

SERVER, CLIENT = Side.SERVER, Side.CLIENT
SOAK_STREAMS = int(os.environ.get("MIDSTREAM_SOAK_STREAMS", "100000"))


def engine_of(max_transcript_bytes: int = 8 << 20, max_conversations: int = 100) -> Engine:
    addon = ADDON(ADDON.Options(max_transcript_bytes=max_transcript_bytes))
    route = Route("chat", "/*", "http://upstream", ((addon, Mode.REPAIR),))
    bounds = ConversationBounds(max_conversations, 256 << 20)
    return Engine([route], [DIALECT], secret=bytes(32), limits=Limits(conversations=bounds))


def socket_of(engine: Engine, path: str = PATH) -> Session:
    session = engine.open(RequestHead("GET", f"{path}?_pk=1", HEADERS), engine.routes[0])
    session.open(0)
    return session


def send(session: Session, side: Side, **fields: object) -> list[Pending]:
    """Send a frame and return what the product asks."""
    session.receive_message(side, Kind.WS_TEXT, dumps(fields), 0)
    return session.take_asks()


def stream(session: Session, name: str, chunks: int, *, ends: bool = True, text: str = "x") -> None:
    """Stream one answer."""
    first = {"type": "start", "messageId": f"m{name}"}
    deltas = [{"type": "text-delta", "id": "t", "delta": text}] * (chunks - 4)
    body: list[object] = [first, {"type": "start-step"}, {"type": "text-start", "id": "t"}]
    for chunk in [*body, *deltas, {"type": "text-end", "id": "t"}]:
        send(
            session,
            SERVER,
            type="cf_agent_use_chat_response",
            id=name,
            body=dumps(chunk).decode(),
            done=False,
        )
    if ends:
        send(session, SERVER, type="cf_agent_use_chat_response", id=name, body="", done=True)


def state_of(engine: Engine) -> Chat:
    [conversation] = engine.conversations._known.values()
    chat = conversation.states["replay-overlap"]
    assert isinstance(chat, Chat)
    return chat


def memory_of(session: Session) -> Socket:
    assert session._chain is not None
    socket = session._chain._links[0].context.state
    assert isinstance(socket, Socket)
    return socket


def test_many_streams_of_one_socket_leave_nothing_behind_but_the_messages() -> None:
    engine = engine_of()
    session = socket_of(engine)
    send(session, SERVER, type="cf_agent_chat_messages", messages=[])
    for number in range(300):
        stream(session, f"s{number}", 12)
    chat, socket = state_of(engine), memory_of(session)
    assert chat.transcript.streams == {}
    assert len(chat.transcript.done) <= 32
    assert socket.places == {}
    assert len(chat.transcript.messages) == 300


def test_streams_that_never_end_are_bounded() -> None:
    engine = engine_of()
    session = socket_of(engine)
    send(session, SERVER, type="cf_agent_chat_messages", messages=[])
    for number in range(100):
        stream(session, f"s{number}", 6, ends=False)
    chat, socket = state_of(engine), memory_of(session)
    assert len(chat.transcript.streams) <= 1
    assert len(socket.places) <= MAX_STREAMS


def test_offers_on_one_socket_are_bounded() -> None:
    engine = engine_of()
    session = socket_of(engine)
    send(session, SERVER, type="cf_agent_chat_messages", messages=[])
    for number in range(60):
        name = f"s{number}"
        send(session, CLIENT, type="cf_agent_stream_resume_request")
        stream(session, name, 6, ends=False)
        waits = send(session, SERVER, type="cf_agent_stream_resuming", id=name)
        first = dumps({"type": "start", "messageId": f"m{name}"}).decode()
        fields = {"type": "cf_agent_use_chat_response", "id": name, "replay": True, "done": False}
        send(session, SERVER, **fields, body=first)
        waits += send(session, SERVER, **fields, body="", replayComplete=True)
        send(session, CLIENT, type="cf_agent_stream_resume_ack", id=name)
        send(session, SERVER, type="cf_agent_use_chat_response", id=name, body="", done=True)
        for wait in waits:
            session.answer(wait, Answer(), 0)
    socket = memory_of(session)
    assert socket.offer is None
    assert len(socket.mended) <= MAX_MENDED
    assert len(socket.acked) <= 1
    assert engine.counts.get(metrics.ERRORS, ("replay-overlap",)) == 0


def test_outcomes_and_pages_of_a_chat_are_bounded() -> None:
    engine = engine_of()
    for number in range(2_000):
        head = RequestHead("GET", f"{PATH}?_pk=page{number}", HEADERS)
        session = engine.open(head, engine.routes[0])
        session.open(0)
        send(session, CLIENT, type="cf_agent_tool_result", toolCallId=f"c{number}", output=1)
        session.abort(0)
    chat = state_of(engine)
    assert len(chat.results) <= MAX_RESULTS
    assert len(chat.pages) <= 1_024
    assert len(chat.waiting_pages) <= 1_024


@pytest.mark.parametrize("ends", [True, False])
def test_a_chat_too_large_to_remember_is_forgotten_and_passes(ends: bool) -> None:
    engine = engine_of(max_transcript_bytes=20_000)
    session = socket_of(engine)
    send(session, SERVER, type="cf_agent_chat_messages", messages=[])
    for number in range(20):
        stream(session, f"s{number}", 50, ends=ends, text="x" * 100)
        assert state_of(engine).transcript.total_bytes <= 60_000
    assert engine.counts.get(metrics.ERRORS, ("replay-overlap",)) == 0


def test_a_stream_too_large_to_remember_is_forgotten_while_it_runs() -> None:
    engine = engine_of(max_transcript_bytes=20_000)
    session = socket_of(engine)
    send(session, SERVER, type="cf_agent_chat_messages", messages=[])
    stream(session, "s", 2_000, ends=False, text="x" * 100)
    assert state_of(engine).transcript.total_bytes < 20_000
    assert not state_of(engine).transcript.streams["s"].exact


def test_large_outcomes_of_tools_are_not_all_remembered() -> None:
    engine = engine_of()
    session = socket_of(engine)
    for number in range(50):
        send(
            session,
            CLIENT,
            type="cf_agent_tool_result",
            toolCallId=f"{number}",
            output="x" * 90_000,
        )
    assert state_of(engine).result_bytes <= MAX_RESULT_BYTES
    assert 0 < len(state_of(engine).results) < 50


def test_messages_handed_over_are_not_kept_for_long() -> None:
    engine = engine_of()
    first = socket_of(engine)
    send(first, SERVER, type="cf_agent_chat_messages", messages=[])
    stream(first, "s", 12, ends=False)
    first.abort(0)
    session = socket_of(engine)
    waits = send(session, SERVER, type="cf_agent_identity", name="x")
    for _ in range(3):
        body = b'[{"id":"ms","role":"assistant","parts":[{"type":"text","text":"xxxxxxxxxxxx"}]}]'
        answers = [Answer(200, body) if isinstance(w.ask, Fetch) else Answer() for w in waits]
        for wait, answer in zip(waits, answers, strict=True):
            session.answer(wait, answer, 0)
        waits = session.take_asks()
        if any(isinstance(wait.ask, Wait) and wait.ask.name == "healed" for wait in waits):
            assert memory_of(session).healed is not None
    assert engine.counts.get(metrics.REPAIRS, ("chat", "replay-overlap", "heal", "repair")) == 1
    assert memory_of(session).healed is None


def test_chats_nobody_uses_are_forgotten() -> None:
    engine = engine_of(max_conversations=50)
    for number in range(500):
        session = socket_of(engine, f"/agents/chat/{number}")
        send(session, SERVER, type="cf_agent_chat_messages", messages=[])
        stream(session, "s", 12)
        session.abort(0)
    assert len(engine.conversations) <= 50


@pytest.mark.soak
def test_a_hundred_thousand_streams_leave_the_process_as_large_as_it_was() -> None:
    """In 200 chats, each stream of 1,000 chunks cut in two by a drop."""
    engine = engine_of()
    process = psutil.Process(os.getpid())
    names = [f"s{number}" for number in range(64)]
    streams = [_frames(name, 1_000) for name in names]
    sizes: list[int] = []
    for number in range(SOAK_STREAMS):
        frames, path = streams[number % 64], f"/agents/chat/{number % 200}"
        session = socket_of(engine, path)
        if number < 200:
            send(session, SERVER, type="cf_agent_chat_messages", messages=[])
        for frame in frames[:500]:
            session.receive_message(SERVER, Kind.WS_TEXT, frame, 0)
        session.abort(0)
        session = socket_of(engine, path)
        send(session, SERVER, type="cf_agent_stream_resuming", id=names[number % 64])
        for frame in (*_replayed(frames[:500]), *frames[500:]):
            session.receive_message(SERVER, Kind.WS_TEXT, frame, 0)
        session.take_asks()
        session.abort(NS)
        if number % (SOAK_STREAMS // 10) == 0:
            gc.collect()
            sizes.append(process.memory_info().rss)
    assert engine.counts.get(metrics.ERRORS, ("replay-overlap",)) == 0
    assert max(sizes[3:]) < sizes[2] * 1.1


def _frames(name: str, chunks: int) -> list[bytes]:
    """Return the frames of a live stream."""
    body: list[object] = [{"type": "start", "messageId": f"m{name}"}, {"type": "start-step"}]
    body += [{"type": "text-start", "id": "t"}]
    body += [{"type": "text-delta", "id": "t", "delta": "some words "}] * (chunks - 4)
    body += [{"type": "text-end", "id": "t"}]
    fields = {"type": "cf_agent_use_chat_response", "id": name, "done": False}
    live = [dumps({**fields, "body": dumps(chunk).decode()}) for chunk in body]
    return [*live, dumps({**fields, "body": "", "done": True})]


def _replayed(frames: list[bytes]) -> list[bytes]:
    replay = [frame[:-1] + b',"replay":true}' for frame in frames]
    last = {**loads(frames[0]), "body": "", "replay": True, "replayComplete": True}
    return [*replay, dumps(last)]
