"""Request and response bodies through mitmproxy: what is read whole, what streams."""

import asyncio
import gzip
import zlib

import pytest
from tests.hosts.mitm_master import Peer, client, engine, frames, mitmproxy, settled, upstream
from tests.support import FakeAddon

from midstream.core import metrics
from midstream.core.addon import KEEP, Ending, Verdict
from midstream.core.frames import Frame, Kind, Side

JSON = "Content-Type: application/json"
ANSWER = b'{"a": 1}'


class Upstream:
    """Takes one request after the other, keeps it, and answers."""

    def __init__(self, *answer: bytes | str) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.answer = answer or (ANSWER, JSON, f"Content-Length: {len(ANSWER)}")

    async def __call__(self, peer: Peer) -> None:
        while True:
            try:
                head = (await peer.read_head()).decode()
            except asyncio.IncompleteReadError:
                return
            self.heads.append(head)
            lines = (line.partition(": ") for line in head.split("\r\n"))
            headers = {name.lower(): value for name, _, value in lines}
            if "transfer-encoding" in headers:
                self.bodies.append(await peer.chunks())
            else:
                self.bodies.append(await peer.read(int(headers.get("content-length", "0"))))
            body, *more = self.answer
            assert isinstance(body, bytes)
            await peer.respond(body, *[str(line) for line in more])


def post(body: bytes, *headers: str, target: str = "/chat") -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: proxy", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def swaps(side: Side, body: bytes) -> FakeAddon:
    """Return an addon that puts another body in the place of what a side sends."""
    swap = Verdict.replace("swap", Frame(side, Kind.BODY, body))
    return FakeAddon(frame=lambda frame, _: swap if frame.sender is side else KEEP)


async def test_bodies_that_are_read_and_not_changed_keep_every_byte():
    served, addon = Upstream(), FakeAddon()
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        for _ in range(2):
            await peer.send(post(b'{ "q":1.50 }', JSON))
            assert b"Content-Length: 8" in await peer.read_head()
            assert await peer.read(8) == ANSWER
        assert await settled(proxy)
        assert proxy.engine.counts.get(metrics.REQUESTS, ("chat", "http", "2xx")) == 2
    assert served.bodies == [b'{ "q":1.50 }'] * 2
    assert [f.wire for f in frames(addon)] == [b'{ "q":1.50 }', ANSWER] * 2
    assert addon.called("close") == [Ending.COMPLETE] * 2


async def test_an_edited_request_has_its_own_length():
    served = Upstream()
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(swaps(Side.CLIENT, b"longer than before"))) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"short", JSON, "Content-MD5: x"))
        await peer.read_head()
        assert await peer.read(8) == ANSWER
    assert served.bodies == [b"longer than before"]
    assert "content-md5" not in served.heads[0].lower()


async def test_an_edited_response_has_its_own_length():
    async with (
        upstream(Upstream()) as port,
        mitmproxy(port, engine(swaps(Side.SERVER, b'{"a": 22}'))) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"{}"))
        assert b"Content-Length: 9" in await peer.read_head()
        assert await peer.read(9) == b'{"a": 22}'


async def test_a_chunked_request_is_edited_and_stays_chunked():
    served = Upstream()
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(swaps(Side.CLIENT, b"longer than before"))) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(b"POST /chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        await peer.send_chunks(b"sh", b"ort")
        await peer.read_head()
        assert await peer.read(8) == ANSWER
        assert await settled(proxy)
    assert served.bodies == [b"longer than before"]


async def test_a_chunked_response_is_edited_and_stays_chunked():
    answer = b'4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n'
    async with (
        upstream(Upstream(answer, JSON, "Transfer-Encoding: chunked")) as port,
        mitmproxy(port, engine(swaps(Side.SERVER, b'{"a": 22}'))) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"{}"))
        await peer.read_head()
        assert await peer.chunks() == b'{"a": 22}'


@pytest.mark.parametrize(
    ("coding", "code", "uncode"),
    [("gzip", gzip.compress, gzip.decompress), ("deflate", zlib.compress, zlib.decompress)],
)
async def test_compressed_bodies_are_read_and_stay_compressed(coding, code, uncode):
    body, served = code(ANSWER), Upstream()
    served.answer = (body, JSON, f"Content-Encoding: {coding}", f"Content-Length: {len(body)}")
    addon = swaps(Side.SERVER, b'{"a": 22}')
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(addon)) as proxy,
        client(proxy.port) as peer,
    ):
        sent = code(b'{"q": 1}')
        await peer.send(post(sent, f"Content-Encoding: {coding}"))
        head = (await peer.read_head()).decode()
        size = int(head.partition("Content-Length: ")[2].partition("\r\n")[0])
        assert uncode(await peer.read(size)) == b'{"a": 22}'
        assert f"Content-Encoding: {coding}" in head
    assert served.bodies == [sent]
    assert [f.wire for f in frames(addon)] == [b'{"q": 1}', ANSWER]


async def test_a_body_that_cannot_be_inflated_passes_and_is_counted():
    served, sent = Upstream(), gzip.compress(b"x" * 99)[:-9]
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(FakeAddon())) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(sent, "Content-Encoding: gzip"))
        await peer.read_head()
        assert proxy.engine.counts.get(metrics.SKIPPED, ("fake", "bad_encoding")) == 1
    assert served.bodies == [sent]


async def test_a_body_that_inflates_over_the_limit_passes_and_is_counted():
    served, sent = Upstream(), gzip.compress(b"x" * 100_000)
    addon = FakeAddon()
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(addon, max_frame_bytes=5000)) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(sent, "Content-Encoding: gzip"))
        await peer.read_head()
        assert await peer.read(8) == ANSWER
        assert proxy.engine.counts.get(metrics.SKIPPED, ("fake", "too_large")) == 1
    assert served.bodies == [sent]
    assert [f.sender for f in frames(addon)] == [Side.SERVER]


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_over_the_limit_passes_as_it_came_and_is_counted(is_chunked):
    served, body = Upstream(), bytes(range(256)) * 40
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(swaps(Side.CLIENT, b""), max_frame_bytes=5000)) as proxy,
        client(proxy.port) as peer,
    ):
        if is_chunked:
            await peer.send(b"POST /chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            await peer.send_chunks(body[:3000], body[3000:6000], body[6000:])
        else:
            await peer.send(post(body))
        await peer.read_head()
        assert await peer.read(8) == ANSWER
        assert proxy.engine.counts.get(metrics.SKIPPED, ("fake", "too_large")) == 1
    assert served.bodies == [body]


async def test_a_large_request_that_nobody_reads_streams():
    begun = asyncio.Event()
    body = b"x" * (2 << 20)

    async def handler(peer: Peer) -> None:
        await peer.read_head()
        assert await peer.read(10) == b"x" * 10
        begun.set()
        assert len(await peer.read(len(body) - 10)) == len(body) - 10
        await peer.respond(b"ok", "Content-Length: 2")

    async with (
        upstream(handler) as port,
        mitmproxy(port, engine()) as proxy,
        client(proxy.port) as peer,
    ):
        whole = post(body, target="/other")
        await peer.send(whole[:200_000])
        await asyncio.wait_for(begun.wait(), 10)
        await peer.send(whole[200_000:])
        await peer.read_head()
        assert await peer.read(2) == b"ok"
        assert await settled(proxy)
        labels = ("chat", "http", "client")
        assert proxy.engine.counts.get(metrics.FRAME_BYTES, labels) == len(body)


async def test_a_path_without_a_route_passes_and_streams():
    served = engine(FakeAddon())
    served.routes = ()

    async def handler(peer: Peer) -> None:
        await peer.read_head()
        await peer.respond(b"", "Transfer-Encoding: chunked")
        await peer.send_chunks(b"one", end=False)
        await peer.rest()

    async with (
        upstream(handler) as port,
        mitmproxy(port, served) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(b"GET /chat HTTP/1.1\r\nHost: x\r\n\r\n")
        await peer.read_head()
        assert await peer.chunk() == b"one"
        assert proxy.addon.underway == 0


async def test_an_upstream_that_is_not_there_is_counted():
    async def nothing(peer: Peer) -> None:
        await peer.rest()

    async with upstream(nothing) as port:
        pass
    async with (
        mitmproxy(port, engine(FakeAddon()), connection_strategy="lazy") as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"{}"))
        assert (await peer.read_head()).startswith(b"HTTP/1.1 502")
        assert await settled(proxy)
        assert proxy.engine.counts.get(metrics.UPSTREAM_ERRORS, ("chat", "connect")) == 1
        assert proxy.engine.counts.get(metrics.REQUESTS, ("chat", "http", "5xx")) == 1


async def test_conversations_of_two_upstreams_are_never_one():
    served = engine(FakeAddon())
    async with (
        upstream(Upstream()) as one,
        upstream(Upstream()) as two,
        mitmproxy(0, served, mode="regular") as proxy,
        client(proxy.port) as peer,
    ):
        for port in (one, one, two):
            await peer.send(post(b"{}", target=f"http://127.0.0.1:{port}/chat"))
            await peer.read_head()
            await peer.read(8)
        assert await settled(proxy)
    assert len(served.conversations) == 2


async def test_what_is_over_stream_large_bodies_passes_unread_and_is_counted():
    served = Upstream()
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(swaps(Side.CLIENT, b"edited")), stream_large_bodies="4") as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"123"))
        await peer.read_head()
        await peer.read(8)
        await peer.send(post(b"123456"))
        await peer.read_head()
        await peer.read(8)
        assert proxy.engine.counts.get(metrics.SKIPPED, ("fake", "too_large")) >= 1
    assert served.bodies == [b"edited", b"123456"]


async def test_an_answer_of_another_addon_passes_and_ends_the_exchange():
    from mitmproxy import http

    class Answers:
        def request(self, flow: http.HTTPFlow) -> None:
            flow.response = http.Response.make(200, b"made here")

    addon = swaps(Side.SERVER, b"edited")
    async with (
        mitmproxy(9, engine(addon), Answers(), connection_strategy="lazy") as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"{}"))
        await peer.read_head()
        assert await peer.read(9) == b"made here"
        assert await settled(proxy)
    assert addon.called("close") == [Ending.COMPLETE]


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_streaming_callable_of_another_addon_is_left_alone(is_first):
    from mitmproxy import http

    class Streams:
        def requestheaders(self, flow: http.HTTPFlow) -> None:
            flow.request.stream = lambda data: data.upper()

        def responseheaders(self, flow: http.HTTPFlow) -> None:
            assert flow.response is not None
            flow.response.stream = lambda data: data.upper()

    served, addon, other = Upstream(), FakeAddon(), Streams()
    others, before = ((), other) if is_first else ((other,), None)
    async with (
        upstream(served) as port,
        mitmproxy(port, engine(addon), *others, before=before) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"abc"))
        await peer.read_head()
        assert await peer.read(8) == ANSWER.upper()
        assert await settled(proxy)
    assert served.bodies == [b"ABC"]


async def test_a_flow_goes_on_when_a_hook_fails(monkeypatch, caplog):
    served, target = engine(FakeAddon()), Upstream()

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(served, "open", fail)
    async with (
        upstream(target) as port,
        mitmproxy(port, served) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"abc"))
        await peer.read_head()
        assert await peer.read(8) == ANSWER
    assert target.bodies == [b"abc"]
    assert "the requestheaders hook failed" in caplog.text


@pytest.mark.parametrize("method", ["respond", "receive", "end", "abort"])
async def test_bodies_pass_when_the_session_fails_anywhere(method, monkeypatch, caplog):
    served, target = engine(FakeAddon()), Upstream()
    real_open = served.open

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    def open_broken(head, route, *, origin):
        session = real_open(head, route, origin=origin)
        monkeypatch.setattr(session, method, fail)
        if method == "abort":
            monkeypatch.setattr(session, "receive", fail)
        return session

    monkeypatch.setattr(served, "open", open_broken)
    async with (
        upstream(target) as port,
        mitmproxy(port, served) as proxy,
        client(proxy.port) as peer,
    ):
        await peer.send(post(b"abc"))
        await peer.read_head()
        assert await peer.read(8) == ANSWER
        assert await settled(proxy)
    assert target.bodies == [b"abc"]
    assert "a session failed" in caplog.text
