import asyncio

import pytest
from tests.hosts.gateways import begin, gateway, until
from tests.hosts.upstreams import Visit, connect, open_socket, upstream
from tests.support import FakeAddon

from midstream.config.schema import LimitsTable
from midstream.core import metrics
from midstream.core.addon import Verdict
from midstream.core.frames import Frame
from midstream.hosts.gateway_drain import Drained, Patience

AT_ONCE = LimitsTable(drain_seconds=5)
"""The endless streams end five seconds before the end: at once."""
GET = b"GET /chat HTTP/1.1\r\nHost: a\r\n\r\n"


async def test_endless_events_end_after_a_whole_event_and_cleanly():
    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        await visit.send_chunk(b"data: a\n\ndata: hal")
        await visit.rest()

    async with upstream(behave) as up, gateway(up.url, FakeAddon(), limits=AT_ONCE) as gw:
        async with await connect(gw.port) as client:
            await client.send(GET)
            await client.head()
            assert await client.chunk() == b"data: a\n\n"
            await gw.gateway.drain()
            assert await client.chunk() == b""
            assert await client.rest() == b""
        assert gw.counts.get(metrics.STREAMS_CLOSED, ("chat", "sse", "drained")) == 1


async def test_held_events_leave_before_a_drained_stream_ends():
    def on_frame(_frame: Frame, _ctx: object) -> Verdict:
        return Verdict(hold=True)

    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        await visit.send_chunk(b"data: held\n\n")
        await visit.rest()

    addon = FakeAddon("fake", frame=on_frame)
    async with (
        upstream(behave) as up,
        gateway(up.url, addon, limits=AT_ONCE) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET)
        await client.head()
        await until(lambda: addon.called("frame"))
        await gw.gateway.drain()
        assert await client.chunk() == b"data: held\n\n"
        assert await client.chunk() == b""


async def test_a_finite_response_is_finished():
    go_on = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.begin_chunks("text/plain")
        await visit.send_chunk(b"one")
        await go_on.wait()
        await visit.send_chunk(b"two")
        await visit.send_chunk(b"")

    async with (
        upstream(behave) as up,
        gateway(up.url, limits=AT_ONCE) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET)
        await client.head()
        assert await client.chunk() == b"one"
        draining = begin(gw.gateway.drain())
        await until(lambda: gw.gateway.streams.is_draining)
        assert not draining.done()
        go_on.set()
        assert await client.chunk() == b"two"
        assert await client.chunk() == b""
        assert await client.rest() == b""
        await draining


async def test_an_upload_that_is_under_way_is_finished():
    async def behave(visit: Visit) -> None:
        await visit.respond(body=await visit.body(visit.request))

    async with (
        upstream(behave) as up,
        gateway(up.url, limits=AT_ONCE) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
        await until(lambda: up.requests)
        draining = begin(gw.gateway.drain())
        await until(lambda: gw.gateway.streams.is_draining)
        await client.send(b"def")
        head = await client.head()
        assert await client.body(head) == b"abcdef"
        assert head.get("connection") == "close"
        await draining


async def test_both_sides_of_a_websocket_are_told_1001():
    arrived: list[Visit] = []

    async def behave(visit: Visit) -> None:
        await visit.accept()
        arrived.append(visit)
        await asyncio.sleep(60)

    async with upstream(behave) as up, gateway(up.url, FakeAddon(), limits=AT_ONCE) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            await until(lambda: arrived)
            draining = begin(gw.gateway.drain())
            assert await client.close_code() == (1001, "")
            assert await arrived[0].close_code() == (1001, "")
            await client.send_close(1001)
            await arrived[0].send_close(1001)
            await draining
        assert gw.counts.get(metrics.STREAMS_CLOSED, ("chat", "ws", "drained")) == 1


async def test_a_held_message_leaves_before_a_drained_websocket_closes():
    addon = FakeAddon("fake", frame=Verdict(hold=True))

    async def behave(visit: Visit) -> None:
        await visit.accept()
        await visit.send_text("held")
        await visit.rest()

    async with upstream(behave) as up, gateway(up.url, addon, limits=AT_ONCE) as gw:
        client, _ = await open_socket(gw.port, "/chat")
        async with client:
            await until(lambda: addon.called("frame"))
            draining = begin(gw.gateway.drain())
            assert await client.text() == "held"
            assert await client.close_code() == (1001, "")
            await client.send_close(1001)
            await draining


async def test_a_websocket_whose_sides_do_not_answer_ends_all_the_same(monkeypatch):
    monkeypatch.setattr("midstream.hosts.gateway_pair.DRAIN_SECONDS", 0.05)
    monkeypatch.setattr("midstream.hosts.gateway_sockets.LINGER_SECONDS", 0.05)

    async def behave(visit: Visit) -> None:
        await visit.accept()
        await asyncio.sleep(60)

    async with upstream(behave) as up, gateway(up.url, limits=AT_ONCE) as gw:
        client, _ = await open_socket(gw.port)
        async with client:
            await gw.gateway.drain()
            assert not gw.gateway.streams.open
            assert await client.close_code() == (1001, "")
            assert await client.rest() == b""


async def test_a_websocket_whose_client_never_reads_ends_all_the_same(monkeypatch):
    monkeypatch.setattr("midstream.hosts.gateway_pair.DRAIN_SECONDS", 0.05)
    monkeypatch.setattr("midstream.hosts.gateway_sockets.LINGER_SECONDS", 0.05)

    async def behave(visit: Visit) -> None:
        await visit.accept()
        for _ in range(200):
            await visit.send_frame(2, bytes(1 << 19))

    async with upstream(behave) as up, gateway(up.url, limits=AT_ONCE) as gw:
        client, _ = await open_socket(gw.port)
        await asyncio.sleep(0.5)
        await gw.gateway.drain()
        assert not gw.gateway.streams.open
        client.abort()


async def test_what_is_left_at_the_end_of_the_time_is_cut():
    async def behave(visit: Visit) -> None:
        await visit.begin_chunks("text/plain")
        await visit.send_chunk(b"one")
        await visit.rest()

    limits = LimitsTable(drain_seconds=0.05)
    async with (
        upstream(behave) as up,
        gateway(up.url, limits=limits) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET)
        await client.head()
        await client.chunk()
        await gw.gateway.drain()
        await gw.gateway.close()
        assert await client.rest() == b""


async def test_nobody_is_let_in_any_more_and_idle_connections_end():
    async def behave(visit: Visit) -> None:
        await visit.respond()

    async with upstream(behave) as up, gateway(up.url, limits=AT_ONCE) as gw:
        async with await connect(gw.port) as idle:
            await idle.send(GET)
            await idle.body(await idle.head())
            await gw.gateway.drain()
            assert await idle.rest() == b""
        with pytest.raises(ConnectionError):
            await connect(gw.port)


async def test_a_request_behind_another_is_told_that_the_proxy_stops():
    go_on = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await go_on.wait()
        await visit.respond(body=b"x")

    async with (
        upstream(behave) as up,
        gateway(up.url, limits=AT_ONCE) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET)
        await until(lambda: up.requests)
        draining = begin(gw.gateway.drain())
        await until(lambda: gw.gateway.streams.is_draining)
        go_on.set()
        head = await client.head()
        assert head.get("connection") == "close"
        assert await client.body(head) == b"x"
        await draining
        assert len(up.requests) == 1


# --- patience -------------------------------------------------------------------------------------


async def test_patience_ends_work_where_it_waits():
    patience = Patience()
    waiting = begin(patience.last(asyncio.sleep(60)))
    await asyncio.sleep(0)
    patience.end()
    patience.end()
    with pytest.raises(Drained):
        await waiting


async def test_patience_that_has_ended_lets_no_work_begin_to_wait():
    patience = Patience()
    patience.end()
    with pytest.raises(Drained):
        await patience.last(asyncio.sleep(60))


async def test_patience_does_not_hide_what_the_work_raises():
    async def late() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await Patience().last(late())


async def test_patience_may_end_when_the_work_is_done():
    patience = Patience()
    await patience.last(asyncio.sleep(0))
    patience.end()
