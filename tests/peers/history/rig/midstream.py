"""midstream before the provider, as a person would start it."""

import asyncio
import re
import socket
import sys
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.peers.history.rig.places import REPOSITORY, WORK, tail

START_SECONDS = 60.0
STARTS = 2  # a busy machine, or a port that another took meanwhile
END_SECONDS = 10.0
POLL_SECONDS = 0.05
METRICS_SECONDS = 5.0
COUNTED = re.compile(
    r"^midstream_((?:repairs|repair_errors|repair_skipped|history_pairs|history_prefix_items)"
    r"_total{.*}) ([1-9][\d.]*)$"
)


@dataclass(frozen=True)
class Door:
    """Where the provider is reached, and where the proxy before it is asked what it counted."""

    base: str
    admin: str

    async def counted(self) -> dict[str, float]:
        """What was mended, declined, compared and failed: each series that is not 0."""

        def read() -> str:
            with urllib.request.urlopen(f"{self.admin}/metrics", timeout=METRICS_SECONDS) as said:
                text: str = said.read().decode()
                return text

        lines = (await asyncio.to_thread(read)).splitlines()
        found = [match.groups() for line in lines if (match := COUNTED.match(line))]
        return {series: float(count) for series, count in found}


@asynccontextmanager
async def midstream(host: str, upstream: str) -> AsyncIterator[Door]:
    """Run `midstream run` (gateway) or `midstream mitm` (mitm, in reverse mode).

    Raises: RuntimeError if it does not come up.
    """
    for left in reversed(range(STARTS)):
        port, admin = _free_port(), _free_port()
        process = await _started(_arguments(host, upstream, port, admin), WORK / f"{host}.log")
        try:
            await _wait_for(process, port, WORK / f"{host}.log")
        except RuntimeError:
            await _end(process)
            if not left:
                raise
        else:
            break
    try:
        yield Door(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin}")
    finally:
        await _end(process)


def _arguments(host: str, upstream: str, port: int, admin: int) -> list[str]:
    if host == "gateway":
        places = ["--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"]
        return ["run", "--upstream", upstream, *places]
    settings = WORK / "mitm.toml"  # the mitm verb has no flag for the admin port
    settings.write_text(f'admin = "127.0.0.1:{admin}"\n')
    options = ["--mode", f"reverse:{upstream}", "--set", f"confdir={WORK / 'mitm-conf'}"]
    options += ["--listen-host", "127.0.0.1", "--listen-port", str(port)]
    return ["mitm", "--config", str(settings), "--", *options, "--set", "termlog_verbosity=warn"]


async def _started(arguments: list[str], log: Path) -> asyncio.subprocess.Process:
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "midstream", *arguments]
    with log.open("wb") as said:
        return await asyncio.create_subprocess_exec(
            *command, cwd=REPOSITORY, stdin=asyncio.subprocess.DEVNULL, stdout=said, stderr=said
        )


async def _wait_for(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not await _listens(port):
        if process.returncode is not None or time.monotonic() > end:
            raise RuntimeError(f"midstream did not come up within {START_SECONDS} s\n{tail(log)}")
        await asyncio.sleep(POLL_SECONDS)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _listens(port: int) -> bool:
    try:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
