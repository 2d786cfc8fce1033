"""Real runs, recorded by midstream itself: they replay as they were, and stand in for the server.

The rigs are those of the other tests here: what `MIDSTREAM_CAPTURE_DIR` says reaches the midstream
that they start.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.peers.history.rig.install import command_of, install
from tests.peers.history.rig.modes import Cell
from tests.peers.history.rig.places import REPOSITORY
from tests.peers.history.rig.play import held_by, play

from midstream.adapters.capture_exchanges import gathered
from midstream.adapters.capture_format import segments_in
from midstream.adapters.capture_open import open_capture
from midstream.cli import main
from midstream.config.values import Address
from midstream.core.frames import Side
from midstream.hosts.replay_server import ReplayServer

pytestmark = pytest.mark.peers

CLOUDFLARE = Path(__file__).parent / "cloudflare"
RUN_SECONDS = 900
OPENAI = [Cell("openai", "store", "plain", via) for via in ("direct", "gateway")]


def run(command: Sequence[str], folder: Path, captures: Path) -> None:
    """Run a rig with a capture of everything, and end what is left of it after its time."""
    environment = os.environ | {"MIDSTREAM_CAPTURE_DIR": str(captures)}
    process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)
    try:
        assert process.wait(timeout=RUN_SECONDS) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=30)


def assert_replays(captures: Path, addon: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Replay every capture of a folder: the same verdicts, the same bytes."""
    files = segments_in(captures)
    assert files
    for file in files:
        capsys.readouterr()
        code = main(["replay", str(file), "--diff"])
        out = capsys.readouterr().out
        assert code == 0, out[-4000:]
        assert f"repair {addon} " in out
        assert "differences to the capture: 0\n" in out


@pytest.mark.parametrize("via", ["gateway", "mitm"])
def test_a_real_a2a_run_replays_with_the_same_verdicts_and_bytes(
    via: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        sys.executable, "-m", "tests.peers.a2a.run", "--agent", "sdk1-rpc1", "--client", "sdk1",
        "--via", via, "--out", str(tmp_path / "run.json"),
    ]  # fmt: skip
    run(command, REPOSITORY, tmp_path / "captures")
    assert json.loads((tmp_path / "run.json").read_text())["rows"]
    assert_replays(tmp_path / "captures", "snapshot-to-delta", capsys)


@pytest.mark.parametrize("via", ["gateway", "mitm"])
def test_a_real_chat_replays_with_the_same_verdicts_and_bytes(
    via: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["node", "install.mjs", "aichat"], CLOUDFLARE, tmp_path / "none")
    cells = ["--server", "aichat", "--client", "c17-r2", "--cell", "1a,7"]
    run(["node", "cells.mjs", "--via", via, *cells], CLOUDFLARE, tmp_path / "captures")
    assert_replays(tmp_path / "captures", "replay-overlap", capsys)


def test_a_real_client_talks_to_yesterdays_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    monkeypatch.setenv("MIDSTREAM_CAPTURE_DIR", str(tmp_path))
    cell = OPENAI[1]
    (row,) = [row for row in asyncio.run(play(OPENAI)).rows.values() if row.cell == cell]
    (file,) = [file for file in segments_in(tmp_path) if file.name.startswith("run-")]
    recorded = list(gathered(open_capture(file), seen_by=Side.SERVER))

    async def again() -> dict[str, object]:
        server = ReplayServer(recorded, 0)
        port = await server.listen(Address("127.0.0.1", 0))
        try:
            job = cell.job(f"http://127.0.0.1:{port}")
            held = await held_by(command_of(cell.client), [job], tmp_path / "client.log")
        finally:
            await server.close()
        return held[cell.key]

    assert row.held["error"] == ""
    assert asyncio.run(again()) == row.held
