"""Real agent servers and real React clients, with the proxy between them.

The rig itself is in `cloudflare/` (Node): see its README.md. Here its runs are started, at most
WORKERS at a time, and their rows are asserted on.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.peers

RIG = Path(__file__).parent / "cloudflare"
WORKERS = 2
INSTALL_SECONDS = 900
START_SECONDS = 180
RUN_SECONDS = 600
SUITE_SECONDS = 2700

type Row = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    server: str
    client: str
    via: str
    latency: str
    declare: str
    page: str
    cells: str

    def __str__(self) -> str:
        *names, _cells = astuple(self)
        return "-".join(name for name in names if name not in ("-", "0", "jsdom"))

    def command(self) -> list[str]:
        command = ["node", "cells.mjs", "--retries", "1"]
        for name, value in [
            ("server", self.server),
            ("client", self.client),
            ("via", self.via),
            ("latency", self.latency),
            ("declare", self.declare),
            ("page", self.page),
            ("cell", self.cells),
        ]:
            if value != "-":
                command += [f"--{name}", value]
        return command


def setups() -> list[Setup]:
    """The `ci` lines of matrix.txt."""
    found = []
    for line in (RIG / "matrix.txt").read_text().splitlines():
        if line.startswith("ci "):
            _set, server, client, vias, latencies, declare, page, cells = line.split()
            for via, latency in product(vias.split(","), latencies.split(",")):
                found.append(Setup(server, client, via, latency, declare, page, cells))
    return found


SETUPS = setups()
COMPACTIONS = ["direct", "gateway", "mitm"]


class Rig:
    """Servers up, runs queued; ends exactly what it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pool = ThreadPoolExecutor(WORKERS)
        self.running: set[subprocess.Popen[str]] = set()
        self.runs: dict[object, Future[tuple[int, str, list[Row]]]] = {}
        self.servers: list[str] = []

    def start_servers(self, names: list[str]) -> None:
        said = subprocess.run(
            ["node", "rig/servers.mjs", "start", *names],
            cwd=RIG,
            check=True,
            timeout=START_SECONDS,
            text=True,
            stdout=subprocess.PIPE,
        ).stdout
        lines = [line for line in said.splitlines() if "already up" not in line]
        self.servers = [line.split()[0] for line in lines]

    def submit(self, key: object, command: list[str]) -> None:
        out = self.folder / f"{len(self.runs)}.json"
        self.runs[key] = self.pool.submit(self.run, [*command, "--out", str(out)], out)

    def run(self, command: list[str], out: Path) -> tuple[int, str, list[Row]]:
        process = subprocess.Popen(
            command,
            cwd=RIG,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.running.add(process)
        try:
            said, _ = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            end_group(process)
            said, _ = process.communicate()
        self.running.discard(process)
        rows = json.loads(out.read_text()) if out.exists() else []
        return process.returncode, said, rows

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        for process in list(self.running):
            end_group(process)
        self.pool.shutdown(wait=True)
        if self.servers:
            subprocess.run(
                ["node", "rig/servers.mjs", "stop", *self.servers],
                cwd=RIG,
                check=False,
                timeout=60,
            )


def end_group(process: subprocess.Popen[str]) -> None:
    """SIGTERM: the rig's own programs end what they started themselves."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)


@pytest.fixture(scope="session")
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    subprocess.run(["node", "install.mjs"], cwd=RIG, check=True, timeout=INSTALL_SECONDS)
    rig = Rig(tmp_path_factory.mktemp("peers"))
    try:
        wanted = {
            item.callspec.params.get("setup") or item.callspec.params.get("via")
            for item in request.session.items
            if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        }
        runs = [setup for setup in SETUPS if setup in wanted]
        compactions = [via for via in COMPACTIONS if via in wanted]
        names = {setup.server for setup in runs} | ({"think", "aichat"} if compactions else set())
        if names:
            rig.start_servers(sorted(names))
        for setup in runs:
            rig.submit(setup, setup.command())
        for via in compactions:
            rig.submit(via, ["node", "compaction.mjs", "--retries", "1", "--via", via])
        yield rig
    finally:
        rig.close()


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_cells(rig: Rig, setup: Setup) -> None:
    """Every cell of this set-up holds what expected.txt says of it."""
    if setup.page == "chromium" and not shutil.which("chromium"):
        pytest.skip("Debian's chromium is not installed")
    code, said, rows = rig.runs[setup].result(timeout=SUITE_SECONDS)
    print(said)
    worse = {row["cell"]: row["failures"] for row in rows if row["failures"]}
    assert not worse
    assert rows, said
    assert code == 0


@pytest.mark.parametrize("via", COMPACTIONS)
def test_compaction(rig: Rig, via: str) -> None:
    """No stored summaries with the proxy; without it the fault shows."""
    code, said, rows = rig.runs[via].result(timeout=SUITE_SECONDS)
    print(said)
    worse = {row["cell"]: row["failures"] for row in rows if row["failures"]}
    assert not worse
    assert rows, said
    assert code == 0
