"""Processes on free loopback ports: started, waited for in bounded time, ended by their id."""

import asyncio
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from tests.peers.a2a.rig.places import REPOSITORY, WORK

END_SECONDS = 4.0
POLL_SECONDS = 0.05
LOG_CHARACTERS = 1500


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


async def listens(port: int) -> bool:
    try:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-LOG_CHARACTERS:]


class Running:
    """A server or a proxy, with its log under the rig's folder."""

    def __init__(self, label: str, port: int) -> None:
        self.label = label
        self.port = port
        self.log = WORK / "logs" / f"{label}.log"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, command: Sequence[str | Path], within_s: float) -> None:
        """Start it and wait until its port answers.

        Raises: RuntimeError if it ends before, or is not up in time; it is ended then.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command, cwd=REPOSITORY, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log
            )
        end = time.monotonic() + within_s
        while not await listens(self.port):
            ended = self.process.returncode
            if ended is not None or time.monotonic() > end:
                await self.stop()
                how = f"did not come up within {within_s:g} s" if ended is None else "ended at once"
                raise RuntimeError(f"{self.label} {how}\n{end_of(self.log)}")
            await asyncio.sleep(POLL_SECONDS)

    async def stop(self) -> None:
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), END_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


async def output_of(command: Sequence[str | Path], within_s: float, log: Path) -> str:
    """Run a program to its end and return what it printed; what it complained of is in `log`.

    Raises: RuntimeError if it takes longer, or fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as complaints:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE, stderr=complaints
        )
        try:
            printed, _ = await asyncio.wait_for(process.communicate(), within_s)
        except BaseException:
            process.kill()
            await process.wait()
            raise
    if process.returncode:
        raise RuntimeError(f"{command[2]} ended with {process.returncode}\n{end_of(log)}")
    return printed.decode()
