import asyncio
import contextlib
import os
import zlib

import pytest
from tests.hosts.gateways import begin, gateway, until
from tests.hosts.upstreams import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    Visit,
    Wire,
    connect,
    open_socket,
    upstream,
)
from tests.support import FakeAddon, ws

from midstream.config.schema import LimitsTable
from midstream.core import metrics
from midstream.core.addon import Answer, Fetch, Verdict, Wait
from midstream.core.frames import Frame, Side

MIB = 1 << 20
SMALL = LimitsTable(max_frame_bytes=1000)


async def echo(visit: Visit) -> None:
    """Accept, and send back every frame as it came, close frames included."""
    await visit.accept()
    while True:
        opcode, payload = await visit.frame()
        await visit.send_frame({PING: PONG}.get(opcode, opcode), payload)
        if opcode == CLOSE:
            return


class Scene:
    """An upstream that a test plays by hand."""

    def __init__(self, *headers: tuple[str, str]) -> None:
        self.headers = headers
        self.arrived: asyncio.Queue[Visit] = asyncio.Queue()

    async def __call__(self, visit: Visit) -> None:
        await visit.accept(*self.headers)
        self.arrived.put_nowait(visit)
        await asyncio.sleep(60)

    async def visit(self) -> Visit:
        async with asyncio.timeout(10):
            return await self.arrived.get()


# --- the handshake --------------------------------------------------------------------------------


async def test_the_handshake_goes_upstream_as_it_came():
    sent = [("Origin", "https://chat.test"), ("Cookie", "a=1"), ("cookie", "b=2"),
            ("Sec-WebSocket-Protocol", "chat.v2, chat.v1"), ("X-Key", "1")]  # fmt: skip
    async with upstream(echo) as up, gateway(up.url) as gw:
        client, head = await open_socket(gw.port, "/agents/%2F/x?token=a%20b&_pk=1", *sent)
        async with client:
            assert head.status == 101
            asked = up.requests[0]
            assert asked.target == "/agents/%2F/x?token=a%20b&_pk=1"
            assert [pair for pair in asked.headers if pair in sent] == sent
            assert asked.all("upgrade") == ["websocket"]
            assert asked.all("sec-websocket-version") == ["13"]
            assert len(asked.all("sec-websocket-key")) == 1
            assert asked.all("sec-websocket-extensions") == []
            assert asked.all("x-forwarded-for") == ["127.0.0.1"]


async def test_the_answer_of_the_upstream_reaches_the_client():
    told = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Own", "x"),
            ("Sec-WebSocket-Protocol", "chat.v1")]  # fmt: skip
    scene = Scene(*told)
    offer = ("Sec-WebSocket-Protocol", "chat.v2, chat.v1")
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, head = await open_socket(gw.port, "/ws", offer)
        async with client:
            assert head.all("set-cookie") == ["a=1", "b=2"]
            assert head.all("x-own") == ["x"]
            assert head.all("sec-websocket-protocol") == ["chat.v1"]
            assert head.all("sec-websocket-accept") == ["ICX+Yqv66kxgM0FcWaLWlFLwTAI="]
            assert head.all("server") == []
        assert gw.counts.get(metrics.REQUESTS, ("chat", "ws", "1xx")) == 1


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "404 Not Found",
                                    "503 Service Unavailable", "200 OK"])  # fmt: skip
async def test_a_refused_upgrade_is_refused_as_the_upstream_did(status):
    async def behave(visit: Visit) -> None:
        await visit.respond(status, [("WWW-Authenticate", "Bearer"), ("X-a", "1")], b"why not")

    async with upstream(behave) as up, gateway(up.url, FakeAddon()) as gw:
        client, head = await open_socket(gw.port, "/chat")
        async with client:
            assert head.line == f"HTTP/1.1 {status}"
            assert head.all("www-authenticate") == ["Bearer"]
            assert await client.body(head) == b"why not"
            # The connection is still one for requests.
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await client.head()).line == f"HTTP/1.1 {status}"
        assert gw.counts.get(metrics.STREAMS_OPENED, ("chat", "ws")) == 0


async def test_an_upstream_that_is_not_there_is_a_502(unused_tcp_port):
    async with gateway(f"http://127.0.0.1:{unused_tcp_port}") as gw:
        client, head = await open_socket(gw.port)
        async with client:
            assert head.status == 502
            assert b"refused the connection" in await client.body(head)


async def test_an_upstream_that_accepts_wrongly_is_a_502():
    async def behave(visit: Visit) -> None:
        headers = [("Upgrade", "websocket"), ("Connection", "Upgrade")]
        await visit.begin("101 Switching Protocols", [*headers, ("Sec-WebSocket-Accept", "x")])
        await visit.rest()

    async with upstream(behave) as up, gateway(up.url) as gw:
        client, head = await open_socket(gw.port)
        async with client:
            assert head.status == 502


HANDSHAKE = "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
KEY = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (HANDSHAKE + KEY, 400),
        (HANDSHAKE + "Sec-WebSocket-Version: 13\r\n", 400),
        (HANDSHAKE + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n", 400),
        (HANDSHAKE + KEY + "Sec-WebSocket-Version: 99\r\n", 426),
        (HANDSHAKE + KEY + "Sec-WebSocket-Version: 13\r\nContent-Length: 3\r\n", 400),
        (HANDSHAKE.replace("GET", "POST") + KEY + "Sec-WebSocket-Version: 13\r\n", 400),
        (HANDSHAKE + KEY + "Sec-WebSocket-Version: 13\r\nTransfer-Encoding: chunked\r\n", 400),
    ],
)
async def test_what_is_no_handshake_never_reaches_the_upstream(raw, status):
    async with upstream(echo) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(f"{raw}\r\n".encode() + b"abc")
        head = await client.head()
        assert head.status == status
        assert up.requests == []
        assert gw.counts.get(metrics.REJECTED, ("bad_upgrade",)) == 1


async def test_what_the_client_sends_early_is_not_lost():
    async with upstream(echo) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(
            f"{HANDSHAKE}{KEY}Sec-WebSocket-Version: 13\r\n\r\n".encode()
            + b"\x81\x82\x00\x00\x00\x00hi"
        )
        assert (await client.head()).status == 101
        assert await client.text() == "hi"


async def test_what_the_server_sends_early_is_not_lost():
    async def behave(visit: Visit) -> None:
        await visit.accept()
        await visit.send_text("welcome")
        await visit.rest()

    async with upstream(behave) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            assert await client.text() == "welcome"


# --- messages -------------------------------------------------------------------------------------


async def test_text_and_binary_pass_in_both_directions():
    async with upstream(echo) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            for opcode, payload in [
                (TEXT, "é€😀".encode()),
                (BINARY, bytes(range(256))),
                (TEXT, b""),
                (BINARY, b""),
                (BINARY, os.urandom(200_000)),
                (TEXT, b"x" * 70_000),
            ]:
                await client.send_frame(opcode, payload)
                assert await client.frame() == (opcode, payload)
        assert gw.counts.get(metrics.FRAMES, ("chat", "ws", "client")) == 6
        assert gw.counts.get(metrics.FRAMES, ("chat", "ws", "server")) == 6


async def test_a_fragmented_message_arrives_whole():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_frame(TEXT, b"a", fin=False)
            await client.send_frame(PING, b"between")
            await client.send_frame(0, b"b", fin=False)
            await client.send_frame(0, b"c")
            assert await visit.frame() == (PING, b"between")
            assert await visit.frame() == (TEXT, b"abc")


async def test_a_message_is_mended_in_either_direction():
    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        if b"cat" not in frame.wire:
            return Verdict.keep()
        return Verdict.replace("swap", frame.with_payload(frame.wire.replace(b"cat", b"dog")))

    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon("fake", frame=on_frame)) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            visit = await scene.visit()
            await client.send_text("a cat")
            assert await visit.text() == "a dog"
            await visit.send_text("cats")
            assert await client.text() == "dogs"


async def test_one_frame_may_become_several_towards_both_sides_and_order_holds():
    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        word = frame.wire.decode()
        frames = [ws(f"{word}{n}", side) for n in range(3) for side in (frame.sender, Side.SERVER)]
        return Verdict.replace("swap", *frames)

    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon("fake", frame=on_frame)) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            visit = await scene.visit()

            async def send(wire: Wire, letter: str) -> None:
                for number in range(200):
                    await wire.send_text(f"{letter}{number}.")

            async with asyncio.TaskGroup() as group:
                group.create_task(send(client, "c"))
                group.create_task(send(visit, "s"))
                to_server = [await visit.text() for _ in range(600)]
                to_client = [await client.text() for _ in range(600 + 1200)]
        assert to_server == [f"c{n}.{i}" for n in range(200) for i in range(3)]
        from_client = [text for text in to_client if text[0] == "c"]
        assert from_client == to_server
        from_server = [text for text in to_client if text[0] == "s"]
        assert from_server == [f"s{n}.{i}" for n in range(200) for i in range(3) for _ in range(2)]


async def test_pings_and_pongs_pass_with_their_payload_and_are_answered_by_nobody_else():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_frame(PING, b"1")
            assert await visit.frame() == (PING, b"1")
            await visit.send_frame(PONG, b"1")
            assert await client.frame() == (PONG, b"1")
            await visit.send_frame(PING, b"")
            assert await client.frame() == (PING, b"")
            await client.send_frame(PONG, b"unasked")
            assert await visit.frame() == (PONG, b"unasked")
        assert gw.counts.get(metrics.FRAMES, ("chat", "ws", "client")) == 0


DEFLATE = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")


async def test_compression_is_agreed_with_each_side_and_payloads_are_equal():
    scene = Scene(("Sec-WebSocket-Extensions", "permessage-deflate"))
    text = b"hello " * 100

    def pack(data: bytes) -> bytes:
        packer = zlib.compressobj(wbits=-15)
        return (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]

    def unpack(data: bytes) -> bytes:
        return zlib.decompressobj(wbits=-15).decompress(data + b"\x00\x00\xff\xff")

    async with upstream(scene) as up, gateway(up.url, FakeAddon()) as gw:
        client, head = await open_socket(gw.port, "/chat", DEFLATE)
        async with client:
            assert "permessage-deflate" in (head.get("sec-websocket-extensions") or "")
            visit = await scene.visit()
            await client.send_frame(TEXT, pack(text), rsv1=True)
            opcode, payload = await visit.frame()
            assert (opcode, unpack(payload)) == (TEXT | 0x40, text)
            await visit.send_frame(TEXT, pack(text), rsv1=True)
            opcode, payload = await client.frame()
            assert (opcode, unpack(payload)) == (TEXT | 0x40, text)
            large = os.urandom(200_000)
            await client.send_frame(BINARY, large)
            opcode, payload = await visit.frame()
            assert opcode == BINARY | 0x40
        assert gw.counts.get(metrics.FRAME_BYTES, ("chat", "ws", "client")) == 200_600


async def test_compression_is_not_agreed_with_the_client_where_the_upstream_has_none():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, head = await open_socket(gw.port, "/ws", DEFLATE)
        async with client:
            assert head.all("sec-websocket-extensions") == []
            assert "permessage-deflate" in (up.requests[0].get("sec-websocket-extensions") or "")


# --- limits ---------------------------------------------------------------------------------------


async def test_a_message_of_exactly_the_limit_passes():
    async with upstream(echo) as up, gateway(up.url, limits=SMALL) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            await client.send_frame(TEXT, b"x" * 1000)
            assert await client.frame() == (TEXT, b"x" * 1000)


@pytest.mark.parametrize("size", [1001, 300_000])
async def test_a_message_over_the_limit_closes_with_1009_on_both_sides(size):
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, limits=SMALL) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_text("before")
            await client.send_frame(TEXT, b"x" * size)
            assert (await client.close_code())[0] == 1009
            assert await visit.text() == "before"
            assert (await visit.close_code())[0] == 1009
            await visit.send_close(1009)
        await gw.streams_closed()
        assert gw.counts.get(metrics.REJECTED, ("message_too_large",)) == 1
        assert gw.counts.get(metrics.STREAMS_CLOSED, ("chat", "ws", "limit")) == 1


async def test_a_message_of_the_server_over_the_limit_closes_with_1009_on_both_sides():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, limits=SMALL) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await visit.send_frame(TEXT, b"x" * 300_000)
            assert (await visit.close_code())[0] == 1009
            assert (await client.close_code())[0] == 1009


async def test_a_message_that_inflates_over_the_limit_closes_with_1009():
    scene = Scene(("Sec-WebSocket-Extensions", "permessage-deflate"))
    packer = zlib.compressobj(wbits=-15)
    bomb = (packer.compress(bytes(64 * MIB)) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    limits = LimitsTable(max_frame_bytes=MIB)
    async with upstream(scene) as up, gateway(up.url, limits=limits) as gw:
        client, _ = await open_socket(gw.port, "/ws", DEFLATE)
        async with client:
            await client.send_frame(BINARY, bomb, rsv1=True)
            assert (await client.close_code())[0] == 1009


async def test_bytes_that_are_no_websocket_close_with_1002_on_both_sides():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_frame(3, b"reserved opcode")
            assert (await client.close_code())[0] == 1002
            assert (await visit.close_code())[0] == 1002
        assert gw.counts.get(metrics.REJECTED, ("bad_message",)) == 1


async def test_a_client_that_never_reads_slows_the_upstream():
    pushed = 0

    async def behave(visit: Visit) -> None:
        nonlocal pushed
        await visit.accept()
        for _ in range(400):
            await visit.send_frame(BINARY, bytes(MIB // 2))
            pushed += MIB // 2

    async with upstream(behave) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        seen = -1
        while seen != pushed:
            seen = pushed
            await asyncio.sleep(0.3)
        assert 0 < pushed < 64 * MIB
        client.abort()


async def test_a_client_that_does_not_read_is_still_heard():
    heard = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.accept()
        flood = begin(send_for_ever(visit))
        try:
            assert await visit.text() == "stop"
            heard.set()
        finally:
            flood.cancel()
        await visit.send_close(1000)

    async def send_for_ever(visit: Visit) -> None:
        while True:
            await visit.send_frame(BINARY, bytes(MIB // 2))

    async with upstream(behave) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            await asyncio.sleep(0.5)
            await client.send_text("stop")
            async with asyncio.timeout(10):
                await heard.wait()
            while (frame := await client.frame())[0] != CLOSE:
                assert frame[0] == BINARY


async def test_an_upstream_that_never_reads_slows_the_client():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        visit = await scene.visit()
        visit.stop_reading()
        pushed = 0
        with contextlib.suppress(TimeoutError):
            for _ in range(400):
                async with asyncio.timeout(1):
                    await client.send_frame(BINARY, bytes(MIB // 2))
                pushed += MIB // 2
        assert pushed < 64 * MIB
        client.abort()
        visit.abort()


# --- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason"), [(1000, ""), (1000, "bye"), (4001, "töö"), (1001, ""), (1011, "x" * 123)]
)
async def test_a_close_of_the_client_passes_and_so_does_the_answer(code, reason):
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_close(code, reason)
            assert await visit.close_code() == (code, reason)
            await visit.send_close(4999, "answer")
            assert await client.close_code() == (4999, "answer")
            assert await client.rest() == b""
            assert await visit.rest() == b""
        await gw.streams_closed()
        assert gw.counts.get(metrics.STREAMS_CLOSED, ("chat", "ws", "completed")) == 1


async def test_a_close_of_the_server_passes_and_so_does_the_answer():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await visit.send_text("last")
            await visit.send_close(4002, "custom")
            assert await client.text() == "last"
            assert await client.close_code() == (4002, "custom")
            await client.send_close(4002)
            assert await visit.close_code() == (4002, "")
            assert await client.rest() == b""


async def test_a_close_without_a_code_stays_without_one():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_frame(CLOSE)
            assert await visit.close_code() == (0, "")
            await visit.send_frame(CLOSE)
            assert await client.close_code() == (0, "")


async def test_messages_still_pass_to_a_side_that_has_closed():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            visit = await scene.visit()
            await client.send_close(1000)
            assert await visit.close_code() == (1000, "")
            await visit.send_text("one more")
            await visit.send_close(1000)
            assert await client.text() == "one more"
            assert await client.close_code() == (1000, "")


async def test_a_close_that_is_not_answered_is_answered_in_the_end(monkeypatch):
    monkeypatch.setattr("midstream.hosts.gateway_pair.CLOSE_SECONDS", 0.05)
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_close(4001, "bye")
            assert await visit.close_code() == (4001, "bye")
            assert await client.close_code() == (4001, "bye")
            assert await visit.rest() == b""


async def test_a_server_that_answers_a_close_by_hanging_up_has_answered():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            visit = await scene.visit()
            await client.send_close(4001, "bye")
            await visit.close_code()
            await visit.aclose()
            assert await client.close_code() == (4001, "bye")


@pytest.mark.parametrize("end", ["abort", "aclose"])
async def test_an_end_of_the_server_without_a_close_frame_has_none_at_the_client(end):
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            visit = await scene.visit()
            await visit.send_text("last")
            await asyncio.sleep(0.05)
            visit.abort() if end == "abort" else await visit.aclose()
            assert await client.text() == "last"
            assert await client.is_gone()
        await gw.streams_closed()
        closed = metrics.STREAMS_CLOSED
        assert gw.counts.get(closed, ("chat", "ws", "upstream_error")) == 1


@pytest.mark.parametrize("end", ["abort", "aclose"])
async def test_an_end_of_the_client_without_a_close_frame_has_none_at_the_server(end):
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        visit = await scene.visit()
        await client.send_text("last")
        await asyncio.sleep(0.05)
        client.abort() if end == "abort" else await client.aclose()
        assert await visit.text() == "last"
        assert await visit.is_gone()
        await gw.streams_closed()
        assert gw.counts.get(metrics.STREAMS_CLOSED, ("chat", "ws", "client_gone")) == 1


async def test_what_a_client_sent_before_it_hung_up_reaches_the_server():
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        visit = await scene.visit()
        visit.stop_reading()
        for number in range(500):
            await client.send_text(f"{number} " + "x" * 100)
        await client.send_close(4001, "bye")
        await client.aclose()
        await asyncio.sleep(0.1)
        visit.go_on_reading()
        got = [(await visit.text()).split()[0] for _ in range(500)]
        assert got == [str(number) for number in range(500)]
        assert await visit.close_code() == (4001, "bye")


async def test_what_a_server_sent_before_it_hung_up_reaches_the_client():
    async def behave(visit: Visit) -> None:
        await visit.accept()
        for number in range(500):
            await visit.send_text(f"{number} " + "x" * 100)
        visit.writer.close()

    async with upstream(behave) as up, gateway(up.url, FakeAddon()) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            got = [(await client.text()).split()[0] for _ in range(500)]
            assert got == [str(number) for number in range(500)]
            assert await client.is_gone()


async def test_a_held_message_is_not_lost_when_its_sender_closes():
    addon = FakeAddon("fake", frame=Verdict(hold=True))
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, addon) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            visit = await scene.visit()
            await visit.send_text("held")
            await visit.send_close(1000)
            assert await client.text() == "held"
            assert await client.close_code() == (1000, "")


async def test_a_held_message_is_not_lost_when_its_sender_goes_away():
    addon = FakeAddon("fake", frame=Verdict(hold=True))
    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, addon) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            visit = await scene.visit()
            await visit.send_text("held")
            await asyncio.sleep(0.05)
            await visit.aclose()
            assert await client.text() == "held"
            assert await client.is_gone()


# --- asks -----------------------------------------------------------------------------------------


async def test_answers_come_while_frames_go_on_flowing():
    go_on = asyncio.Event()

    def on_open(_ctx: object) -> Verdict:
        return Verdict.keep(asks=(Fetch("/chat/get-messages"), Wait(10)))

    def on_answer(ask: object, answer: Answer, _ctx: object) -> Verdict:
        if isinstance(ask, Wait):
            return Verdict(frames=(ws("waited"),), rule="swap")
        return Verdict(frames=(ws(f"fetched {answer.body.decode()}"),), rule="swap")

    async def behave(visit: Visit) -> None:
        if visit.request.get("upgrade") is None:
            await go_on.wait()
            await visit.respond(body=b"[]")
        else:
            await echo(visit)

    addon = FakeAddon("fake", open=on_open, answer=on_answer)
    async with upstream(behave) as up, gateway(up.url, addon) as gw:
        client, _ = await open_socket(
            gw.port, "/chat?_pk=1", ("Authorization", "Bearer x"), ("Origin", "https://a.test")
        )
        async with client:
            assert await client.text() == "waited"
            await client.send_text("hello")
            assert await client.text() == "hello"
            go_on.set()
            assert await client.text() == "fetched []"
        asked = next(head for head in up.requests if head.target == "/chat/get-messages")
        assert asked.get("authorization") == "Bearer x"
        assert asked.get("origin") == "https://a.test"
        names = {name.lower() for name, _ in asked.headers}
        assert not {name for name in names if name.startswith("sec-websocket")}
        assert "upgrade" not in names


async def test_paced_frames_leave_while_the_server_is_silent():
    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        return Verdict(frames=tuple(ws(str(n)) for n in range(60)), rule="swap", paced=True)

    scene = Scene()
    async with upstream(scene) as up, gateway(up.url, FakeAddon("fake", frame=on_frame)) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            visit = await scene.visit()
            await visit.send_text("go")
            assert [await client.text() for _ in range(60)] == [str(n) for n in range(60)]


# --- nothing is left ------------------------------------------------------------------------------


async def test_no_task_is_left_of_many_sockets_however_they_end():
    async with upstream(echo) as up, gateway(up.url, FakeAddon()) as gw:
        before = len(asyncio.all_tasks())

        async def one(number: int) -> None:
            client, _ = await open_socket(gw.port, "/chat")
            await client.send_text("x")
            assert await client.text() == "x"
            if number % 3 == 0:
                client.abort()
            elif number % 3 == 1:
                await client.send_close(1000)
                await client.close_code()
            await client.aclose()

        for _ in range(10):
            await asyncio.gather(*(one(number) for number in range(12)))
        await gw.streams_closed()
        await until(lambda: len(asyncio.all_tasks()) <= before)
        closed = metrics.STREAMS_CLOSED
        assert gw.counts.get(closed, ("chat", "ws", "completed")) == 40
        assert gw.counts.get(closed, ("chat", "ws", "client_gone")) == 80
        assert gw.counts.get(closed, ("chat", "ws", "proxy_error")) == 0


async def test_twenty_thousand_frames_on_one_socket_leave_nothing_behind():
    async with upstream(echo) as up, gateway(up.url, FakeAddon("fake")) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            before = len(asyncio.all_tasks())
            for batch in range(100):
                for number in range(100):
                    await client.send_text(f"{batch}.{number}")
                for number in range(100):
                    assert await client.text() == f"{batch}.{number}"
            assert len(asyncio.all_tasks()) == before
        stream = gw.counts.get(metrics.FRAMES, ("chat", "ws", "client"))
        assert stream + gw.counts.get(metrics.FRAMES, ("chat", "ws", "server")) == 20_000
