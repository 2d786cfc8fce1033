"""Yesterday's server, for today's client."""

import asyncio
import gzip
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from midstream.adapters.capture_exchanges import Gathered, Moment, gathered
from midstream.adapters.capture_format import StoredRecord, read
from midstream.cli import main
from midstream.config.values import Address
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.ports import RecordKind
from midstream.hosts.replay_server import ReplayServer

CAPTURES = Path(__file__).parents[1] / "captures"
CHAT = CAPTURES / "cloudflare" / "aichat-03-midcontinuation-reconnect-000001.cap"
ONE = next(
    path
    for path in sorted(CAPTURES.rglob("a2a/*.cap"))
    if sum(record.kind is RecordKind.OPEN for record in read(path)) == 1
)


def exchanges(path: Path) -> list[Gathered]:
    return list(gathered(read(path), seen_by=Side.SERVER))


@asynccontextmanager
async def serving(recorded: list[Gathered], speed: float = 0) -> AsyncIterator[str]:
    server = ReplayServer(recorded, speed)
    port = await server.listen(Address("127.0.0.1", 0))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await server.close()


def sockets(recorded: list[Gathered]) -> list[Gathered]:
    return [exchange for exchange in recorded if exchange.head.is_websocket]


async def play(base: str, exchange: Gathered) -> list[bytes]:
    """Say what the recorded client said, and return what the server says to it."""
    told = [m.frame.wire for m in exchange.frames if m.frame.sender is Side.CLIENT]
    wanted = [m.frame.wire for m in exchange.frames if m.frame.sender is Side.SERVER]
    heard: list[bytes] = []
    session = aiohttp.ClientSession()
    async with session, session.ws_connect(base + exchange.head.target, max_msg_size=0) as socket:
        for wire in told:
            await socket.send_str(wire.decode())
        async with asyncio.timeout(20):
            while len(heard) < len(wanted):
                message = await socket.receive()
                if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                    break
                heard.append(str(message.data).encode())
    return heard


async def test_a_chat_is_served_frame_by_frame_and_its_second_socket_next():
    recorded = exchanges(CHAT)
    async with serving(recorded) as base:
        for exchange in sockets(recorded):
            wanted = [m.frame.wire for m in exchange.frames if m.frame.sender is Side.SERVER]
            assert await play(base, exchange) == wanted


async def test_what_was_said_after_the_client_waits_for_the_client():
    (first, *_) = sockets(exchanges(CHAT))
    before = 0
    for moment in first.frames:
        if moment.frame.sender is Side.CLIENT:
            break
        before += 1
    async with (
        serving([first]) as base,
        aiohttp.ClientSession() as session,
        session.ws_connect(base + first.head.target) as socket,
    ):
        for _ in range(before):
            await socket.receive(timeout=10)
        with pytest.raises(TimeoutError):
            await socket.receive(timeout=0.3)


@pytest.mark.parametrize("path", sorted(CAPTURES.rglob("a2a/*.cap"))[:12], ids=lambda p: p.stem)
async def test_bodies_and_event_streams_are_served_byte_for_byte(path: Path):
    recorded = [exchange for exchange in exchanges(path) if exchange.response is not None]
    async with serving(recorded) as base, aiohttp.ClientSession(auto_decompress=False) as session:
        for exchange in recorded:
            head = exchange.head
            async with session.request(head.method, base + head.target, data=b"{}") as answer:
                assert exchange.response is not None
                assert answer.status == exchange.response.status
                assert await answer.read() == exchange.body(Side.SERVER)


async def test_the_same_request_gets_its_exchanges_in_order_and_then_the_last_again():
    recorded = [e for e in exchanges(CHAT) if not e.head.is_websocket]
    bodies = [e.body(Side.SERVER) for e in recorded]
    async with serving(recorded) as base, aiohttp.ClientSession() as session:
        for body in [*bodies, bodies[-1]]:
            async with session.get(base + recorded[0].head.target) as answer:
                assert await answer.read() == body


async def test_another_query_is_answered_by_its_path():
    recorded = [e for e in exchanges(CHAT) if not e.head.is_websocket]
    async with (
        serving(recorded) as base,
        aiohttp.ClientSession() as session,
        session.get(base + recorded[0].head.path + "?other=1") as answer,
    ):
        assert await answer.read() == recorded[0].body(Side.SERVER)


async def test_what_is_not_there_is_a_404_that_lists_what_is():
    async with (
        serving(exchanges(CHAT)) as base,
        aiohttp.ClientSession() as session,
        session.get(f"{base}/nowhere") as answer,
    ):
        text = await answer.text()
    assert answer.status == 404
    assert text.startswith("the capture has no GET /nowhere; it has\n  GET /agents/")
    assert "  WebSocket /agents/" in text


# --- time -----------------------------------------------------------------------------------------


class Waits(ReplayServer):
    """Notes what is waited for, and waits for nothing."""

    def __init__(self, recorded: list[Gathered], speed: float) -> None:
        super().__init__(recorded, speed)
        self.due: list[float] = []

    async def _wait_until(self, when: float) -> None:
        self.due.append(when)


@pytest.mark.parametrize(("speed", "step"), [(1.0, 0.2), (2.0, 0.1), (0.5, 0.4)])
async def test_events_are_due_as_far_apart_as_they_were_divided_by_the_speed(
    speed: float, step: float
):
    moments = [moment(number * 200, b"data: %d\n\n" % number) for number in range(4)]
    server = Waits([exchange(STREAM, *moments)], speed)
    port = await server.listen(LOOPBACK)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/x") as answer,
    ):
        assert await answer.read() == b"".join(m.frame.wire for m in moments)
    await server.close()
    events = server.due[1:]  # the first is the head of the answer
    assert [due - events[0] for due in events] == pytest.approx([0, step, 2 * step, 3 * step])


# --- how an exchange ended, and what it was coded in ----------------------------------------------

LOOPBACK = Address("127.0.0.1", 0)
STREAM = ResponseHead(200, (("Content-Type", "text/event-stream"),))
JSON = ResponseHead(200, (("Content-Type", "application/json"),))
UPGRADE = (("Upgrade", "websocket"),)


def moment(ms: int, wire: bytes, side: Side = Side.SERVER, kind: Kind = Kind.SSE) -> Moment:
    record = StoredRecord(ms * 10**6, ms * 10**6, 1, 1, RecordKind.FRAME)
    return Moment(ms * 10**6, Frame(side, kind, wire), record)


def exchange(
    response: ResponseHead, *moments: Moment, number: int = 1, target: str = "/x", **more: Any
) -> Gathered:
    headers = UPGRADE if response.status == 101 else more.pop("headers", ())
    head = RequestHead("GET", target, headers)
    return Gathered(number, "", head, 0, {}, response=response, frames=list(moments), **more)


async def test_a_body_that_was_recorded_coded_is_served_coded():
    zipped = moment(1, gzip.compress(b"hello"), kind=Kind.BODY)
    plain = moment(1, b"hello", kind=Kind.BODY)
    response = ResponseHead(200, (("Content-Encoding", "gzip"),))
    for recorded, coding in ((zipped, "gzip"), (plain, None)):
        async with (
            serving([exchange(response, recorded)]) as base,
            aiohttp.ClientSession() as session,
            session.get(f"{base}/x") as answer,
        ):
            assert answer.headers.get("Content-Encoding") == coding
            assert await answer.read() == b"hello"


async def test_what_the_server_broke_off_is_broken_off():
    cut = exchange(STREAM, moment(1, b"data: 1\n\n"), ending="aborted")
    left = exchange(
        STREAM, moment(1, b"data: 1\n\n"), ending="aborted", closes={"": {"gone": "client"}}
    )
    async with serving([cut]) as base, aiohttp.ClientSession() as session:
        answer = await session.get(f"{base}/x")
        assert await answer.content.readline() == b"data: 1\n"
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    async with (
        serving([left]) as base,
        aiohttp.ClientSession() as session,
        session.get(f"{base}/x") as answer,
    ):
        assert await answer.read() == b"data: 1\n\n"


async def closed_by(socket: aiohttp.ClientWebSocketResponse) -> tuple[int, str]:
    message = await socket.receive(timeout=10)
    assert message.type is aiohttp.WSMsgType.CLOSE
    return int(message.data), str(message.extra)


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({"code": 4001, "reason": "enough"}, (4001, "enough")),
        ({"code": 1005}, (1000, "")),
        ({}, (1000, "")),
    ],
)
async def test_a_server_that_closed_first_closes_again_behind_what_it_heard(
    told: dict[str, Any], code: tuple[int, str]
):
    said = moment(1, b"bye", Side.CLIENT, Kind.WS_TEXT)
    closes = {"server": told, "client": told, "": {}}
    recorded = exchange(ResponseHead(101), said, closes=closes, closed_ns=2 * 10**6)
    async with (
        serving([recorded]) as base,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{base}/x", autoclose=False) as socket,
    ):
        with pytest.raises(TimeoutError):
            await socket.receive(timeout=0.2)
        await socket.send_str("anything")
        assert await closed_by(socket) == code


async def test_a_client_that_closed_first_is_waited_for():
    closes: dict[str, Any] = {"client": {"code": 1000}, "server": {"code": 4009}, "": {}}
    recorded = exchange(ResponseHead(101), moment(1, b"hi", kind=Kind.WS_TEXT), closes=closes)
    async with (
        serving([recorded]) as base,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{base}/x") as socket,
    ):
        assert await socket.receive_str(timeout=10) == "hi"
        await socket.close(code=1000)
        assert socket.close_code == 1000  # an answer to its own, not the 4009 of before


async def test_a_refused_upgrade_is_refused_again():
    body = moment(1, b"who are you?", kind=Kind.BODY)
    recorded = exchange(JSON, body)
    recorded.head = RequestHead("GET", "/x", UPGRADE)
    recorded.response = ResponseHead(401)
    async with serving([recorded]) as base, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{base}/x")
    assert refused.value.status == 401


async def test_the_subprotocol_is_the_recorded_one():
    recorded = exchange(ResponseHead(101, (("Sec-WebSocket-Protocol", "b"), ("X-Of", "server"))))
    async with (
        serving([recorded]) as base,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{base}/x", protocols=["a", "b"]) as socket,
    ):
        assert socket.protocol == "b"
        assert socket._response.headers["X-Of"] == "server"


async def test_with_once_every_exchange_is_served_one_time_and_then_it_is_over():
    bodies = [moment(1, b"1", kind=Kind.BODY), moment(2, b"2", kind=Kind.BODY)]
    recorded = [exchange(JSON, body, number=n) for n, body in enumerate(bodies, 1)]
    server = ReplayServer(recorded, 0, is_once=True)
    port = await server.listen(LOOPBACK)
    async with aiohttp.ClientSession() as session:
        for body in (b"1", b"2"):
            assert not server.is_over.is_set()
            async with session.get(f"http://127.0.0.1:{port}/x") as answer:
                assert await answer.read() == body
        async with session.get(f"http://127.0.0.1:{port}/x") as answer:
            assert answer.status == 404
            assert (await answer.text()).startswith("the capture has no GET /x once more; it has")
    assert server.is_over.is_set()
    await server.close()


# --- the command ----------------------------------------------------------------------------------


async def test_the_command_ends_when_all_was_served_once():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midstream", "replay", str(ONE), "--serve", "127.0.0.1:0",
        "--once", "--speed", "0", stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
    base = line.split()[-1]
    (recorded,) = exchanges(ONE)
    method, target = recorded.head.method, recorded.head.target
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, base + target, data=b"{}") as answer,
    ):
        assert await answer.read() == recorded.body(Side.SERVER)
    told = (await asyncio.wait_for(process.stderr.read(), 60)).decode()
    assert told == f"{method} {recorded.head.path}: exchange 1\n"
    assert await asyncio.wait_for(process.wait(), 60) == 0


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--serve", "nowhere"], "--serve: found"),
        (["--serve", "127.0.0.1:0", "--speed", "-1"], "--speed: found -1.0, expected 0 or more"),
        (["--serve", "127.0.0.1:0", "--speed", "nan"], "--speed: found nan, expected 0 or more"),
    ],
)
def test_a_wrong_flag_is_one_line_and_exit_code_2(
    flags: list[str], error: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["replay", str(CHAT), *flags]) == 2
    told = capsys.readouterr().err
    assert error in told
    assert told.count("\n") == 1


async def test_the_command_serves_until_a_signal_comes():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midstream", "replay", str(CHAT), "--serve", "127.0.0.1:0",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
    found = re.fullmatch(
        r"midstream serves 3 recorded exchanges on (http://127\.0\.0\.1:\d+)\n", line
    )
    assert found is not None, line
    async with aiohttp.ClientSession() as session, session.get(f"{found[1]}/x") as answer:
        assert answer.status == 404
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 0
