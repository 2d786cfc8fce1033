"""What `midstream run` records replays as it was, and stands in for the server it recorded."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from midstream import demo, wiring
from midstream.adapters.capture_exchanges import Gathered, gathered
from midstream.adapters.capture_open import open_capture
from midstream.cli import main
from midstream.config import load
from midstream.config.values import Address
from midstream.core.frames import Side
from midstream.demo.fault import Fault, Outcome
from midstream.hosts import gateway
from midstream.hosts.replay_server import ReplayServer

START_SECONDS = 60
CAPTURES = sorted((Path(__file__).parents[1] / "captures").rglob("*.cap"))
STREAMED = [f for f in demo.FAULTS if f.addon in ("snapshot-to-delta", "final-message-once")]


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def midstream(upstream: str, captures: Path) -> AsyncIterator[str]:
    """Run the command with a capture, and end it as a user does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midstream", "run", "--upstream", upstream, "--capture",
        str(captures), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield await listening(process)
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), START_SECONDS)


async def listening(process: asyncio.subprocess.Process) -> str:
    """Return the address that a command says it listens on."""
    assert process.stdout is not None
    async with asyncio.timeout(START_SECONDS):
        while line := (await process.stdout.readline()).decode():
            if found := re.search(r"listening on (http://\S+)", line):
                return found[1]
    raise AssertionError("it ended without listening")


async def record(fault: Fault, captures: Path) -> Outcome:
    scene = fault.scene()
    async with serving(scene.app()) as upstream, midstream(upstream, captures) as proxy:
        return await scene.play(proxy)


@pytest.mark.parametrize("fault", demo.FAULTS, ids=lambda fault: fault.addon)
def test_a_real_run_replays_with_the_same_verdicts_and_bytes(
    fault: Fault, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = asyncio.run(record(fault, tmp_path))
    assert outcome.is_right, outcome.seen

    assert main(["replay", str(tmp_path), "--diff"]) == 0
    out = capsys.readouterr().out
    assert f"repair {fault.addon} " in out
    assert "differences to the capture: 0" in out
    assert "note:" not in out


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_what_a_replay_made_of_any_capture_replays_without_differences(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made.cap"
    assert main(["replay", str(path), "--out", str(out)]) == 0
    assert main(["replay", str(out), "--diff"]) == 0
    assert capsys.readouterr().out.endswith("differences to the capture: 0\n")


@pytest.mark.parametrize("fault", STREAMED, ids=lambda fault: fault.addon)
async def test_a_recorded_server_shows_its_fault_again_and_midstream_mends_it_again(
    fault: Fault, tmp_path: Path
) -> None:
    await record(fault, tmp_path)
    recorded = list(gathered(open_capture(tmp_path), seen_by=Side.SERVER))

    assert not (await _played(fault, recorded, is_proxied=False)).is_right
    assert (await _played(fault, recorded, is_proxied=True)).is_right


@pytest.mark.parametrize("fault", STREAMED, ids=lambda fault: fault.addon)
async def test_what_midstream_sent_can_be_served_as_well(fault: Fault, tmp_path: Path) -> None:
    await record(fault, tmp_path)
    mended = list(gathered(open_capture(tmp_path), seen_by=Side.CLIENT))

    assert (await _played(fault, mended, is_proxied=False)).is_right


async def _played(fault: Fault, recorded: list[Gathered], *, is_proxied: bool) -> Outcome:
    """Play a scene against a recorded server, directly or with midstream in front of it."""
    server = ReplayServer(recorded, 0)
    url = f"http://127.0.0.1:{await server.listen(Address('127.0.0.1', 0))}"
    flags = {"upstream": url, "listen": "127.0.0.1:0", "admin": "127.0.0.1:0"}
    config = load(flags=flags, environ={})
    proxy = await gateway.start(wiring.engine(config), config)
    try:
        return await fault.scene().play(f"http://127.0.0.1:{proxy.port}" if is_proxied else url)
    finally:
        await proxy.close()
        await server.close()
