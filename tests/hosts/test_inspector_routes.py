"""The inspector over HTTP: who is let in, what a page is told, and what a slow page costs."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from tests.hosts.gateways import until
from tests.hosts.test_inspector import closed, frame, opened
from tests.support import FakeDialect

from midstream.adapters.capture_format import read
from midstream.adapters.capture_redact import Redactor
from midstream.config.schema import Config, SecurityTable
from midstream.config.values import Address
from midstream.core.engine import Engine
from midstream.core.errors import CaptureError, ConfigError
from midstream.core.metrics import Counts
from midstream.hosts import inspector_feed
from midstream.hosts.admin import Admin
from midstream.hosts.gateway_call import Streams
from midstream.hosts.inspector import Ring, RingBounds
from midstream.hosts.inspector_access import (
    MAX_TRIES,
    SECONDS_A_TRY,
    Access,
    Refused,
    admin_token,
    is_loopback,
    read_token,
)
from midstream.hosts.inspector_routes import FILES, MAX_VIEWERS, Routes
from midstream.hosts.inspector_view import View

TOKEN = "a-token-of-32-characters-at-least"
DATA = (
    "/streams.json", "/inspector/state", "/inspector/events", "/inspector/record",
    "/inspector/find", "/inspector/capture", "/inspector/har",
)  # fmt: skip
POSTS = ("/capture/write", "/inspector/logout")


class Site:
    """An admin port, and a client for it that adds nothing to a request by itself."""

    def __init__(self, port: int, ring: Ring, client: aiohttp.ClientSession) -> None:
        self.port = port
        self.ring = ring
        self.client = client

    async def ask(
        self, path: str, method: str = "GET", data: object = None, **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.request(
            method, f"http://127.0.0.1:{self.port}{path}", headers=named, data=data
        ) as answer:
            return answer.status, await answer.text(), dict(answer.headers)

    async def status(self, path: str, method: str = "GET", **headers: str) -> int:
        """Return the status of an answer, without waiting for the end of an endless one."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.request(
            method, f"http://127.0.0.1:{self.port}{path}", headers=named
        ) as answer:
            return answer.status


@asynccontextmanager
async def site(
    *,
    token: str = "",
    bounds: RingBounds | None = None,
    on_write: Callable[[], int] | None = None,
) -> AsyncIterator[Site]:
    ring = Ring(bounds)
    engine = Engine([], [FakeDialect()], secret=b"secret", counts=Counts())
    ready = (200, "ready")
    admin = Admin(
        engine.counts, Streams(engine), ring, lambda: ready, token=token, on_write=on_write
    )
    port = await admin.listen(Address("127.0.0.1", 0))
    try:
        async with aiohttp.ClientSession() as client:
            yield Site(port, ring, client)
    finally:
        await admin.close()


# --- who is let in -------------------------------------------------------------------------------


async def test_on_loopback_the_page_and_its_files_are_open_to_this_machine():
    async with site() as at:
        for path, (_, content_type) in FILES.items():
            status, body, headers = await at.ask(path)
            assert status == 200
            assert headers["Content-Type"] == f"{content_type}; charset=utf-8"
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            for elsewhere in ("http://", "https://", "innerHTML", "@import", "<script>", "style="):
                assert elsewhere not in body, path
        assert await at.status("/inspector/state") == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:9464", "a"])
async def test_a_name_that_points_at_this_machine_does_not_let_a_foreign_page_in(host):
    async with site() as at:
        for path in ("/", *DATA):
            assert await at.status(path, Host=host) == 403, path
        for path in (*POSTS, "/inspector/login"):
            assert await at.status(path, "POST", Host=host) == 403, path
        for path in ("/metrics", "/livez", "/readyz"):
            assert await at.status(path, Host=host) == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.2:80", "[::1]:9464"])
async def test_loopback_names_are_let_in_with_any_port(host):
    async with site() as at:
        assert await at.status("/inspector/state", Host=host) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
@pytest.mark.parametrize("token", ["", TOKEN])
async def test_another_origin_gets_no_data_and_does_nothing(headers, token):
    async with site(token=token, on_write=lambda: pytest.fail("it was called")) as at:
        headers = headers | {"Authorization": f"Bearer {token}"}
        for path in DATA:
            assert await at.status(path, **headers) == 403, path
        for path in (*POSTS, "/inspector/login"):
            assert await at.status(path, "POST", **headers) == 403, path


async def test_the_own_origin_is_let_in():
    async with site(on_write=lambda: 7) as at:
        own = f"http://127.0.0.1:{at.port}"
        status, body, _ = await at.ask("/capture/write", "POST", Origin=own)
        assert (status, json.loads(body)) == (200, {"records": 7})
        assert await at.status("/inspector/state", Sec_Fetch_Site="same-origin") == 200


async def test_on_another_address_it_is_off_without_a_token():
    engine = Engine([], [], secret=b"secret", counts=Counts())
    view = View(Ring(), Redactor(()))
    app = web.Application()
    Routes(Access("192.0.2.1"), view, Streams(engine), lambda: 1).add_to(app)
    server: TestServer = TestServer(app)
    async with TestClient(server) as client:
        for path in (*FILES, *DATA):
            answer = await client.get(path)
            assert answer.status == 403
            assert "security.admin_token_file" in await answer.text()
        for path in (*POSTS, "/inspector/login"):
            assert (await client.post(path)).status == 403


async def test_with_a_token_the_data_needs_it_on_loopback_too():
    async with site(token=TOKEN, on_write=lambda: 1) as at:
        assert await at.status("/") == 200  # the page asks for it
        for path in DATA:
            status, _, headers = await at.ask(path)
            assert status == 401
            assert headers["WWW-Authenticate"].startswith("Bearer ")
        assert await at.status("/capture/write", "POST") == 401
        right = f"Bearer {TOKEN}"
        assert await at.status("/inspector/state", Authorization=right, Host="far.example") == 200
        assert await at.status("/capture/write", "POST", Authorization=right) == 200
        assert await at.status("/inspector/state", Authorization=f"Basic {TOKEN}") == 401


async def test_signing_in_sets_a_cookie_that_no_script_reads_and_signing_out_ends_it():
    async with site(token=TOKEN) as at:
        assert (await at.ask("/inspector/login", "POST", {"token": "wrong"}))[0] == 401
        status, _, headers = await at.ask("/inspector/login", "POST", {"token": f" {TOKEN}\n"})
        assert status == 204
        cookie = headers["Set-Cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Path=/inspector", "Max-Age=43200"):
            assert part in cookie
        assert TOKEN not in cookie
        given = cookie.partition(";")[0]
        at.client.cookie_jar.clear()
        assert await at.status("/inspector/state", Cookie=given) == 200
        assert await at.status("/inspector/state", Cookie=given[:-1]) == 401
        assert await at.status("/inspector/logout", "POST", Cookie=given) == 204
        assert await at.status("/inspector/state", Cookie=given) == 401


async def test_wrong_tokens_run_out_and_then_the_right_one_has_to_wait_too():
    async with site(token=TOKEN) as at:
        codes = [
            await at.status("/inspector/state", Authorization=f"Bearer wrong-{number}")
            for number in range(MAX_TRIES + 1)
        ]
        assert codes == [401] * MAX_TRIES + [429]
        status, body, _ = await at.ask("/inspector/login", "POST", {"token": TOKEN})
        assert status == 429
        assert "wait" in body


def test_tries_come_back_slowly_and_each_peer_has_its_own():
    now = [1000.0]
    access = Access("127.0.0.1", TOKEN, clock=lambda: now[0])

    class Request:
        def __init__(self, remote: str) -> None:
            self.remote = remote

    def status(peer: str, token: str) -> int:
        try:
            access._check_token(Request(peer), token)  # type: ignore[arg-type]
        except Refused as refused:
            return refused.status
        return 200

    assert [status("a", "wrong") for _ in range(MAX_TRIES + 1)] == [401] * MAX_TRIES + [429]
    assert status("a", TOKEN) == 429
    assert status("b", TOKEN) == 200
    now[0] += SECONDS_A_TRY
    assert [status("a", "wrong"), status("a", TOKEN)] == [401, 429]
    now[0] += SECONDS_A_TRY
    assert status("a", TOKEN) == 200


# --- the token -----------------------------------------------------------------------------------


def test_a_token_file_is_read_without_its_line_ending(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    assert read_token(str(path), "key") == TOKEN
    assert read_token("", "key") == ""


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"short", "found 5 bytes"),
        (b"", "found 0 bytes"),
        (b"x" * 5_000, "found 4097 bytes"),
        (b"two words that are long enough", "found no single word"),
        ("ä".encode() * 20, "found no single word"),
        (None, "no such file"),
    ],
)
def test_a_token_file_that_will_not_do_is_a_clear_error(tmp_path, content, found):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    config = Config(security=SecurityTable(admin_token_file=str(path)), source="a.toml")
    with pytest.raises(ConfigError, match=r"^a\.toml: security\.admin_token_file: found") as raised:
        admin_token(config)
    assert found in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("10.1.2.3", False), ("localhost.evil.example", False), ("", False)],
)  # fmt: skip
def test_only_names_of_this_machine_are_loopback(host, is_own):
    assert is_loopback(host) is is_own


# --- what a page is told -------------------------------------------------------------------------


class Page:
    """Reads events as a browser does."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.place = ""

    async def event(self) -> tuple[str, object]:
        """Return the next event with its data; comments are passed over."""
        name = ""
        async with asyncio.timeout(10):
            while line := (await self.answer.content.readuntil(b"\n")).decode().rstrip("\n"):
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "id":
                    self.place = value
                elif field == "data":
                    found = json.loads(value)
        return (name, found) if name else await self.event()

    async def next(self, name: str) -> object:
        while True:
            found, data = await self.event()
            if found == name:
                return data

    async def records(self, until_seq: int) -> tuple[list[int], int]:
        """Read records up to one; return their numbers, and how many were lost."""
        seqs: list[int] = []
        lost = 0
        while not seqs or seqs[-1] < until_seq:
            batch = await self.next("records")
            assert isinstance(batch, dict)
            lost += batch["lost"]
            seqs += [row["seq"] for row in batch["rows"]]
        return seqs, lost


@asynccontextmanager
async def page(at: Site, exchange: int = 0, place: str = "") -> AsyncIterator[Page]:
    headers = {"Last-Event-ID": place} if place else {}
    url = f"http://127.0.0.1:{at.port}/inspector/events?exchange={exchange}"
    async with at.client.get(url, headers=headers) as answer:
        yield Page(answer)


async def test_a_page_is_told_of_exchanges_and_of_the_records_of_one():
    async with site() as at:
        at.ring.write(opened())
        async with page(at, 1) as told:
            hello = await told.next("hello")
            assert isinstance(hello, dict)
            assert hello["exports"]
            rows = await told.next("exchanges")
            assert isinstance(rows, list)
            assert [row["exchange"] for row in rows] == [1]
            at.ring.write(frame(2))
            assert (await told.records(2))[0][-1] == 2
            at.ring.write(closed(seq=3))
            assert (await told.records(3))[0][-1] == 3
            rows = await told.next("exchanges")
            assert isinstance(rows, list)
            assert rows[0]["outcome"] == "complete"


async def test_a_page_that_comes_back_goes_on_where_it_was():
    async with site() as at:
        for record in (opened(), frame(2), frame(3)):
            at.ring.write(record)
        async with page(at, 1) as told:
            assert (await told.records(3))[0] == [1, 2, 3]
            place = told.place
        at.ring.write(frame(4))
        async with page(at, 1, place) as told:
            assert (await told.records(4))[0] == [4]
        async with page(at, 1, "another-run:1:3") as told:
            assert (await told.records(4))[0] == [1, 2, 3, 4]


async def test_a_slow_page_is_told_how_much_it_missed_and_nothing_is_kept_for_it():
    async with site(bounds=RingBounds(max_exchange_records=50)) as at:
        at.ring.write(opened())
        async with page(at, 1) as told:
            await told.records(1)
            for seq in range(2, 2_000):  # no page reads while this loop runs
                at.ring.write(frame(seq))
            seqs, lost = await told.records(1_999)
        assert seqs == list(range(1_950, 2_000))
        assert lost == 1_948


async def test_a_page_that_does_not_read_holds_nobody_up_and_is_let_go(monkeypatch):
    monkeypatch.setattr(inspector_feed, "SLOW_SECONDS", 0.3)
    async with site() as at:
        at.ring.write(opened())
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port, limit=1024)
        writer.write(b"GET /inspector/events?exchange=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        for seq in range(2, 9_000):
            at.ring.write(frame(seq, "y" * 800))
            if seq % 500 == 0:
                await asyncio.sleep(0)
        async with page(at, 1) as told:  # another one is not held up
            assert (await told.records(8_999))[0][-1] == 8_999
        await asyncio.sleep(0.4)
        writer.transport.abort()


async def test_an_exchange_that_is_forgotten_is_told_as_gone():
    async with site() as at, page(at, 77) as told:
        assert await told.next("gone") == 77
        for path in ("record", "find", "capture"):
            assert await at.status(f"/inspector/{path}?exchange=77&seq=1&text=a") == 404
        assert await at.status(f"/inspector/record?exchange={'9' * 5000}") == 404


async def test_only_so_many_pages_look_on_and_one_that_leaves_makes_room():
    async with site() as at:
        pages = [page(at) for _ in range(MAX_VIEWERS)]
        for entered in pages:
            await (await entered.__aenter__()).next("hello")
        async with page(at) as told:
            text = await told.next("refused")
            assert isinstance(text, str)
            assert text.startswith(f"{MAX_VIEWERS} pages")
        await pages.pop().__aexit__(None, None, None)

        async def lets_in() -> bool:
            async with page(at) as told:
                return (await told.event())[0] == "hello"

        for _ in range(200):
            if await lets_in():
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("no room was made")
        for entered in pages:
            await entered.__aexit__(None, None, None)


async def test_closing_the_port_ends_its_pages_at_once():
    async with site() as at:
        told = await page(at).__aenter__()
        await told.next("hello")
    await until(lambda: told.answer.content.at_eof() or told.answer.connection is None)


# --- what a page asks for ------------------------------------------------------------------------


async def test_a_record_is_found_by_its_whole_payload():
    async with site() as at:
        for record in (opened(), frame(2, "x" * 5_000 + "Needle"), frame(3, "hay")):
            at.ring.write(record)
        _, body, _ = await at.ask("/inspector/find?exchange=1&text=nEEdle")
        assert json.loads(body) == [2]
        _, body, _ = await at.ask("/inspector/find?exchange=1&text=")
        assert json.loads(body) == []
        _, body, _ = await at.ask("/inspector/record?exchange=1&seq=3")
        assert json.loads(body)["before"]["text"] == "hay"
        assert await at.status("/inspector/record?exchange=1&seq=4") == 404
        assert await at.status("/inspector/record?exchange=1&seq=x") == 404


async def test_an_exchange_is_downloaded_as_a_capture(tmp_path: Path):
    async with site() as at:
        for record in (opened(), frame(2), closed(seq=3)):
            at.ring.write(record)
        async with at.client.get(
            f"http://127.0.0.1:{at.port}/inspector/capture?exchange=1"
        ) as answer:
            name = answer.headers["Content-Disposition"].partition('filename="')[2].rstrip('"')
            (tmp_path / name).write_bytes(await answer.read())
        assert [record.kind for record in read(tmp_path)] == ["open", "frame", "close"]


async def test_an_exchange_is_downloaded_as_har():
    async with site() as at:
        for record in (opened(1, "/chat?key=sk-ant-api03-" + "a" * 40), frame(2), closed(seq=3)):
            at.ring.write(record)
        status, body, headers = await at.ask("/inspector/har?exchange=1")
        assert status == 200
        assert 'filename="exchange-1.har"' in headers["Content-Disposition"]
        (entry,) = json.loads(body)["log"]["entries"]
        assert [message["data"] for message in entry["_webSocketMessages"]] == ["x"]
        assert "sk-ant" not in body


async def test_without_a_ring_there_is_nothing_to_write_out():
    async with site() as at:
        status, body, _ = await at.ask("/capture/write", "POST")
        assert status == 404
        assert "capture.dir" in body
        assert await at.status("/capture/write") == 405


async def test_a_capture_that_cannot_be_written_is_told_in_one_line():
    def fail() -> int:
        raise CaptureError("the disk is full")

    async with site(on_write=fail) as at:
        assert (await at.ask("/capture/write", "POST"))[:2] == (
            503,
            "the capture was not written: the disk is full\n",
        )
