"""Yesterday's server, for today's client."""

import asyncio
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from midstream.adapters.capture_exchanges import Gathered, gathered
from midstream.adapters.capture_format import read
from midstream.config.values import Address
from midstream.core.frames import Kind, Side
from midstream.hosts.replay_server import ReplayServer

CAPTURES = Path(__file__).parents[1] / "captures"
CHAT = CAPTURES / "cloudflare" / "aichat-03-midcontinuation-reconnect-000001.cap"


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


async def test_a_stream_takes_the_time_it_took_divided_by_the_speed():
    def stream() -> list[Gathered]:
        return [e for e in exchanges(path) if e.response and e.response.is_event_stream][:1]

    path = next(
        p for p in sorted(CAPTURES.rglob("a2a/*.cap"))
        if any(m.frame.kind is Kind.SSE for e in exchanges(p) for m in e.frames)
    )  # fmt: skip
    (exchange,) = stream()
    for number, moment in enumerate(exchange.frames):
        exchange.frames[number] = type(moment)(
            exchange.began_ns + number * 200_000_000, moment.frame, moment.record
        )
    exchange.answered_ns = exchange.began_ns
    async with serving([exchange], 2.0) as base, aiohttp.ClientSession() as session:
        began = time.monotonic()
        async with session.request(exchange.head.method, base + exchange.head.target) as answer:
            await answer.read()
        events = sum(m.frame.sender is Side.SERVER for m in exchange.frames)
        assert time.monotonic() - began >= 0.1 * (events - 1)


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
