"""mitmproxy as a process of its own: `mitmdump -s addons/load.py`, and `midstream mitm`."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from tests.hosts.mitm_master import (
    Peer,
    client,
    close_frame,
    confdir,
    frame,
    socket_to,
    upstream,
)

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SECONDS = 60
PACK = '''
from typing import ClassVar

import msgspec

from midstream.core.addon import KEEP, Addon
from midstream.core.addon import Verdict
from midstream.dialects.cloudflare_chat import DIALECT


class Options(msgspec.Struct):
    pass


class Shout(Addon[None, None]):
    """Sends every message of the server twice, the second time loud."""

    name = "shout"
    dialects = (DIALECT.name,)
    rules = ("loud",)
    Options: ClassVar[type[msgspec.Struct]] = Options

    def __init__(self, options):
        pass

    def new_state(self):
        return None

    def new_conversation(self):
        return None

    def on_frame(self, frame, ctx):
        if frame.sender == "client":
            return KEEP
        return Verdict.replace("loud", frame, frame.with_payload(frame.wire.upper()))
'''


class Process:
    """A process, and what it has written so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def line(self, pattern: str) -> str:
        """Read until a line matches, and return the first group."""
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while text := (await self.process.stdout.readline()).decode():
                self.lines.append(text)
                if found := re.search(pattern, text):
                    return found.group(1)
        raise AssertionError(f"{pattern!r} not in {''.join(self.lines)}")


@contextlib.asynccontextmanager
async def running(*command: str, path: Path) -> AsyncIterator[Process]:
    environment = os.environ | {"PYTHONPATH": str(path), "PYTHONUNBUFFERED": "1"}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(SECONDS):
            await process.communicate()


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    (tmp_path / "shout_pack.py").write_text(PACK)
    return tmp_path


def configuration(folder: Path, admin: int = 0, upstream_port: int | None = None) -> str:
    path = folder / "midstream.toml"
    target = f'upstream = "http://127.0.0.1:{upstream_port}"\n' if upstream_port else ""
    path.write_text(
        f'listen = "127.0.0.1:0"\nadmin = "127.0.0.1:{admin}"\n'
        f'[[route]]\nname = "chat"\naddons = ["shout_pack:Shout"]\n{target}'
    )
    return str(path)


async def chats(peer: Peer) -> None:
    """Serve a WebSocket that says two things in one segment and closes."""
    await peer.upgrade()
    await asyncio.sleep(0.05)
    await peer.send(frame("one") + frame("two") + close_frame(4001))
    await peer.rest()


async def check_mended(port: int) -> None:
    async with socket_to(port, "/agents/chat/room") as peer:
        assert await peer.texts(4) == ["one", "ONE", "two", "TWO"]
        assert await peer.closed() == 4001


async def metrics_of(admin: int) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{admin}/metrics") as response,
    ):
        return await response.text()


async def test_mitmdump_runs_the_one_script(pack):
    async with upstream(chats) as port:
        command = (
            str(BIN / "mitmdump"), "-s", "addons/load.py", "--mode",
            f"reverse:http://127.0.0.1:{port}", "--listen-host", "127.0.0.1", "-p", "0",
            "--set", f"confdir={confdir()}", "--set", f"midstream_config={configuration(pack)}",
        )  # fmt: skip
        async with running(*command, path=pack) as process:
            listen = int(await process.line(r"listening at 127\.0\.0\.1:(\d+)"))
            admin = int(await process.line(r"midstream admin on http://127\.0\.0\.1:(\d+)"))
            await check_mended(listen)
            text = await metrics_of(admin)
            process.process.terminate()
            assert await asyncio.wait_for(process.process.wait(), SECONDS) == 0
    labels = 'addon="shout",mode="repair",route="chat",rule="loud"'
    found = re.search(r"midstream_repairs_total\{([^}]*)\} (\S+)", text)
    assert found is not None
    assert ",".join(sorted(found.group(1).split(","))) == labels
    assert float(found.group(2)) == 2


async def test_the_verb_runs_mitmdump_with_the_upstream_of_the_configuration(pack):
    async with upstream(chats) as port:
        path = configuration(pack, upstream_port=port)
        command = (
            str(BIN / "midstream"), "mitm", "--config", path, "--observe",
            "--", "--set", f"confdir={confdir()}",
        )  # fmt: skip
        async with running(*command, path=pack) as process:
            listen = int(await process.line(r"listening at 127\.0\.0\.1:(\d+)"))
            admin = int(await process.line(r"midstream admin on http://127\.0\.0\.1:(\d+)"))
            async with socket_to(listen, "/agents/chat/room") as peer:
                assert await peer.texts(2) == ["one", "two"]
            assert 'mode="observe"' in await metrics_of(admin)


async def test_a_taken_admin_port_is_a_warning_and_traffic_goes_on(pack):
    async with upstream(chats) as port, upstream(chats) as taken:
        path = configuration(pack, admin=taken, upstream_port=port)
        command = (
            str(BIN / "midstream"), "mitm", "--config", path,
            "--", "--set", f"confdir={confdir()}",
        )  # fmt: skip
        async with running(*command, path=pack) as process:
            listen = int(await process.line(r"listening at 127\.0\.0\.1:(\d+)"))
            assert await process.line(r"(admin: cannot listen on .*; going on without it)")
            await check_mended(listen)


async def test_mitmweb_runs_too_and_streams(pack):
    async def streams(peer: Peer) -> None:
        await peer.read_head()
        await peer.respond(b"", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        await peer.send_chunks(b"data: one\n\n", end=False)
        await peer.rest()

    async with upstream(streams) as port:
        path = configuration(pack, upstream_port=port)
        command = (
            str(BIN / "midstream"), "mitm", "--config", path, "--web", "--",
            "--set", f"confdir={confdir()}", "--no-web-open-browser", "--web-port", "0",
        )  # fmt: skip
        async with running(*command, path=pack) as process:
            listen = int(await process.line(r"listening at 127\.0\.0\.1:(\d+)"))
            async with client(listen) as peer:
                await peer.send(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
                await peer.read_head()
                assert await peer.chunk() == b"data: one\n\n"


async def test_a_wrong_option_of_mitmproxy_leaves_with_2(pack):
    command = (str(BIN / "midstream"), "mitm", "--", "--no-such-option")
    async with running(*command, path=pack) as process:
        assert await asyncio.wait_for(process.process.wait(), SECONDS) == 2


async def test_a_wrong_configuration_stops_the_script(pack):
    (pack / "midstream.toml").write_text("wrong = 1\n")
    command = (
        str(BIN / "mitmdump"), "-s", "addons/load.py", "--listen-host", "127.0.0.1", "-p", "0",
        "--set", f"confdir={confdir()}", "--set", f"midstream_config={pack / 'midstream.toml'}",
    )  # fmt: skip
    async with running(*command, path=pack) as process:
        assert await process.line(r"(wrong: .*)")
        assert await asyncio.wait_for(process.process.wait(), SECONDS) == 1
