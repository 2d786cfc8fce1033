"""Real A2A servers and clients, with the proxy between them.

The rig itself is in `a2a/`: see its README.md. It plays the whole matrix once, in a process of its
own; here its rows are compared with what expected.txt says of them.
"""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.peers.a2a.rig.expect import FINE, expected, lines, worse_rows
from tests.peers.a2a.rig.places import REPOSITORY, SERVERS, VIAS

pytestmark = pytest.mark.peers

RUN_SECONDS = 1800

type Run = dict[str, Any]

AGENTS = [agent for server in SERVERS.values() for agent in server.agents]


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What the rig saw of the agents that are asked for."""
    wanted = {
        str(item.callspec.params.get("agent"))
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    }.intersection(AGENTS)
    out = tmp_path_factory.mktemp("a2a") / "run.json"
    command = [sys.executable, "-m", "tests.peers.a2a.run", "--out", str(out)]
    if wanted:
        command += ["--agent", ",".join(sorted(wanted))]
    process = subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True)
    try:
        process.wait(timeout=RUN_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=30)
    assert out.exists(), "the rig broke off"
    found: Run = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("via", VIAS)
@pytest.mark.parametrize("agent", AGENTS)
def test_clients_hold_in_the_end_what_is_expected(run: Run, agent: str, via: str) -> None:
    rows = [row for row in run["rows"] if row["agent"] == agent and row["via"] == via]
    seen = {(row["scenario"], row["client"], row["view"]) for row in rows if row["verdict"]}
    wanted = {cell[1:4] for cell in expected() if cell[0] == agent and cell[4] == via}

    assert not worse_rows(rows)
    assert not wanted - seen
    assert seen


def test_every_peer_came_up_and_no_addon_failed(run: Run) -> None:
    errors = [
        f"{where} {name}"
        for where, counts in run["counted"].items()
        for name in counts
        if name.startswith("repair_errors_total")
    ]

    assert not run["failures"]
    assert not errors


def test_what_is_not_mended_has_its_reason() -> None:
    bare = [line for line in lines() if not line.reason and set(line.words.values()) - set(FINE)]
    unexplained = [
        line for line in bare if {line.words[via] for via in VIAS if via != "direct"} - set(FINE)
    ]

    assert not unexplained
