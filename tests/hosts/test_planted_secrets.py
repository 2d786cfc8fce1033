"""Secrets through a whole gateway that captures everything: none is left anywhere."""

import asyncio
import contextlib
import json
import signal
from pathlib import Path

import msgpack
from tests.hosts.test_gateway_process import config, run
from tests.hosts.upstreams import BINARY, CLOSE, TEXT, Visit, Wire, connect, open_socket, upstream
from tests.planted import PLANTED, chars

from midstream.adapters.capture_format import read

PAGES = ("/metrics", "/streams.json", "/inspector/state", "/readyz", "/livez")
PLACES = ("/other", "/v1/chat/completions")
"""A path that nobody reads, and one that the addons do."""
COOKIE = chars(30)
EXCHANGES = 3 * len(PLANTED) + 1
"""Two requests and one socket for each secret, and one stream of events."""


def nested(text: str) -> bytes:
    inner = json.dumps({"messages": [{"role": "user", "content": f"use {text} now\n"}]})
    return json.dumps({"model": "m", "init": {"body": inner}, "note": text}).encode()


async def repeat(visit: Visit) -> None:
    """Answer in the way of the request: a socket, events, or its own body and headers."""
    request = visit.request
    if request.get("upgrade"):
        await visit.accept()
        while True:
            opcode, payload = await visit.frame()
            await visit.send_frame(opcode, payload)
            if opcode == CLOSE:
                return
    body = await visit.reader.readexactly(int(request.get("content-length") or 0))
    if request.target.startswith("/events"):
        await visit.begin_chunks()
        for _, text, _ in PLANTED:
            await visit.send_chunk(b"event: note\ndata: " + nested(text) + b"\n\n")
        await visit.send_chunk(b"")
        return
    headers = [("Content-Type", "application/json"), ("X-Note", request.get("x-note") or ""),
               ("Set-Cookie", f"session={COOKIE}; Path=/")]  # fmt: skip
    await visit.respond(headers=headers, body=body)


async def talk(port: int) -> None:
    """Send every secret to every place."""
    async with await connect(port) as client:
        for place in PLACES:
            for name, text, _ in PLANTED:
                query = text.replace(" ", "+").replace("#", "")
                body = nested(text)
                await client.send(
                    f"POST {place}?page=2&note={query}&api_key={chars(20)} HTTP/1.1\r\nHost: a\r\n"
                    f"X-Note: {text}\r\nAuthorization: Bearer {text}\r\nCookie: a={text}; b=1\r\n"
                    f"X-Name: {name}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                assert await client.body(await client.head()) == body
        await client.send(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"event: note" in await client.body(await client.head())
    for name, text, _ in PLANTED:
        socket, head = await open_socket(port, "/agents/chat/x")
        async with socket:
            assert head.status == 101
            packed = msgpack.packb({"password": chars(9), "text": f"use {text} now", "n": 1})
            for opcode, payload in ((TEXT, nested(text)), (BINARY, packed)):
                await socket.send_frame(opcode, payload)
                assert (await socket.frame())[1] == payload, name
            await socket.send_close(4001, text[:120])
            assert await socket.close_code() == (4001, text[:120])


async def get(client: Wire, path: str) -> tuple[int, bytes]:
    await client.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head = await client.head()
    return head.status, await client.body(head)


async def events(port: int, exchange: int) -> bytes:
    """Return what a page is told at once when it looks at an exchange."""
    told = b""
    async with await connect(port) as client:
        ask = (
            f"GET /inspector/events?exchange={exchange} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        )
        await client.send(ask.encode())
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(0.5):
                    told += await client.reader.read(1 << 16) or b"over"
                assert not told.endswith(b"over")
        client.abort()
    return told


async def pages(port: int) -> bytes:
    """Return all that the admin port tells of every exchange."""
    told = []
    async with await connect(port) as client:
        told += [(await get(client, path))[1] for path in PAGES]
        for number in range(1, EXCHANGES + 1):
            for path in ("capture", "har"):
                status, body = await get(client, f"/inspector/{path}?exchange={number}")
                assert status == 200, (path, number)
                told.append(body)
            for seq in range(1, 9):
                _, body = await get(client, f"/inspector/record?exchange={number}&seq={seq}")
                told.append(body)
    looked_at = (1, len(PLANTED) + 1, 2 * len(PLANTED) + 1, EXCHANGES)
    told += [await events(port, number) for number in looked_at]
    assert all(told)
    return b"\n".join(told)


async def test_planted_secrets_are_in_no_file_no_log_line_no_metric_and_no_page(tmp_path: Path):
    directory = tmp_path / "captures"
    settings = ("[capture]", f'dir = "{directory}"', "min_free_bytes = 0")
    path = config(tmp_path, "URL", *settings)
    async with upstream(repeat) as up:
        text = path.read_text().replace('"URL"', f'"{up.url}"').replace("addons = []\n", "")
        path.write_text(text)
        async with run(path) as gw:
            await gw.listening()
            async with asyncio.timeout(120):
                await talk(gw.port)
                told = await pages(gw.admin_port)
            gw.process.send_signal(signal.SIGTERM)
            code, log = await gw.end()
    assert code == 0
    records = [record for file in directory.iterdir() for record in read(file)]
    assert len(records) > 10 * len(PLANTED)
    files = b"".join(file.read_bytes() for file in directory.iterdir())
    assert b"redacted:" in files
    assert b"redacted:" in told
    assert b'reason="secret"} 0.0' in told
    for name, whole, secret in PLANTED:
        for where, data in (("files", files), ("log", log.encode()), ("pages", told)):
            for form in (secret, secret.replace(" ", "+")):
                assert form.encode() not in data, (name, where)
        assert whole
    for each in (COOKIE, chars(9), chars(20)):
        assert each.encode() not in files + told + log.encode()
