import asyncio
import contextlib
import gzip
import importlib
import socket
import ssl
import zlib
from collections.abc import Callable

import pytest
from tests.hosts.certificates import Authority
from tests.hosts.gateways import gateway, until
from tests.hosts.upstreams import Head, Visit, connect, upstream
from tests.support import FakeAddon, Seen

from midstream.config.schema import LimitsTable, SecurityTable, TlsTable
from midstream.core import metrics
from midstream.core.addon import KEEP, Context, Verdict
from midstream.core.frames import Frame, Side

MIB = 1 << 20
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


async def echo(visit: Visit) -> None:
    """Answer with the request as it came: head and body."""
    body = await visit.body(visit.request)
    await visit.respond(body=visit.request.raw + body)


async def ask(port: int, raw: bytes) -> tuple[Head, bytes]:
    async with await connect(port) as client:
        await client.send(raw)
        head = await client.head()
        return head, await client.body(head)


def get(target: str = "/", *lines: str) -> bytes:
    headers = "".join(f"{line}\r\n" for line in lines)
    return f"GET {target} HTTP/1.1\r\nHost: chat.test\r\n{headers}\r\n".encode("latin-1")


def swap(old: bytes, new: bytes) -> FakeAddon:
    """Return an addon that replaces bytes wherever it reads them."""

    def on_frame(frame: Frame, _ctx: object) -> Verdict:
        if old not in frame.wire:
            return Verdict.keep()
        changed = Frame(frame.sender, frame.kind, frame.wire.replace(old, new))
        return Verdict.replace("swap", changed)

    return FakeAddon("fake", frame=on_frame)


def remembers(origins: list[str]) -> FakeAddon:
    """Return an addon that notes under which origin each client came."""

    def look(ctx: Context[Seen, Seen]) -> Verdict:
        origins.append(ctx.exchange.origin)
        return KEEP

    return FakeAddon(open=look)


# --- heads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["/a%2Fb", "//a//b", "/a;p=1", "/a+b?c+d=%20+", "/?", "/a?", "/a/../b/./c", "/%zz", "/a?b?c&&=",
     "/a%2fB?%E2%9C%93", "/*", "/a:b@c", "/a?x=http://y/z", "/'\"<>|"],
)  # fmt: skip
async def test_the_request_target_goes_upstream_as_it_came(target):
    async with upstream(echo) as up, gateway(up.url) as gw:
        await ask(gw.port, get(target))
        assert up.requests[0].line == f"GET {target} HTTP/1.1"


async def test_request_headers_keep_order_case_and_repetitions():
    sent = ["Cookie: a=1", "X-B: 1", "x-b: 2", "cookie: b=2", "X-B: 3", "aUTHORization: Bearer x"]
    async with upstream(echo) as up, gateway(up.url) as gw:
        await ask(gw.port, get("/", *sent))
        assert [f"{name}: {value}" for name, value in up.requests[0].headers[1:7]] == sent


async def test_the_host_is_the_upstreams_and_the_clients_is_told():
    async with upstream(echo) as up, gateway(up.url) as gw:
        await ask(gw.port, get())
        told = up.requests[0]
        assert told.all("host") == [f"127.0.0.1:{up.port}"]
        assert told.all("x-forwarded-host") == ["chat.test"]
        assert told.all("x-forwarded-proto") == ["http"]
        assert told.all("x-forwarded-for") == ["127.0.0.1"]


async def test_forwarded_headers_of_a_stranger_are_replaced():
    claims = ["X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: https", "Forwarded: for=9.9.9.9",
              "X-Forwarded-Port: 443"]  # fmt: skip
    async with upstream(echo) as up, gateway(up.url) as gw:
        await ask(gw.port, get("/", *claims))
        told = up.requests[0]
        assert told.all("x-forwarded-for") == ["127.0.0.1"]
        assert told.all("x-forwarded-proto") == ["http"]
        assert told.all("forwarded") == told.all("x-forwarded-port") == []


async def test_forwarded_headers_of_a_trusted_proxy_are_kept_and_extended():
    claims = ["X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: real.test"]
    trusting = SecurityTable(trusted_proxies=("127.0.0.0/8",))
    async with upstream(echo) as up, gateway(up.url, security=trusting) as gw:
        await ask(gw.port, get("/", *claims))
        told = up.requests[0]
        assert told.all("x-forwarded-for") == ["9.9.9.9, 127.0.0.1"]
        assert told.all("x-forwarded-proto") == ["https"]
        assert told.all("x-forwarded-host") == ["real.test"]


CLAIMS = ["X-Forwarded-Proto: https", "X-Forwarded-Host: Real.test:9, b"]
FORWARDED = 'Forwarded: for=9.9.9.9;host="real.test:444";proto=https, host=b'


@pytest.mark.parametrize(
    ("trusted", "lines", "expected"),
    [
        ("10.0.0.0/8", [], "http://Chat.test:81"),
        ("10.0.0.0/8", [*CLAIMS, FORWARDED], "http://Chat.test:81"),
        ("127.0.0.1", [], "http://Chat.test:81"),
        ("127.0.0.1", CLAIMS, "https://Real.test:9"),
        ("127.0.0.1", [FORWARDED], "https://real.test:444"),
        ("127.0.0.1", ["Forwarded: ;;=,"], "http://Chat.test:81"),
        ("127.0.0.1", ["X-Forwarded-Host: a/b"], ""),
    ],
)
@pytest.mark.parametrize("is_socket", [False, True])
async def test_addons_are_told_under_which_origin_the_client_came(
    trusted, lines, expected, is_socket
):
    origins: list[str] = []
    addon = remembers(origins)
    security = SecurityTable(trusted_proxies=(trusted,))
    if is_socket:
        lines = [*lines, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]  # fmt: skip
    async with upstream(echo) as up, gateway(up.url, addon, security=security) as gw:
        raw = get("/chat", *lines).replace(b"chat.test", b"Chat.test:81")
        await ask(gw.port, raw)
    assert origins == [expected]


async def test_a_host_that_cannot_be_one_and_none_make_no_origin():
    origins: list[str] = []
    addon = remembers(origins)
    async with upstream(echo) as up, gateway(up.url, addon) as gw:
        await ask(gw.port, b"GET /chat HTTP/1.1\r\nHost: user@chat.test\r\n\r\n")
        await ask(gw.port, b"GET /chat HTTP/1.0\r\n\r\n")
        await ask(gw.port, b"GET /chat HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n")
    assert origins == ["", "", "http://[::1]:8080"]


async def test_behind_tls_of_its_own_the_origin_is_https(tmp_path):
    origins: list[str] = []
    addon = remembers(origins)
    authority = Authority(tmp_path / "ca")
    cert, key = authority.certificate("127.0.0.1")
    tls = TlsTable(cert=str(cert), key=str(key))
    verifying = ssl.create_default_context(cafile=authority.file)
    async with (
        upstream(echo) as up,
        gateway(up.url, addon, tls=tls) as gw,
        await connect(gw.port) as client,
    ):
        await client.writer.start_tls(verifying, server_hostname="127.0.0.1")
        await client.send(get("/chat"))
        assert (await client.head()).status == 200
    assert origins == ["https://chat.test"]


async def test_hop_by_hop_headers_end_at_the_gateway_in_both_directions():
    async def behave(visit: Visit) -> None:
        hops = [("Connection", "X-Own, keep-alive"), ("X-Own", "1"), ("Keep-Alive", "timeout=9")]
        await visit.respond(headers=[*hops, ("X-End", "2")])

    lines = ["Connection: X-Private", "X-Private: 1", "Keep-Alive: 5", "TE: trailers",
             "Proxy-Connection: x", "Upgrade: h2c", "X-End: 1"]  # fmt: skip
    async with upstream(behave) as up, gateway(up.url) as gw:
        head, _ = await ask(gw.port, get("/", *lines))
        hops = ("connection", "x-private", "keep-alive", "te", "proxy-connection", "upgrade")
        assert [up.requests[0].all(name) for name in hops] == [[]] * len(hops)
        assert up.requests[0].all("x-end") == ["1"]
        assert head.all("x-own") == head.all("keep-alive") == []
        assert head.all("x-end") == ["2"]


async def test_response_headers_keep_order_case_and_repetitions():
    told = [("Set-Cookie", "a=1; Path=/"), ("X-a", "1"), ("set-cookie", "b=2"), ("Set-Cookie", "c")]

    async def behave(visit: Visit) -> None:
        await visit.respond("200 Fine", told, b"x")

    async with upstream(behave) as up, gateway(up.url) as gw:
        head, body = await ask(gw.port, get())
        assert head.line == "HTTP/1.1 200 Fine"
        assert [pair for pair in head.headers if pair[0].lower() != "date"][:4] == told
        assert body == b"x"


async def test_header_bytes_that_are_not_utf8_pass_in_both_directions():
    async def behave(visit: Visit) -> None:
        await visit.respond(headers=[("X-Name", "caf\xe9")])

    async with upstream(behave) as up, gateway(up.url) as gw:
        head, _ = await ask(gw.port, get("/", "X-Name: caf\xe9 \xc3\xa9"))
        assert up.requests[0].get("x-name") == "caf\xe9 \xc3\xa9"
        assert head.get("x-name") == "caf\xe9"


async def test_nothing_is_said_of_the_server_or_the_content_that_the_upstream_did_not_say():
    async def behave(visit: Visit) -> None:
        await visit.respond(body=b"x")

    async with upstream(behave) as up, gateway(up.url) as gw:
        head, _ = await ask(gw.port, get())
        assert head.all("server") == head.all("content-type") == []


async def test_the_servers_own_server_and_date_pass():
    told = [("Server", "their/1.0"), ("Date", "Thu, 01 Jan 1970 00:00:00 GMT")]

    async def behave(visit: Visit) -> None:
        await visit.respond(headers=told)

    async with upstream(behave) as up, gateway(up.url) as gw:
        head, _ = await ask(gw.port, get())
        assert head.all("server") == ["their/1.0"]
        assert head.all("date") == ["Thu, 01 Jan 1970 00:00:00 GMT"]


async def test_what_the_client_did_not_say_the_upstream_does_not_hear():
    async with upstream(echo) as up, gateway(up.url) as gw:
        await ask(gw.port, get())
        told = up.requests[0]
        for name in ("accept", "accept-encoding", "user-agent", "content-type"):
            assert told.all(name) == []


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "status", "reason"),
    [
        (b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400, "bad_target"),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_target"),
        (b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n", 405, "bad_target"),
    ],
)
async def test_a_target_that_is_no_path_is_refused(raw, status, reason):
    async with upstream(echo) as up, gateway(up.url) as gw:
        head, _ = await ask(gw.port, raw)
        assert head.status == status
        assert head.get("connection") == "close"
        assert gw.counts.get(metrics.REJECTED, (reason,)) == 1
        assert up.requests == []


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n",
        CHUNKED.replace(b"\r\nHost", b"\r\nContent-Length: 1\r\nHost") + b"0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"hello\r\n\r\n",
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_is_refused(raw):
    async with upstream(echo) as up, gateway(up.url) as gw:
        head, _ = await ask(gw.port, raw)
        assert head.status == 400
        refused = gw.counts.get(metrics.REJECTED, ("bad_request",))
        assert refused + gw.counts.get(metrics.REJECTED, ("bad_host",)) == 1
        assert up.requests == []


async def test_an_old_client_without_a_host_is_served():
    async with upstream(echo) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(b"GET /old HTTP/1.0\r\n\r\n")
        assert (await client.head()).status == 200
        assert up.requests[0].target == "/old"
        assert up.requests[0].all("x-forwarded-host") == []


async def test_a_path_without_a_route_is_told_so():
    async with upstream(echo) as up, gateway(up.url, path="/chat/*") as gw:
        head, body = await ask(gw.port, get("/other"))
        assert head.status == 404
        assert b"no route" in body
        assert gw.counts.get(metrics.REJECTED, ("no_route",)) == 1
        assert up.requests == []


async def test_other_origins_are_refused_where_some_are_allowed():
    strict = SecurityTable(allowed_origins=("https://chat.example.com",))
    async with upstream(echo) as up, gateway(up.url, security=strict) as gw:
        head, _ = await ask(gw.port, get("/", "Origin: https://evil.test"))
        assert head.status == 403
        assert gw.counts.get(metrics.REJECTED, ("origin",)) == 1
        head, _ = await ask(gw.port, get("/", "Origin: https://chat.example.com"))
        assert head.status == 200
        assert up.requests[0].get("origin") == "https://chat.example.com"
        head, _ = await ask(gw.port, get())
        assert head.status == 200


async def test_a_head_that_does_not_come_is_not_waited_for():
    impatient = LimitsTable(max_header_seconds=0.05)
    async with upstream(echo) as up, gateway(up.url, limits=impatient) as gw:
        async with await connect(gw.port) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost:")
            assert (await client.head()).status == 408
            assert await client.rest() == b""
        assert gw.counts.get(metrics.REJECTED, ("header_timeout",)) == 1


async def test_the_second_head_of_a_connection_is_not_waited_for_either():
    impatient = LimitsTable(max_header_seconds=0.5)
    async with (
        upstream(echo) as up,
        gateway(up.url, limits=impatient) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(get())
        await client.body(await client.head())
        await client.send(b"GET /second")
        assert (await client.head()).status == 408


async def test_a_slow_answer_is_no_slow_head():
    impatient = LimitsTable(max_header_seconds=0.05)

    async def behave(visit: Visit) -> None:
        await asyncio.sleep(0.2)
        await visit.respond(body=b"late")

    async with upstream(behave) as up, gateway(up.url, limits=impatient) as gw:
        _, body = await ask(gw.port, get())
        assert body == b"late"


async def test_connections_over_the_limit_are_told_to_come_back():
    few = LimitsTable(max_connections=1)
    async with (
        upstream(echo) as up,
        gateway(up.url, limits=few) as gw,
        await connect(gw.port) as first,
    ):
        await first.send(get())
        await first.body(await first.head())
        head, _ = await ask(gw.port, get())
        assert head.status == 503
        assert head.get("retry-after") == "1"
        assert gw.counts.get(metrics.REJECTED, ("connections",)) == 1
        await first.send(get())
        assert (await first.head()).status == 200


# --- upstreams that fail --------------------------------------------------------------------------


async def test_an_upstream_that_is_not_there_is_a_502_that_says_so(unused_tcp_port):
    async with gateway(f"http://127.0.0.1:{unused_tcp_port}") as gw:
        head, body = await ask(gw.port, get())
        assert head.status == 502
        assert f"http://127.0.0.1:{unused_tcp_port} refused the connection" in body.decode()
        assert gw.counts.get(metrics.UPSTREAM_ERRORS, ("chat", "connect")) == 1
        assert gw.counts.get(metrics.REQUESTS, ("chat", "http", "5xx")) == 1


async def test_a_name_that_does_not_resolve_is_a_502():
    async with gateway("http://nowhere.invalid:1") as gw:
        head, body = await ask(gw.port, get())
        assert head.status == 502
        assert b"does not resolve" in body


async def test_an_upstream_that_does_not_accept_is_a_504(monkeypatch):
    monkeypatch.setattr("midstream.hosts.gateway_upstream.CONNECT_SECONDS", 0.05)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        fillers = [await asyncio.open_connection("127.0.0.1", port)]
        try:
            async with gateway(f"http://127.0.0.1:{port}") as gw:
                answers = await asyncio.gather(*(ask(gw.port, get()) for _ in range(4)))
                assert 504 in [head.status for head, _ in answers]
                assert gw.counts.get(metrics.UPSTREAM_ERRORS, ("chat", "timeout")) >= 1
        finally:
            for _, writer in fillers:
                writer.close()


async def test_an_upstream_that_hangs_up_without_an_answer_is_asked_once():
    async def behave(visit: Visit) -> None:
        visit.abort()

    async with upstream(behave) as up, gateway(up.url) as gw:
        head, body = await ask(gw.port, get())
        assert head.status == 502
        assert b"closed the connection before it answered" in body
        assert len(up.requests) == 1
        assert gw.counts.get(metrics.UPSTREAM_ERRORS, ("chat", "broken")) == 1


async def test_an_upstream_that_does_not_speak_http_is_a_502():
    async def behave(visit: Visit) -> None:
        await visit.send(b"220 smtp.test ESMTP\r\n\r\n")

    async with upstream(behave) as up, gateway(up.url) as gw:
        head, _ = await ask(gw.port, get())
        assert head.status == 502


# --- bodies ---------------------------------------------------------------------------------------


async def test_a_body_of_known_length_goes_both_ways():
    body = bytes(range(256)) * 1000
    async with upstream(echo) as up, gateway(up.url) as gw:
        raw = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
        head, answer = await ask(gw.port, raw + body)
        assert answer.endswith(body)
        assert up.requests[0].all("content-length") == [str(len(body))]
        assert head.get("content-length") == str(len(answer))


async def test_a_chunked_body_stays_chunked_both_ways():
    async def behave(visit: Visit) -> None:
        body = await visit.body(visit.request)
        await visit.begin_chunks("text/plain")
        await visit.send_chunk(body)
        await visit.send_chunk(b"")

    async with upstream(behave) as up, gateway(up.url) as gw:
        raw = CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        head, body = await ask(gw.port, raw)
        assert body == b"abcde"
        assert up.requests[0].all("transfer-encoding") == ["chunked"]
        assert head.all("transfer-encoding") == ["chunked"]
        assert head.all("content-length") == []


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
async def test_a_response_without_a_body_has_none(status):
    async def behave(visit: Visit) -> None:
        await visit.begin(status, [("ETag", '"x"')])

    async with upstream(behave) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        for _ in range(2):
            await client.send(get())
            head = await client.head()
            assert head.line == f"HTTP/1.1 {status}"
            assert head.get("etag") == '"x"'
            assert head.all("transfer-encoding") == []


async def test_head_keeps_the_length_and_sends_no_body():
    async def behave(visit: Visit) -> None:
        headers = [("Content-Length", "1000"), ("Content-Type", "text/event-stream")]
        await visit.begin("200 OK", headers)

    async with upstream(behave) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        for _ in range(2):
            await client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
            head = await client.head()
            assert head.get("content-length") == "1000"
            assert head.get("content-type") == "text/event-stream"
        assert gw.counts.get(metrics.STREAMS_OPENED, ("chat", "sse")) == 0


async def test_a_client_that_waits_to_continue_is_told_to():
    async with upstream(echo) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await client.head()).status == 100
        await client.send(b"ok")
        head = await client.head()
        assert head.status == 200
        assert (await client.body(head)).endswith(b"ok")
        assert up.requests[0].all("expect") == []


async def test_a_client_that_waits_to_continue_is_not_told_to_where_nobody_listens(unused_tcp_port):
    async with (
        gateway(f"http://127.0.0.1:{unused_tcp_port}") as gw,
        await connect(gw.port) as client,
    ):
        await client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await client.head()).status == 502


async def test_an_interim_response_is_no_answer():
    async def behave(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await visit.respond(body=b"x")

    async with upstream(behave) as up, gateway(up.url) as gw:
        head, body = await ask(gw.port, get())
        assert (head.status, body) == (200, b"x")


async def test_a_body_that_breaks_off_is_not_ended():
    async def behave(visit: Visit) -> None:
        await visit.begin_chunks("text/plain")
        await visit.send_chunk(b"some")
        await asyncio.sleep(0.05)
        visit.abort()

    async with upstream(behave) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(get())
        await client.head()
        assert await client.chunk() == b"some"
        assert await client.rest() == b""
        assert gw.counts.get(metrics.UPSTREAM_ERRORS, ("chat", "broken")) == 1


async def test_a_body_of_known_length_that_breaks_off_is_not_filled():
    async def behave(visit: Visit) -> None:
        await visit.begin("200 OK", [("Content-Length", "10")])
        await visit.send(b"some")
        visit.writer.close()

    async with upstream(behave) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(get())
        await client.head()
        assert await client.rest() == b"some"


async def test_a_client_that_leaves_ends_the_request_to_the_upstream():
    left = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.rest()
        left.set()

    async with upstream(behave) as up, gateway(up.url) as gw:
        client = await connect(gw.port)
        await client.send(get())
        await until(lambda: up.requests)
        await client.aclose()
        async with asyncio.timeout(10):
            await left.wait()


async def test_an_upload_that_breaks_off_breaks_off_at_the_upstream():
    ends: list[bytes] = []

    async def behave(visit: Visit) -> None:
        ends.append(await visit.rest())

    async with upstream(behave) as up, gateway(up.url) as gw:
        client = await connect(gw.port)
        await client.send(CHUNKED + b"3\r\nabc\r\n")
        await until(lambda: up.requests)
        await asyncio.sleep(0.05)
        client.abort()
        await until(lambda: ends)
        assert not ends[0].endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("target", ["/chat", "/other"])
async def test_an_upload_that_is_not_chunked_as_it_says_is_refused(target):
    head = f"POST {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    async with (
        upstream(echo) as up,
        gateway(up.url, FakeAddon()) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(head + b"3\r\nabc\r\n")
        await until(lambda: up.requests or target == "/chat")
        await asyncio.sleep(0.05)
        await client.send(b"zz\r\nabc\r\n0\r\n\r\n")
        assert (await client.head()).status == 400


async def test_a_slow_client_slows_the_upstream():
    pushed = 0

    async def behave(visit: Visit) -> None:
        nonlocal pushed
        await visit.begin_chunks("application/octet-stream")
        for _ in range(200):
            await visit.send_chunk(bytes(MIB))
            pushed += MIB

    async with upstream(behave) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        await client.send(get())
        seen = -1
        while seen != pushed:
            seen = pushed
            await asyncio.sleep(0.3)
        assert 0 < pushed < 64 * MIB
        client.abort()


async def test_a_slow_upstream_slows_the_client():
    async def behave(visit: Visit) -> None:
        await asyncio.sleep(60)

    async with upstream(behave) as up, gateway(up.url) as gw:
        client = await connect(gw.port)
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (200 * MIB))
        pushed = 0
        with contextlib.suppress(TimeoutError):
            while pushed < 200 * MIB:
                async with asyncio.timeout(0.5):
                    await client.send(bytes(MIB))
                pushed += MIB
        assert pushed < 64 * MIB
        client.abort()


async def test_several_requests_share_a_connection_on_both_sides():
    async with upstream(echo) as up, gateway(up.url) as gw, await connect(gw.port) as client:
        for number in range(5):
            await client.send(get(f"/{number}"))
            await client.body(await client.head())
        assert [head.target for head in up.requests] == ["/0", "/1", "/2", "/3", "/4"]
        assert up.connections == 1


# --- bodies that addons read ----------------------------------------------------------------------


def post(body: bytes, *lines: str, target: str = "/chat") -> bytes:
    headers = "".join(f"{line}\r\n" for line in lines)
    head = f"POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


async def test_a_request_body_that_an_addon_changed_has_its_own_length():
    async with upstream(echo) as up, gateway(up.url, swap(b"cat", b"horse")) as gw:
        _, answer = await ask(gw.port, post(b"a cat and a cat", "Content-MD5: x"))
        assert answer.endswith(b"\r\n\r\na horse and a horse")
        assert up.requests[0].all("content-length") == ["19"]
        assert up.requests[0].all("content-md5") == []
        labels = ("chat", "fake", "swap", "repair")
        assert gw.counts.get(metrics.REPAIRS, labels) == 1


async def test_a_request_body_that_no_addon_changed_leaves_as_it_came():
    async with upstream(echo) as up, gateway(up.url, FakeAddon()) as gw:
        _, answer = await ask(gw.port, post(b"a cat", "Content-MD5: x"))
        assert answer.endswith(b"\r\n\r\na cat")
        assert up.requests[0].all("content-length") == ["5"]
        assert up.requests[0].all("content-md5") == ["x"]


async def test_a_chunked_request_body_that_is_read_stays_chunked():
    async with upstream(echo) as up, gateway(up.url, swap(b"cat", b"horse")) as gw:
        raw = CHUNKED.replace(b"/", b"/chat", 1) + b"2\r\nca\r\n1\r\nt\r\n0\r\n\r\n"
        _, answer = await ask(gw.port, raw)
        assert answer.endswith(b"\r\n\r\nhorse")
        assert up.requests[0].all("transfer-encoding") == ["chunked"]


async def test_a_request_body_over_the_limit_streams_on_as_it_came():
    body = b"cat" * 1000
    small = LimitsTable(max_frame_bytes=100)
    async with upstream(echo) as up, gateway(up.url, swap(b"cat", b"dog"), limits=small) as gw:
        _, answer = await ask(gw.port, post(body))
        assert answer.endswith(b"\r\n\r\n" + body)
        assert gw.counts.get(metrics.SKIPPED, ("fake", "too_large")) == 1


async def test_a_coded_request_body_is_read_and_leaves_as_it_came_if_unchanged():
    coded = gzip.compress(b"a dog")
    async with upstream(echo) as up, gateway(up.url, swap(b"cat", b"horse")) as gw:
        _, answer = await ask(gw.port, post(coded, "Content-Encoding: gzip"))
        assert answer.endswith(coded)
        assert up.requests[0].all("content-encoding") == ["gzip"]
        _, answer = await ask(gw.port, post(gzip.compress(b"a cat"), "Content-Encoding: gzip"))
        assert answer.endswith(b"\r\n\r\na horse")
        assert up.requests[1].all("content-encoding") == []


def answering(body: bytes, *headers: tuple[str, str]):
    async def behave(visit: Visit) -> None:
        await visit.body(visit.request)
        await visit.respond(headers=[("Content-Type", "application/json"), *headers], body=body)

    return behave


async def test_a_response_body_that_an_addon_changed_has_its_own_length():
    async with upstream(answering(b'"cat"')) as up, gateway(up.url, swap(b"cat", b"horse")) as gw:
        head, body = await ask(gw.port, get("/chat"))
        assert body == b'"horse"'
        assert head.all("content-length") == ["7"]


async def test_an_exchange_that_is_read_asks_for_no_coding():
    async with upstream(answering(b"{}")) as up, gateway(up.url, FakeAddon()) as gw:
        await ask(gw.port, get("/chat", "Accept-Encoding: gzip, br"))
        await ask(gw.port, get("/other", "Accept-Encoding: gzip, br"))
        assert [head.get("accept-encoding") for head in up.requests] == ["identity", "gzip, br"]


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: importlib.import_module("brotli").compress(data),
    "zstd": lambda data: importlib.import_module("backports.zstd").compress(data),
}


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_response_that_is_coded_all_the_same_is_read(coding):
    encode = CODINGS[coding]
    dog = encode(b'"dog"')
    told = ("Content-Encoding", coding)
    async with (
        upstream(answering(dog, told)) as up,
        gateway(up.url, swap(b"cat", b"horse")) as gw,
    ):
        head, body = await ask(gw.port, get("/chat"))
        assert body == dog
        assert head.all("content-encoding") == [coding]
    async with (
        upstream(answering(encode(b'"cat"'), told)) as up,
        gateway(up.url, swap(b"cat", b"horse")) as gw,
    ):
        head, body = await ask(gw.port, get("/chat"))
        assert body == b'"horse"'
        assert head.all("content-encoding") == []


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", b"not gzip at all"), ("gzip", gzip.compress(b'"cat"')[:-9]), ("rot13", b'"png"')],
    ids=["no gzip", "cut gzip", "an unknown coding"],
)
async def test_a_response_that_cannot_be_decoded_passes_as_it_came(coding, body):
    told = ("Content-Encoding", coding)
    async with upstream(answering(body, told)) as up, gateway(up.url, swap(b"cat", b"dog")) as gw:
        head, passed = await ask(gw.port, get("/chat"))
        assert passed == body
        assert head.all("content-encoding") == [coding]
        assert head.get("content-length") == str(len(body))
        assert gw.counts.get(metrics.SKIPPED, ("fake", "bad_encoding")) == 1


async def test_a_bomb_passes_as_it_came_and_is_never_whole_in_memory():
    bomb = gzip.compress(bytes(64 * MIB))
    async with (
        upstream(answering(bomb, ("Content-Encoding", "gzip"))) as up,
        gateway(up.url, swap(b"cat", b"dog")) as gw,
    ):
        _, passed = await ask(gw.port, get("/chat"))
        assert passed == bomb
        assert gw.counts.get(metrics.SKIPPED, ("fake", "too_large")) == 1


async def test_a_response_body_over_the_limit_streams_on_as_it_came():
    body = b"cat" * 100_000
    small = LimitsTable(max_frame_bytes=1000)
    async with (
        upstream(answering(body)) as up,
        gateway(up.url, swap(b"cat", b"dog"), limits=small) as gw,
    ):
        head, passed = await ask(gw.port, get("/chat"))
        assert passed == body
        assert head.get("content-length") == str(len(body))


async def test_a_response_body_that_is_read_and_breaks_off_is_not_ended():
    async def behave(visit: Visit) -> None:
        headers = [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]
        await visit.begin("200 OK", headers)
        await visit.send_chunk(b'"ca')
        await asyncio.sleep(0.05)
        visit.abort()

    async with (
        upstream(behave) as up,
        gateway(up.url, swap(b"cat", b"dog")) as gw,
        await connect(gw.port) as client,
    ):
        await client.send(get("/chat"))
        await client.head()
        assert await client.chunk() == b'"ca'
        assert await client.rest() == b""


# --- counts ---------------------------------------------------------------------------------------


async def test_requests_are_counted_by_what_they_were_answered():
    async with upstream(answering(b"{}")) as up, gateway(up.url) as gw:
        await ask(gw.port, get())
        assert gw.counts.get(metrics.REQUESTS, ("chat", "http", "2xx")) == 1
        assert gw.counts.get(metrics.FRAME_BYTES, ("chat", "http", Side.SERVER.value)) == 2


async def test_nothing_is_left_of_two_thousand_short_connections():
    async with upstream(answering(b"{}")) as up, gateway(up.url) as gw:
        await ask(gw.port, get())
        before = len(asyncio.all_tasks())
        for _ in range(100):
            await asyncio.gather(*(ask(gw.port, get()) for _ in range(20)))
        await until(lambda: len(asyncio.all_tasks()) <= before)
        assert len(up.requests) == 2001
