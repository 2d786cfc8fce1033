"""WebSockets through mitmproxy: order, fragments, ends."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from mitmproxy import http
from tests.hosts.mitm_master import (
    BINARY,
    PING,
    PONG,
    TEXT,
    Peer,
    close_frame,
    engine,
    frame,
    frames,
    mitmproxy,
    settled,
    socket_to,
    upstream,
)
from tests.support import FakeAddon, ws

from midstream.core import metrics
from midstream.core.addon import KEEP, Ending, Fetch, Verdict, Wait
from midstream.core.frames import Frame, Kind, Side
from midstream.hosts.mitm_live import Live

type Judge = Callable[[Frame, object], Verdict]


def serves(*messages: bytes, then: Callable[[Peer], Awaitable[None]] | None = None):
    """Return an upstream that sends bytes after the handshake, each in one segment."""

    async def handler(peer: Peer) -> None:
        await peer.upgrade()
        await asyncio.sleep(0.05)
        for message in messages:
            await peer.send(message)
            await asyncio.sleep(0.05)
        if then is not None:
            await then(peer)
        else:
            await peer.rest()

    return handler


def on_server(verdicts: dict[bytes, Verdict]) -> Judge:
    """Judge messages of the server by their payload."""
    return lambda frame, _: verdicts.get(frame.wire, KEEP)


async def test_untouched_messages_keep_their_fragments_and_their_bytes_both_ways():
    sent = frame("one ", last=False) + frame("mé", 0, last=False) + frame("ssage", 0)
    sent += frame(b"\x00\xff" * 40_000, BINARY)

    async def echo(peer: Peer) -> None:
        got = [await peer.frame() for _ in range(2)]
        assert got == [(TEXT, False, b"up"), (0, True, b"ward")]
        await peer.rest()

    addon = FakeAddon()
    async with upstream(serves(sent, then=echo)) as port, mitmproxy(port, engine(addon)) as proxy:
        async with socket_to(proxy.port) as peer:
            got = [await peer.frame() for _ in range(4)]
            await peer.send(frame("up", last=False, masked=True) + frame("ward", 0, masked=True))
            await asyncio.sleep(0.1)
        assert got[:3] == [(TEXT, False, b"one "), (0, False, "mé".encode()), (0, True, b"ssage")]
        assert got[3] == (BINARY, True, b"\x00\xff" * 40_000)
        assert await settled(proxy)
    assert [f.kind for f in frames(addon)] == [Kind.WS_TEXT, Kind.WS_BINARY, Kind.WS_TEXT]


async def test_one_message_becomes_several_in_order_amid_a_burst():
    judge = on_server({
        b"s1": Verdict.replace("swap", ws("a"), ws("b")),
        b"s3": Verdict.drop("cut"),
        b"s4": Verdict.replace("swap", ws("c"), ws("s4"), ws("d")),
    })  # fmt: skip
    burst = b"".join(frame(f"s{n}") for n in range(6))
    async with (
        upstream(serves(burst)) as port,
        mitmproxy(port, engine(FakeAddon(frame=judge))) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(8) == ["s0", "a", "b", "s2", "c", "s4", "d", "s5"]


async def test_a_burst_that_ends_with_a_close_loses_nothing():
    judge = on_server({b"s0": Verdict.replace("swap", ws("a"), ws("b"))})
    burst = frame("s0") + frame("s1") + close_frame(4001, "bye")
    async with (
        upstream(serves(burst)) as port,
        mitmproxy(port, engine(FakeAddon(frame=judge))) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(3) == ["a", "b", "s1"]
        assert await peer.closed() == 4001


async def test_what_an_answer_makes_is_not_mixed_into_a_message_still_arriving():
    large = frame("L" * 200_000)
    verdicts = {b"ask": Verdict.keep(asks=(Wait(100),))}
    addon = FakeAddon(
        frame=on_server(verdicts), answer=lambda *_: Verdict.replace("swap", ws("answered"))
    )

    async def finish(peer: Peer) -> None:
        await asyncio.sleep(0.3)
        await peer.send(large[1000:] + frame("after"))
        await peer.rest()

    async with (
        upstream(serves(frame("ask") + large[:1000], then=finish)) as port,
        mitmproxy(port, engine(addon)) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(4) == ["ask", "answered", "L" * 200_000, "after"]


async def test_a_long_text_that_is_not_ascii_arrives_in_one_frame():
    text = "x" + "é€😀" * 2000
    judge = on_server({b"s": Verdict.replace("swap", ws(text))})
    async with (
        upstream(serves(frame("s"))) as port,
        mitmproxy(port, engine(FakeAddon(frame=judge))) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(1) == [text]


async def test_an_addon_may_answer_the_side_that_asked():
    reply = ws("pong", Side.SERVER)
    addon = FakeAddon(frame=on_server({b"ping": Verdict.replace("swap", reply)}))

    async def expect(peer: Peer) -> None:
        assert await peer.texts(1) == ["other"]
        await peer.rest()

    async with (
        upstream(serves(then=expect)) as port,
        mitmproxy(port, engine(addon)) as proxy,
        socket_to(proxy.port) as peer,
    ):
        await peer.send(frame("ping", masked=True) + frame("other", masked=True))
        assert await peer.texts(1) == ["pong"]


async def test_a_fetch_goes_to_the_upstream_with_the_credentials_of_the_exchange():
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        head = await peer.read_head()
        if b"Upgrade" in head:
            await peer.accept(head)
            await peer.send(frame("ask"))
            await peer.rest()
        else:
            heads.append(head)
            await peer.respond(b"[1]", "Content-Length: 3")

    addon = FakeAddon(
        frame=on_server({b"ask": Verdict.keep(asks=(Fetch("/chat/get%2Fmessages?a=b"),))}),
        answer=lambda _ask, answer, _ctx: Verdict.replace("swap", ws(repr(answer))),
    )
    async with (
        upstream(handler) as port,
        mitmproxy(port, engine(addon)) as proxy,
        socket_to(proxy.port, "/chat?token=1", "Cookie: a=1", "X-Api-Key: k", "Origin: x") as peer,
    ):
        assert await peer.texts(2) == ["ask", "Answer(status=200, body=b'[1]')"]
    (head,) = heads
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "get /chat/get%2fmessages?a=b http/1.1"
    assert {"cookie: a=1", "x-api-key: k"} <= set(lines)
    assert not any(line.startswith(("origin", "upgrade", "sec-")) for line in lines)


async def test_a_fetch_ends_with_its_exchange():
    ended = asyncio.Event()

    async def handler(peer: Peer) -> None:
        head = await peer.read_head()
        if b"Upgrade" in head:
            await peer.accept(head)
            await peer.send(frame("ask"))
            await peer.rest()
        else:
            assert await peer.rest() == b""
            ended.set()

    asks = Verdict.keep(asks=(Fetch("/chat/slow"), Wait(60_000)))
    addon = FakeAddon(frame=on_server({b"ask": asks}))
    async with upstream(handler) as port, mitmproxy(port, engine(addon)) as proxy:
        async with socket_to(proxy.port) as peer:
            assert await peer.texts(1) == ["ask"]
            await asyncio.sleep(0.1)
        async with asyncio.timeout(10):
            await ended.wait()
    assert addon.called("answer") == []


async def test_frames_that_wait_leave_before_the_close():
    addon = FakeAddon(frame=on_server({b"held": Verdict(hold=True)}))
    async with (
        upstream(serves(frame("held"), close_frame(1000))) as port,
        mitmproxy(port, engine(addon)) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(1) == ["held"]
        assert await peer.closed() == 1000
        assert await settled(proxy)
    assert addon.called("close") == [Ending.COMPLETE]


async def test_paced_frames_keep_their_place_before_later_messages():
    run = [ws(f"p{n}") for n in range(60)]
    addon = FakeAddon(frame=on_server({b"s0": Verdict(tuple(run), "swap", paced=True)}))
    async with (
        upstream(serves(frame("s0") + frame("s1"), frame("s2"))) as port,
        mitmproxy(port, engine(addon)) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(62) == [*(f"p{n}" for n in range(60)), "s1", "s2"]


async def test_what_an_addon_sends_before_the_first_message_leaves_first():
    opening = Verdict((ws("hello", Side.CLIENT), ws("welcome")), "swap")

    async def expect(peer: Peer) -> None:
        await peer.upgrade()
        assert await peer.texts(1) == ["hello"]
        await peer.send(frame("first"))
        await peer.rest()

    async with (
        upstream(expect) as port,
        mitmproxy(port, engine(FakeAddon(open=opening))) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(2) == ["welcome", "first"]


async def test_a_message_passes_as_it_came_when_the_hook_fails(monkeypatch, caplog):
    async with (
        upstream(serves(frame("one") + frame("two"))) as port,
        mitmproxy(port, engine(FakeAddon())) as proxy,
    ):
        monkeypatch.setattr(Live, "receive_message", None)
        async with socket_to(proxy.port) as peer:
            assert await peer.texts(2) == ["one", "two"]
    assert "the websocket_message hook failed" in caplog.text


async def test_pings_and_pongs_pass():
    async def expect(peer: Peer) -> None:
        assert await peer.frame() == (PONG, True, b"p")
        await peer.rest()

    async with (
        upstream(serves(frame("p", PING), then=expect)) as port,
        mitmproxy(port, engine(FakeAddon())) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.frame() == (PING, True, b"p")
        await peer.send(frame("p", PONG, masked=True))
        await asyncio.sleep(0.1)


async def test_a_server_that_breaks_off_is_not_turned_into_a_clean_close():
    addon = FakeAddon(frame=on_server({b"held": Verdict(hold=True)}))

    async def abort(peer: Peer) -> None:
        peer.writer.transport.abort()

    async with (
        upstream(serves(frame("held"), then=abort)) as port,
        mitmproxy(port, engine(addon)) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(1) == ["held"]
        assert await peer.closed() is None
        assert await settled(proxy)
        labels = ("chat", "ws", "upstream_error")
        assert proxy.engine.counts.get(metrics.STREAMS_CLOSED, labels) == 1
    assert addon.called("close") == [Ending.ABORTED]


async def test_a_client_that_breaks_off_is_not_turned_into_a_clean_close():
    ends: list[int | None] = []

    async def watch(peer: Peer) -> None:
        ends.append(await peer.closed())

    async with upstream(serves(then=watch)) as port, mitmproxy(port, engine(FakeAddon())) as proxy:
        async with socket_to(proxy.port) as peer:
            peer.writer.transport.abort()
        assert await settled(proxy)
        await asyncio.sleep(0.1)
        labels = ("chat", "ws", "client_gone")
        assert proxy.engine.counts.get(metrics.STREAMS_CLOSED, labels) == 1
        assert proxy.engine.counts.get(metrics.STREAMS_ACTIVE, ("chat", "ws")) == 0
    assert ends == [None]


async def test_a_message_over_the_limit_closes_with_1009_and_is_counted():
    served = engine(FakeAddon(), max_frame_bytes=1000)
    async with (
        upstream(serves(frame("x" * 600, last=False) + frame("x" * 401, 0))) as port,
        mitmproxy(port, served) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.closed() == 1009
        assert await settled(proxy)
        assert served.counts.get(metrics.REJECTED, ("message_too_large",)) == 1
        assert served.counts.get(metrics.STREAMS_CLOSED, ("chat", "ws", "limit")) == 1


class Flows:
    """Keeps the flows that pass, as mitmproxy's own addons see them."""

    def __init__(self) -> None:
        self.flows: list[http.HTTPFlow] = []
        self.most = 0

    def websocket_start(self, flow: http.HTTPFlow) -> None:
        self.flows.append(flow)

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        assert flow.websocket is not None
        self.most = max(self.most, len(flow.websocket.messages))


async def test_a_long_connection_does_not_keep_its_messages():
    flows = Flows()
    burst = b"".join(frame(f"{n}") for n in range(300))
    async with (
        upstream(serves(burst)) as port,
        mitmproxy(port, engine(FakeAddon()), flows, midstream_keep_messages=7) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(300) == [str(n) for n in range(300)]
    assert flows.most == 7


async def test_messages_stay_while_flows_are_saved(tmp_path):
    flows = Flows()
    burst = b"".join(frame(f"{n}") for n in range(150))
    saved = str(tmp_path / "flows")
    async with (
        upstream(serves(burst)) as port,
        mitmproxy(port, engine(FakeAddon()), flows, save_stream_file=saved) as proxy,
        socket_to(proxy.port) as peer,
    ):
        await peer.texts(150)
    assert flows.most == 150


async def test_a_message_passes_as_it_came_when_the_session_fails(monkeypatch, caplog):
    addon = FakeAddon(frame=on_server({b"held": Verdict(hold=True)}))
    served = engine(addon)
    real_open = served.open

    def open_broken(head, route, *, origin):
        session = real_open(head, route, origin=origin)
        receive = session.receive_message

        def receive_message(side, kind, message, now_ns):
            if message == b"bad":
                raise RuntimeError("broken")
            return receive(side, kind, message, now_ns)

        monkeypatch.setattr(session, "receive_message", receive_message)
        return session

    monkeypatch.setattr(served, "open", open_broken)
    async with (
        upstream(serves(frame("held"), frame("bad"), frame("after"))) as port,
        mitmproxy(port, served) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(3) == ["held", "bad", "after"]
    assert "a session failed" in caplog.text


class Changes:
    """Another addon, which edits, drops and injects messages."""

    def __init__(self, **edits: str | None) -> None:
        self.edits = edits

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        assert flow.websocket is not None
        message = flow.websocket.messages[-1]
        if message.text in self.edits:
            edit = self.edits[message.text]
            if edit is None:
                message.drop()
            else:
                message.text = edit


async def test_another_addon_may_edit_and_drop_messages():
    other = Changes(edit="é" * 5000, drop=None)
    async with (
        upstream(serves(frame("edit") + frame("drop") + frame("keep"))) as port,
        mitmproxy(port, engine(FakeAddon()), other) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(2) == ["é" * 5000, "keep"]


async def test_a_message_that_someone_injects_passes_unread():
    addon = FakeAddon()

    class Injects:
        def websocket_message(self, flow: http.HTTPFlow) -> None:
            from mitmproxy import ctx

            assert flow.websocket is not None
            if not flow.websocket.messages[-1].injected:
                ctx.master.commands.call("inject.websocket", flow, True, b"injected", True)

    async with (
        upstream(serves(frame("first"))) as port,
        mitmproxy(port, engine(addon), Injects()) as proxy,
        socket_to(proxy.port) as peer,
    ):
        assert await peer.texts(2) == ["first", "injected"]
    assert [f.wire for f in frames(addon)] == [b"first"]


async def test_a_refused_upgrade_passes():
    async def refuse(peer: Peer) -> None:
        await peer.read_head()
        await peer.respond(b"no", "Content-Length: 2", status=403)

    async with (
        upstream(refuse) as port,
        mitmproxy(port, engine(FakeAddon())) as proxy,
    ):
        with pytest.raises(AssertionError):
            async with socket_to(proxy.port):
                pass
        assert await settled(proxy)
        assert proxy.engine.counts.get(metrics.REQUESTS, ("chat", "http", "4xx")) == 1


async def test_mitmproxy_ends_with_no_flow_and_no_layer_left_behind():
    from mitmproxy.proxy.layers import websocket as stock

    from midstream.hosts import mitm_websocket

    addon = FakeAddon()
    async with (
        upstream(serves(frame("s"))) as port,
        mitmproxy(port, engine(addon)) as proxy,
        socket_to(proxy.port) as peer,
    ):
        await peer.texts(1)
        assert mitm_websocket.RELAYS
        assert stock.WebsocketLayer is mitm_websocket.RelayLayer
        proxy.addon.done()
        assert proxy.addon.underway == 0
    assert not mitm_websocket.RELAYS
    assert stock.WebsocketLayer is not mitm_websocket.RelayLayer
    assert addon.called("close") == [Ending.ABORTED]
