import asyncio
import gzip
import zlib

import pytest
from tests.hosts.gateways import gateway, until
from tests.hosts.upstreams import Visit, Wire, connect, upstream
from tests.support import FakeAddon, Seen, sse

from midstream.config.schema import LimitsTable
from midstream.core import metrics
from midstream.core.addon import Answer, Context, Fetch, Mode, Verdict, Wait
from midstream.core.frames import Frame, Side

MIB = 1 << 20
GET_CHAT = b"GET /chat HTTP/1.1\r\nHost: chat.test\r\nCookie: a=1\r\n\r\n"
GET_OTHER = b"GET /other HTTP/1.1\r\nHost: chat.test\r\n\r\n"


def events(*pieces: bytes, end: bool = True):
    """Return an upstream that streams pieces of an event stream, one chunk each."""

    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        for piece in pieces:
            await visit.send_chunk(piece)
            await asyncio.sleep(0.01)
        if end:
            await visit.send_chunk(b"")
        else:
            visit.abort()

    return behave


def swap(old: bytes, new: bytes, **verdict: object) -> FakeAddon:
    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        if old not in frame.wire:
            return Verdict.keep()
        return Verdict.replace("swap", frame.with_payload(frame.payload.replace(old, new)))

    return FakeAddon("fake", frame=on_frame)


async def stream_of(client: Wire) -> bytes:
    await client.send(GET_CHAT)
    return await client.body(await client.head())


async def test_events_pass_as_they_came_however_they_are_cut():
    stream = b"data: a\n\n: ping\n\ndata: b\r\n\r\nid: 1\rdata: c\r\r"
    pieces = [stream[i : i + 3] for i in range(0, len(stream), 3)]
    async with upstream(events(*pieces)) as up, gateway(up.url, FakeAddon()) as gw:
        async with await connect(gw.port) as client:
            assert await stream_of(client) == stream
        assert gw.counts.get(metrics.FRAMES, ("chat", "sse", "server")) == 4


async def test_an_event_is_handed_on_before_the_next_one_comes():
    go_on = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        await visit.send_chunk(b"data: a\n\n")
        await go_on.wait()
        await visit.send_chunk(b"data: b\n\n")
        await visit.send_chunk(b"")

    async with (
        upstream(behave) as up,
        gateway(up.url, FakeAddon()) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        await client.head()
        assert await client.chunk() == b"data: a\n\n"
        go_on.set()
        assert await client.chunk() == b"data: b\n\n"
        assert await client.chunk() == b""


async def test_an_event_is_mended_and_its_siblings_are_not():
    async with (
        upstream(events(b"data: a cat\n\ndata:  x \n\n")) as up,
        gateway(up.url, swap(b"cat", b"dog")) as gw,
        await connect(gw.port) as client,
    ):
        assert await stream_of(client) == b"data: a dog\n\ndata:  x \n\n"
        assert gw.counts.get(metrics.REPAIRS, ("chat", "fake", "swap", "repair")) == 1


async def test_an_event_stream_of_known_length_loses_it_where_it_is_read():
    async def behave(visit: Visit) -> None:
        headers = [("Content-Type", "text/event-stream")]
        await visit.respond(headers=headers, body=b"data: cat\n\n")

    async with (
        upstream(behave) as up,
        gateway(up.url, swap(b"cat", b"horse")) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        head = await client.head()
        assert head.all("content-length") == []
        assert await client.body(head) == b"data: horse\n\n"
        await client.send(GET_OTHER)
        head = await client.head()
        assert head.all("content-length") == ["11"]
        assert await client.body(head) == b"data: cat\n\n"


async def test_streams_are_counted_while_they_are_open_and_when_they_close():
    async with upstream(events(b"data: a\n\n")) as up, gateway(up.url) as gw:
        async with await connect(gw.port) as client:
            await stream_of(client)
        await gw.streams_closed()
        labels = ("chat", "sse")
        assert gw.counts.get(metrics.STREAMS_OPENED, labels) == 1
        assert gw.counts.get(metrics.STREAMS_ACTIVE, labels) == 0
        assert gw.counts.get(metrics.STREAMS_CLOSED, (*labels, "completed")) == 1
        assert gw.counts.get(metrics.REQUESTS, (*labels, "2xx")) == 1
        assert gw.counts.get(metrics.REQUESTS, ("chat", "http", "2xx")) == 0
        counted, seconds = gw.counts.histograms["midstream_stream_duration_seconds", labels]
        assert sum(counted) == 1
        assert seconds[0] > 0


async def test_a_stream_that_breaks_off_is_not_ended_and_loses_no_byte():
    pieces = (b"data: a\n\n", b"data: hal")
    async with upstream(events(*pieces, end=False)) as up, gateway(up.url, FakeAddon()) as gw:
        async with await connect(gw.port) as client:
            await client.send(GET_CHAT)
            await client.head()
            assert await client.chunk() == b"data: a\n\n"
            assert await client.chunk() == b"data: hal"
            assert await client.rest() == b""
        await gw.streams_closed()
        closed = metrics.STREAMS_CLOSED
        assert gw.counts.get(closed, ("chat", "sse", "upstream_error")) == 1


async def test_a_client_that_leaves_ends_the_stream_at_the_upstream():
    left = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        await visit.send_chunk(b"data: a\n\n")
        await visit.rest()
        left.set()

    async with upstream(behave) as up, gateway(up.url, FakeAddon()) as gw:
        client = await connect(gw.port)
        await client.send(GET_CHAT)
        await client.head()
        await client.chunk()
        await client.aclose()
        async with asyncio.timeout(10):
            await left.wait()
        await gw.streams_closed()
        assert gw.counts.get(metrics.STREAMS_CLOSED, ("chat", "sse", "client_gone")) == 1


async def test_a_slow_client_slows_the_upstream():
    pushed = 0

    async def behave(visit: Visit) -> None:
        nonlocal pushed
        await visit.begin_chunks()
        event = b"data: %s\n\n" % (b"x" * (MIB // 2))
        for _ in range(400):
            await visit.send_chunk(event)
            pushed += len(event)

    async with upstream(behave) as up, gateway(up.url, FakeAddon()) as gw:
        client = await connect(gw.port)
        await client.send(GET_CHAT)
        await client.head()
        seen = -1
        while seen != pushed:
            seen = pushed
            await asyncio.sleep(0.3)
        assert 0 < pushed < 64 * MIB
        client.abort()


async def test_an_event_over_the_limit_streams_on_unmended():
    small = LimitsTable(max_frame_bytes=100)
    large = b"data: " + b"cat" * 100 + b"\n\n"
    pieces = [b"data: cat\n\n", large[:50], large[50:200], large[200:]]
    async with (
        upstream(events(*pieces)) as up,
        gateway(up.url, swap(b"cat", b"dog"), limits=small) as gw,
        await connect(gw.port) as client,
    ):
        assert await stream_of(client) == b"data: dog\n\n" + large
        assert gw.counts.get(metrics.SKIPPED, ("fake", "too_large")) == 1


# --- content codings ------------------------------------------------------------------------------


def coded_events(coding: str, *pieces: bytes):
    async def behave(visit: Visit) -> None:
        headers = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
        await visit.begin("200 OK", [*headers, ("Content-Encoding", coding)])
        for piece in pieces:
            await visit.send_chunk(piece)
            await asyncio.sleep(0.02)
        await visit.send_chunk(b"")

    return behave


def gzipped(*pieces: bytes) -> list[bytes]:
    packer = zlib.compressobj(wbits=31)
    packed = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
    return [*packed, packer.flush()]


async def test_coded_events_that_are_read_leave_uncoded():
    pieces = gzipped(b"data: cat\n\n", b"data: x\n\n")
    async with (
        upstream(coded_events("gzip", *pieces)) as up,
        gateway(up.url, swap(b"cat", b"dog")) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        head = await client.head()
        assert head.all("content-encoding") == []
        assert await client.body(head) == b"data: dog\n\ndata: x\n\n"


async def test_coded_events_that_nobody_reads_leave_as_they_came_and_are_counted():
    pieces = gzipped(b"data: cat\n\n", b"data: x\n\n")
    async with upstream(coded_events("gzip", *pieces)) as up, gateway(up.url) as gw:
        async with await connect(gw.port) as client:
            await client.send(GET_CHAT)
            head = await client.head()
            assert head.all("content-encoding") == ["gzip"]
            assert await client.body(head) == b"".join(pieces)
        assert gw.counts.get(metrics.FRAMES, ("chat", "sse", "server")) == 2
        assert gw.counts.get(metrics.FRAME_BYTES, ("chat", "sse", "server")) == 20


@pytest.mark.parametrize("addons", [(), (FakeAddon(),)])
async def test_events_in_a_coding_of_nobodys_pass_at_once_and_as_they_came(addons):
    more = asyncio.Event()

    async def behave(visit: Visit) -> None:
        headers = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
        await visit.begin("200 OK", [*headers, ("Content-Encoding", "rot13")])
        await visit.send_chunk(b"qngn")
        await more.wait()
        await visit.send_chunk(b"")

    async with (
        upstream(behave) as up,
        gateway(up.url, *addons) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        head = await client.head()
        assert head.all("content-encoding") == ["rot13"]
        assert await client.chunk() == b"qngn"
        more.set()
        assert await client.chunk() == b""


async def test_coded_events_that_cannot_be_decoded_break_off_where_they_are_read():
    good = gzipped(b"data: a\n\n")[0]
    async with (
        upstream(coded_events("gzip", good, b"garbage" * 9)) as up,
        gateway(up.url, FakeAddon()) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        await client.head()
        assert await client.chunk() == b"data: a\n\n"
        assert await client.rest() == b""


async def test_coded_events_that_cannot_be_decoded_pass_where_nobody_reads_them():
    pieces = [gzipped(b"data: a\n\n")[0], b"garbage" * 9]
    async with (
        upstream(coded_events("gzip", *pieces)) as up,
        gateway(up.url) as gw,
        await connect(gw.port) as client,
    ):
        assert await stream_of(client) == b"".join(pieces)


async def test_an_event_stream_that_is_a_bomb_is_read_piece_by_piece():
    bomb = gzip.compress(b": " + b"x" * (32 * MIB) + b"\n\n")
    async with (
        upstream(coded_events("gzip", bomb)) as up,
        gateway(up.url, FakeAddon()) as gw,
        await connect(gw.port) as client,
    ):
        assert len(await stream_of(client)) == 32 * MIB + 4


# --- time and asks --------------------------------------------------------------------------------


async def test_a_held_event_is_released_when_the_addon_is_called_again():
    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        return Verdict(hold=True, asks=(Wait(20),))

    def on_answer(_ask: object, _answer: object, ctx: Context[Seen, Seen]) -> Verdict:
        return Verdict(frames=(*ctx.held, sse("late")), rule="swap", settles=ctx.held)

    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        await visit.send_chunk(b"data: a\n\n")
        await asyncio.sleep(30)

    addon = FakeAddon("fake", frame=on_frame, answer=on_answer)
    async with (
        upstream(behave) as up,
        gateway(up.url, addon) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        await client.head()
        assert await client.chunk() == b"data: a\n\ndata: late\n\n"


async def test_paced_events_leave_in_slices_without_the_servers_doing():
    burst = tuple(sse(str(number)) for number in range(60))

    def on_frame(_frame: Frame, _ctx: object) -> Verdict:
        return Verdict(frames=burst, rule="swap", paced=True)

    async def behave(visit: Visit) -> None:
        await visit.begin_chunks()
        await visit.send_chunk(b"data: go\n\n")
        await asyncio.sleep(30)

    async with (
        upstream(behave) as up,
        gateway(up.url, FakeAddon("fake", frame=on_frame)) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        await client.head()
        got = b""
        slices = 0
        while got.count(b"\n\n") < 60:
            got += await client.chunk()
            slices += 1
        assert got == b"".join(frame.wire for frame in burst)
        assert slices >= 3


async def test_a_fetch_asks_the_same_upstream_with_the_credentials_of_the_exchange():
    async def behave(visit: Visit) -> None:
        if visit.request.target == "/history?x=%2F":
            await visit.respond(body=b"[1]")
            return
        await visit.begin_chunks()
        await visit.send_chunk(b"data: a\n\n")
        await asyncio.sleep(30)

    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        return Verdict.keep(asks=(Fetch("/history?x=%2F"),))

    def on_answer(_ask: object, answer: Answer, _ctx: object) -> Verdict:
        return Verdict(frames=(sse(f"{answer.status} {answer.body!r}"),), rule="swap")

    addon = FakeAddon("fake", frame=on_frame, answer=on_answer)
    async with upstream(behave) as up, gateway(up.url, addon) as gw:
        async with await connect(gw.port) as client:
            await client.send(GET_CHAT)
            await client.head()
            assert await client.chunk() == b"data: a\n\n"
            assert await client.chunk() == b"data: 200 b'[1]'\n\n"
        asked = up.requests[1]
        assert asked.line == "GET /history?x=%2F HTTP/1.1"
        assert asked.get("cookie") == "a=1"
        assert asked.get("accept-encoding") == "identity"
        assert gw.counts.get(metrics.REQUESTS, ("chat", "http", "2xx")) == 0


async def test_a_fetch_that_fails_is_answered_with_status_0():
    async def behave(visit: Visit) -> None:
        if visit.request.target == "/history":
            visit.abort()
            return
        await visit.begin_chunks()
        await visit.send_chunk(b"data: a\n\n")
        await asyncio.sleep(30)

    def on_answer(_ask: object, answer: Answer, _ctx: object) -> Verdict:
        return Verdict(frames=(sse(f"{answer.status}"),), rule="swap")

    def on_frame(_frame: Frame, _ctx: object) -> Verdict:
        return Verdict.keep(asks=(Fetch("/history"),))

    addon = FakeAddon("fake", frame=on_frame, answer=on_answer)
    async with (
        upstream(behave) as up,
        gateway(up.url, addon) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(GET_CHAT)
        await client.head()
        assert await client.chunk() == b"data: a\n\n"
        assert await client.chunk() == b"data: 0\n\n"


async def test_asks_that_are_pending_at_the_end_are_dropped_and_leave_no_task():
    def on_frame(_frame: Frame, _ctx: object) -> Verdict:
        return Verdict.keep(asks=(Wait(60_000), Fetch("/slow")))

    async def behave(visit: Visit) -> None:
        if visit.request.target == "/slow":
            await asyncio.sleep(30)
        await events(b"data: a\n\n")(visit)

    addon = FakeAddon("fake", frame=on_frame)
    async with upstream(behave) as up, gateway(up.url, addon) as gw:
        before = len(asyncio.all_tasks())
        async with await connect(gw.port) as client:
            assert await stream_of(client) == b"data: a\n\n"
        await until(lambda: len(asyncio.all_tasks()) <= before + len(up.requests))
        assert addon.called("answer") == []


async def test_nothing_is_changed_or_asked_in_observe_mode():
    async with (
        upstream(events(b"data: cat\n\n")) as up,
        gateway(up.url, swap(b"cat", b"dog"), mode=Mode.OBSERVE) as gw,
        await connect(gw.port) as client,
    ):
        assert await stream_of(client) == b"data: cat\n\n"
        assert gw.counts.get(metrics.REPAIRS, ("chat", "fake", "swap", "observe")) == 1


async def test_the_time_that_frames_take_in_the_session_is_observed():
    async with upstream(events(b"data: a\n\n")) as up, gateway(up.url, FakeAddon()) as gw:
        async with await connect(gw.port) as client:
            await stream_of(client)
        counted, _ = gw.counts.histograms["midstream_added_latency_seconds", (Side.SERVER.value,)]
        assert sum(counted) == 1
