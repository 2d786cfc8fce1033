import asyncio
import re
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.hosts.certificates import Authority
from tests.hosts.upstreams import Visit, Wire, connect, open_socket, upstream

from midstream.adapters.capture_format import read

LISTENING = re.compile(
    r"midstream listening on (https?)://127\.0\.0\.1:(\d+) -> (\S+), admin http://127\.0\.0\.1:(\d+)\n"
)
SLOW = re.compile(r"WARNING asyncio: Executing .* took [\d.]+ seconds$")
"""What asyncio's debug mode says of a busy machine."""
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Process:
    """A gateway in a process of its own, with every warning an error."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.port = self.admin_port = 0
        self.scheme = self.upstream = ""

    async def line(self) -> str:
        assert self.process.stderr is not None
        async with asyncio.timeout(60):
            while SLOW.search(line := (await self.process.stderr.readline()).decode()):
                pass
            return line

    async def listening(self) -> None:
        line = await self.line()
        found = LISTENING.fullmatch(line)
        assert found is not None, line
        self.scheme, self.upstream = found[1], found[3]
        self.port, self.admin_port = int(found[2]), int(found[4])

    async def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what else was written."""
        assert self.process.stderr is not None
        async with asyncio.timeout(60):
            rest = (await self.process.stderr.read()).decode().splitlines(keepends=True)
            code = await self.process.wait()
        return code, "".join(line for line in rest if not SLOW.search(line))


def config(tmp_path: Path, url: str, *lines: str, drain_seconds: float = 5) -> Path:
    path = tmp_path / "midstream.toml"
    text = "\n".join(lines)
    path.write_text(
        f'listen = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\n{text}\n'
        f"[limits]\ndrain_seconds = {drain_seconds}\n"
        f'[[route]]\nupstream = "{url}"\naddons = []\n'
    )
    return path


@asynccontextmanager
async def run(path: Path) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-X", "dev", "-W", "error", "-m", "midstream", "run", "--config", path,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def hello(visit: Visit) -> None:
    if visit.request.get("upgrade"):
        await visit.accept()
        await visit.rest()
    await visit.respond(body=b"hello")


async def test_it_tells_its_ports_serves_and_ends_on_a_signal(tmp_path):
    async with upstream(hello) as up, run(config(tmp_path, up.url)) as gw:
        await gw.listening()
        assert (gw.scheme, gw.upstream) == ("http", up.url)
        async with await connect(gw.port) as client:
            await client.send(GET)
            assert await client.body(await client.head()) == b"hello"
        async with await connect(gw.admin_port) as client:
            await client.send(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert await client.body(await client.head()) == b"ready\n"
        gw.process.send_signal(signal.SIGTERM)
        assert await gw.end() == (0, "")


async def test_a_signal_ends_open_sockets_with_1001(tmp_path):
    async with upstream(hello) as up, run(config(tmp_path, up.url)) as gw:
        await gw.listening()
        client, head = await open_socket(gw.port)
        async with client:
            assert head.status == 101
            gw.process.send_signal(signal.SIGINT)
            assert await client.close_code() == (1001, "")
            await client.send_close(1001)
            code, rest = await gw.end()
            assert (code, rest) == (0, "")


async def test_a_second_signal_ends_it_at_once(tmp_path):
    async with upstream(hello) as up, run(config(tmp_path, up.url, drain_seconds=600)) as gw:
        await gw.listening()
        client, _ = await open_socket(gw.port)
        async with client:
            gw.process.send_signal(signal.SIGTERM)
            async with await connect(gw.admin_port) as admin:
                draining = 0
                while draining != 503:
                    await admin.send(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
                    head = await admin.head()
                    await admin.body(head)
                    draining = head.status
            gw.process.send_signal(signal.SIGTERM)
            code, _ = await gw.end()
            assert code == 128 + signal.SIGTERM


async def test_a_taken_port_is_one_line_and_exit_code_2(tmp_path, unused_tcp_port):
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", unused_tcp_port)
    async with taken:
        for key in ("admin", "listen"):
            path = config(tmp_path, "http://127.0.0.1:9")
            text = path.read_text()
            path.write_text(
                re.sub(rf'{key} = "[^"]+"', f'{key} = "127.0.0.1:{unused_tcp_port}"', text)
            )
            async with run(path) as gw:
                code, text = await gw.end()
                assert code == 2
                at = f"{key}: cannot listen on 127.0.0.1:{unused_tcp_port}: address already in use"
                assert text.count("\n") == 1
                assert at in text


async def test_what_passes_is_captured_where_a_folder_is_named(tmp_path):
    captures = tmp_path / "captures"
    path = config(tmp_path, "URL")
    async with upstream(hello) as up:
        path.write_text(
            path.read_text().replace("URL", up.url) + f'[capture]\ndir = "{captures}"\n'
        )
        async with run(path) as gw:
            await gw.listening()
            async with await connect(gw.port) as client:
                await client.send(GET)
                await client.body(await client.head())
            gw.process.send_signal(signal.SIGTERM)
            assert (await gw.end())[0] == 0
    segments = sorted(captures.glob("*.cap"))
    assert segments
    assert any(b"hello" in segment.read_bytes() for segment in segments)


async def served(gw: Process, count: int) -> None:
    for _ in range(count):
        async with await connect(gw.port) as client:
            await client.send(GET)
            await client.body(await client.head())


async def test_sigusr1_writes_what_a_ring_holds_and_the_gateway_goes_on(tmp_path):
    captures = tmp_path / "captures"
    async with upstream(hello) as up:
        path = config(tmp_path, up.url)
        table = f'[capture]\ndir = "{captures}"\nkeep = "ring"\nmin_free_bytes = 0\n'
        path.write_text(path.read_text() + table)
        async with run(path) as gw:
            await gw.listening()
            await served(gw, 3)
            gw.process.send_signal(signal.SIGUSR1)
            for _ in range(400):
                if any(list(read(found)) for found in captures.glob("*.cap")):
                    break
                await asyncio.sleep(0.05)
            await served(gw, 1)
            gw.process.send_signal(signal.SIGTERM)
            assert (await gw.end())[0] == 0
    (segment,) = captures.glob("*.cap")
    assert {record.exchange for record in read(segment)} == {1, 2, 3}


async def test_sigusr1_does_not_end_a_gateway_that_captures_nothing(tmp_path):
    async with upstream(hello) as up, run(config(tmp_path, up.url)) as gw:
        await gw.listening()
        gw.process.send_signal(signal.SIGUSR1)
        await served(gw, 1)
        gw.process.send_signal(signal.SIGTERM)
        code, text = await gw.end()
        assert (code, text.count("SIGUSR1: nothing is captured")) == (0, 1)


async def test_tls_is_spoken_to_clients_and_verified_at_upstreams(tmp_path):
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    cert, key = ours.certificate("127.0.0.1")
    names: list[str | None] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*theirs.certificate("localhost"))
    context.set_servername_callback(lambda _socket, name, _context: names.append(name))
    server = await asyncio.start_server(behave, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    trusting = f'[tls]\ncert = "{cert}"\nkey = "{key}"\nupstream_ca = "{theirs.file}"'
    distrusting = f'[tls]\ncert = "{cert}"\nkey = "{key}"'
    answers: list[tuple[int, bytes]] = []
    async with server:
        for table in (trusting, distrusting):
            path = config(tmp_path, url)
            path.write_text(f"{path.read_text()}{table}\n")
            async with run(path) as gw:
                await gw.listening()
                assert gw.scheme == "https"
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", gw.port, ssl=ssl.create_default_context(cafile=ours.file)
                )
                async with Wire(reader, writer) as client:
                    await client.send(GET)
                    head = await client.head()
                    answers.append((head.status, await client.body(head)))
    assert answers[0] == (200, b"hello")
    assert answers[1][0] == 502
    assert b"not trusted" in answers[1][1]
    assert names[0] == "localhost"
