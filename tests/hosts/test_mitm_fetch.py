"""The GET that an addon asks for, as mitmproxy's host carries it out."""

import ssl

import pytest
from mitmproxy import options
from mitmproxy.test import tutils
from tests.hosts.mitm_master import Peer, upstream

from midstream.core.addon import Answer
from midstream.hosts import mitm_fetch


def opts(**values: object) -> options.Options:
    return options.Options(**values)


async def fetched(port: int, target: str = "/a", **headers: str) -> Answer:
    pairs = tuple(
        (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
    )
    request = tutils.treq(host="127.0.0.1", port=port, headers=pairs)
    return await mitm_fetch.fetch(request, target, opts())


def answers(body: bytes, *headers: str, status: int = 200):
    async def handler(peer: Peer) -> None:
        await peer.read_head()
        await peer.respond(body, *headers, f"Content-Length: {len(body)}", status=status)

    return handler


async def test_an_answer_has_the_status_and_the_body():
    async with upstream(answers(b"no", status=404)) as port:
        assert await fetched(port) == Answer(404, b"no")


async def test_an_upstream_that_is_not_there_is_status_0():
    async with upstream(answers(b"")) as port:
        pass
    assert await fetched(port) == Answer()


async def test_an_answer_over_the_limit_is_status_0(monkeypatch):
    monkeypatch.setattr(mitm_fetch, "MAX_BODY_BYTES", 9)
    async with upstream(answers(b"x" * 10)) as port:
        assert await fetched(port) == Answer()
    async with upstream(answers(b"x" * 9)) as port:
        assert await fetched(port) == Answer(200, b"x" * 9)


async def test_an_answer_that_takes_too_long_is_status_0(monkeypatch):
    async def handler(peer: Peer) -> None:
        await peer.read_head()
        await peer.rest()

    monkeypatch.setattr(mitm_fetch, "MAX_SECONDS", 0.05)
    async with upstream(handler) as port:
        assert await fetched(port) == Answer()


async def test_a_redirect_is_not_followed_with_the_credentials():
    async with upstream(answers(b"", "Location: http://127.0.0.1:9/b", status=302)) as port:
        assert (await fetched(port, cookie="a=1")).status == 302


@pytest.mark.parametrize(("host", "origin"), [("a.b", "http://a.b:1"), ("::1", "http://[::1]:1")])
def test_the_origin_names_scheme_host_and_port(host, origin):
    assert mitm_fetch.origin(tutils.treq(host=host, port=1)) == origin


def test_upstreams_are_verified_as_mitmproxy_was_told(tmp_path):
    assert mitm_fetch.verification(opts()) is True
    assert mitm_fetch.verification(opts(ssl_insecure=True)) is False
    ca = ssl.get_default_verify_paths().cafile
    if ca is not None:
        context = mitm_fetch.verification(opts(ssl_verify_upstream_trusted_ca=ca))
        assert isinstance(context, ssl.SSLContext)
        assert context.verify_mode is ssl.CERT_REQUIRED
