"""Event streams through mitmproxy: chunks, ends, and what a stream survives."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest
from tests.hosts.mitm_master import Peer, client, engine, mitmproxy, settled, upstream
from tests.support import FakeAddon, sse

from midstream.core import metrics
from midstream.core.addon import KEEP, Ending, Fetch, Verdict
from midstream.core.frames import Frame, Side

GET = b"GET /chat/stream HTTP/1.1\r\nHost: proxy\r\nAccept-Encoding: gzip, br\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked"
EVENTS = "Content-Type: text/event-stream"
STREAM = b": hi\n\ndata: one\r\n\r\nevent: x\ndata: t\xc3\xa9xt\ndata: two\n\nid: 7\ndata: half"


def streams(*pieces: bytes, then: Callable[[Peer], Awaitable[None]] | None = None):
    """Return an upstream that answers with a chunked event stream."""

    async def handler(peer: Peer) -> None:
        await peer.read_head()
        await peer.respond(b"", EVENTS, CHUNKED)
        await peer.send_chunks(*pieces, end=then is None)
        if then is not None:
            await then(peer)

    return handler


def on_payload(verdicts: dict[bytes, Verdict]) -> Callable[[Frame, object], Verdict]:
    return lambda frame, _: verdicts.get(frame.payload, KEEP)


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_an_untouched_stream_leaves_byte_for_byte_however_it_is_cut(size):
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    addon = FakeAddon()
    async with (
        upstream(streams(*pieces)) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunks() == STREAM
        assert await settled(proxy)
        assert proxy.engine.counts.get(metrics.FRAMES, ("chat", "sse", "server")) == 4
    assert len(addon.called("frame")) == 4
    assert addon.called("close") == [Ending.COMPLETE]


async def test_events_leave_at_once_and_a_dropped_one_does_not_end_the_stream():
    may_end = asyncio.Event()

    async def wait(peer: Peer) -> None:
        await may_end.wait()
        await peer.send_chunks(b"data: last\n\n")

    addon = FakeAddon(frame=on_payload({b"cut": Verdict.drop("cut")}))
    served = streams(b"data: first\n\n", b"data: cut\n\n", b"data: sec", b"ond\n\n", then=wait)
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunk() == b"data: first\n\n"
        assert await peer.chunk() == b"data: second\n\n"
        may_end.set()
        assert await peer.chunks() == b"data: last\n\n"


async def test_one_event_becomes_several():
    swap = Verdict.replace("swap", sse("a"), sse("b"))
    addon = FakeAddon(frame=on_payload({b"s": swap}))
    async with (
        upstream(streams(b"data: s\n\ndata: t\n\n")) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunks() == b"data: a\n\ndata: b\n\ndata: t\n\n"


async def test_a_stream_with_a_length_may_grow_and_the_connection_lives_on():
    async def handler(peer: Peer) -> None:
        for _ in range(2):
            await peer.read_head()
            await peer.respond(b"data: s\n\n", EVENTS, "Content-Length: 9", "Digest: x")

    addon = FakeAddon(frame=on_payload({b"s": Verdict.replace("swap", sse("long" * 99))}))
    async with (
        upstream(handler) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        for _ in range(2):
            await peer.send(GET)
            head = (await peer.read_head()).lower()
            assert b"content-length" not in head
            assert b"digest" not in head
            assert await peer.chunks() == b"data: " + b"long" * 99 + b"\n\n"


async def test_a_stream_that_nobody_reads_keeps_its_length_and_its_coding():
    heads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        heads.append(await peer.read_head())
        await peer.respond(b"data: s\n\n", EVENTS, "Content-Length: 9")

    async with (
        upstream(handler) as port,
        mitmproxy(port, engine()) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        assert b"Content-Length: 9" in await peer.read_head()
        assert await peer.read(9) == b"data: s\n\n"
    assert b"Accept-Encoding: gzip, br" in heads[0]


async def test_what_is_read_is_asked_for_uncompressed_and_passes_unread_if_it_is_not():
    heads: list[bytes] = []
    coded = gzip.compress(STREAM)

    async def handler(peer: Peer) -> None:
        heads.append(await peer.read_head())
        await peer.respond(b"", EVENTS, CHUNKED, "Content-Encoding: gzip")
        await peer.send_chunks(coded[:20], coded[20:])

    addon = FakeAddon()
    async with (
        upstream(handler) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        assert b"Content-Encoding: gzip" in await peer.read_head()
        assert await peer.chunks() == coded
        assert proxy.engine.counts.get(metrics.SKIPPED, ("fake", "bad_encoding")) == 1
    assert b"accept-encoding" not in heads[0].lower()
    assert addon.called("frame") == []


async def test_held_events_leave_at_the_end_of_the_stream():
    addon = FakeAddon(frame=on_payload({b"h": Verdict(hold=True)}))
    async with (
        upstream(streams(b"data: a\n\ndata: h\n\n", b"data: h")) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunks() == b"data: a\n\ndata: h\n\ndata: h"


async def test_what_an_answer_makes_leaves_with_the_next_chunk():
    answered = asyncio.Event()

    async def handler(peer: Peer) -> None:
        if b"GET /chat/more" in await peer.read_head():
            await peer.respond(b"[]", "Content-Length: 2")
            return
        await peer.respond(b"", EVENTS, CHUNKED)
        await peer.send_chunks(b"data: ask\n\n", end=False)
        await answered.wait()
        await peer.send_chunks(b"data: next\n\n")

    def answer(_ask: object, answer: object, _ctx: object) -> Verdict:
        answered.set()
        return Verdict.replace("swap", sse("answer"))

    asks = Verdict.keep(asks=(Fetch("/chat/more"),))
    addon = FakeAddon(frame=on_payload({b"ask": asks}), answer=answer)
    async with (
        upstream(handler) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunks() == b"data: ask\n\ndata: answer\n\ndata: next\n\n"


async def test_a_client_that_leaves_ends_the_exchange_as_aborted():
    async def wait(peer: Peer) -> None:
        assert await peer.rest() == b""

    addon = FakeAddon()
    async with (
        upstream(streams(b"data: a\n\n", then=wait)) as port,
        mitmproxy(port, engine(addon)) as proxy,
    ):
        async with client(proxy.port) as peer:
            await peer.send(GET)
            await peer.read_head()
            assert await peer.chunk() == b"data: a\n\n"
        assert await settled(proxy)
        closed = proxy.engine.counts.get(metrics.STREAMS_CLOSED, ("chat", "sse", "client_gone"))
        assert closed == 1
        assert proxy.engine.counts.get(metrics.STREAMS_ACTIVE, ("chat", "sse")) == 0
    assert addon.called("close") == [Ending.ABORTED]


async def test_an_upstream_that_breaks_off_leaves_the_stream_broken():
    async def abort(peer: Peer) -> None:
        peer.writer.transport.abort()

    addon = FakeAddon()
    async with (
        upstream(streams(b"data: a\n\n", b"data: b\n", then=abort)) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        rest = await peer.rest()
        assert rest.startswith(b"9\r\ndata: a\n\n")
        assert not rest.endswith(b"0\r\n\r\n")
        assert await settled(proxy)
        counts = proxy.engine.counts
        assert counts.get(metrics.STREAMS_CLOSED, ("chat", "sse", "upstream_error")) == 1
        assert counts.get(metrics.UPSTREAM_ERRORS, ("chat", "broken")) == 1
    assert addon.called("close") == [Ending.ABORTED]


@pytest.mark.parametrize("bad", [b"data: bad\n\n", b"data: b"])
async def test_a_stream_goes_on_as_it_came_when_the_session_fails(bad, monkeypatch, caplog):
    hold = Verdict(hold=True)
    served = engine(FakeAddon(frame=on_payload({b"held": hold, b"c": hold})))
    real_open = served.open

    def open_broken(head, route, *, origin):
        session = real_open(head, route, origin=origin)
        receive = session.receive

        def receive_or_fail(side: Side, data: bytes, now_ns: int) -> list[Frame]:
            if data == bad:
                raise RuntimeError("broken")
            return receive(side, data, now_ns)

        monkeypatch.setattr(session, "receive", receive_or_fail)
        return session

    monkeypatch.setattr(served, "open", open_broken)
    pieces = [b"data: a\n\nda", b"ta: ", b"held\n\n", b"dat", b"a: c\n\nid: 4\n", bad, b"\n: x\n\n"]
    async with (
        upstream(streams(*pieces)) as port,
        mitmproxy(port, served) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunks() == b"".join(pieces)
        assert await settled(proxy)
    assert "a session failed" in caplog.text


async def test_an_endless_response_that_nobody_reads_streams():
    async def handler(peer: Peer) -> None:
        await peer.read_head()
        await peer.respond(b"", "Content-Type: text/plain", CHUNKED)
        await peer.send_chunks(b"one", end=False)
        await peer.rest()

    async with (
        upstream(handler) as port,
        mitmproxy(port, engine(FakeAddon())) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(GET)
        await peer.read_head()
        assert await peer.chunk() == b"one"
