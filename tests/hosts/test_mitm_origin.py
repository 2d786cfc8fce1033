"""Under which origin a client addressed mitmproxy, in each of its modes and over real sockets."""

import ssl

import pytest
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import tflow
from tests.hosts.mitm_master import Peer, client, engine, mitmproxy, settled, upstream
from tests.support import FakeAddon

from midstream.core.addon import KEEP, Context, Verdict
from midstream.hosts.mitm_origin import client_origin


def remembers(origins: list[str]) -> FakeAddon:
    def look(ctx: Context[object, object]) -> Verdict:
        origins.append(ctx.exchange.origin)
        return KEEP

    return FakeAddon(open=look)


async def answers(peer: Peer) -> None:
    peer.head = await peer.read_head()
    await peer.respond(b"ok", "Content-Length: 2")


async def ask(peer: Peer, target: str, host: str | None) -> None:
    line = "" if host is None else f"Host: {host}\r\n"
    await peer.send(f"GET {target} HTTP/1.{int(host is not None)}\r\n{line}\r\n".encode())
    assert b" 200 " in await peer.read_head()
    await peer.read(2)


async def test_in_reverse_mode_it_is_the_address_that_the_client_connected_to():
    origins: list[str] = []
    heads: list[bytes] = []

    async def behave(peer: Peer) -> None:
        await answers(peer)
        heads.append(peer.head)

    async with (
        upstream(behave) as port,
        mitmproxy(port, engine(remembers(origins))) as proxy,
        client(proxy.port) as peer,
    ):
        await ask(peer, "/chat", "chat.test:99")
        assert await settled(proxy)
    assert origins == [f"http://127.0.0.1:{proxy.port}"]
    assert b"chat.test" not in heads[0], "mitmproxy has the Host header rewritten by now"


@pytest.mark.parametrize(
    ("host", "expected"),
    [("Chat.test:99", "http://Chat.test:99"), ("[::1]:8", "http://[::1]:8"), ("user@evil", "")],
)
async def test_in_reverse_mode_a_host_that_is_kept_tells(host, expected):
    origins: list[str] = []
    async with (
        upstream(answers) as port,
        mitmproxy(port, engine(remembers(origins)), keep_host_header=True) as proxy,
        client(proxy.port) as peer,
    ):
        await ask(peer, "/chat", host)
        assert await settled(proxy)
    assert origins == [expected]


async def test_an_old_client_without_a_host_addresses_what_it_connected_to():
    origins: list[str] = []
    async with (
        upstream(answers) as port,
        mitmproxy(port, engine(remembers(origins)), keep_host_header=True) as proxy,
        client(proxy.port) as peer,
    ):
        await ask(peer, "/chat", None)
        assert await settled(proxy)
    assert origins == [f"http://127.0.0.1:{proxy.port}"]


async def test_in_reverse_mode_with_tls_to_the_client_the_scheme_is_https():
    origins: list[str] = []
    async with (
        upstream(answers) as port,
        mitmproxy(port, engine(remembers(origins))) as proxy,
        client(proxy.port) as peer,
    ):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # mitmproxy makes its own certificate
        await peer.writer.start_tls(context)
        await ask(peer, "/chat", "a")
        assert await settled(proxy)
    assert origins == [f"https://127.0.0.1:{proxy.port}"]


async def test_in_regular_mode_it_is_what_the_client_asked_for():
    origins: list[str] = []
    async with (
        upstream(answers) as port,
        mitmproxy(port, engine(remembers(origins)), mode="regular") as proxy,
        client(proxy.port) as peer,
    ):
        await ask(peer, f"http://127.0.0.1:{port}/chat", "spoofed.test")
        assert await settled(proxy)
    assert origins == [f"http://127.0.0.1:{port}"]


@pytest.mark.parametrize(
    ("mode", "host", "expected"),
    [
        ("regular", "::1", "https://[::1]:22"),
        ("upstream:http://proxy.test:1", "a.test", "https://a.test:22"),
        ("transparent", "10.0.0.1", "https://named.test:22"),
        ("socks5", "10.0.0.1", "https://named.test:22"),
    ],
)
def test_a_mode_that_hides_the_proxy_is_told_by_the_host_header(mode, host, expected):
    flow = tflow.tflow()
    flow.client_conn.proxy_mode = ProxyMode.parse(mode)
    flow.request.scheme, flow.request.data.host = "https", host
    flow.request.headers["host"] = "named.test"
    assert client_origin(flow, keeps_host=False) == expected


def test_a_connection_without_an_address_has_no_origin():
    flow = tflow.tflow()
    flow.client_conn.proxy_mode = ProxyMode.parse("reverse:http://a.test")
    flow.client_conn.sockname = None  # type: ignore[assignment]  # its base class allows it
    assert client_origin(flow, keeps_host=False) == ""
