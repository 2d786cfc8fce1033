"""Files that real servers filled with their own summaries, repaired, and given back to them.

The rig is `cloudflare/sessions.mjs`; its servers have a state and ports of their own.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.peers.test_cloudflare import INSTALL_SECONDS, RIG, RUN_SECONDS, end_group

pytestmark = pytest.mark.peers

PORT_OFFSET = "300"


@pytest.mark.parametrize("server", ["think", "think24", "think32"])
def test_a_repaired_file_is_read_and_written_by_its_server(server: str, tmp_path: Path) -> None:
    """The server lists every message once, goes on, and compacts again."""
    subprocess.run(["node", "install.mjs"], cwd=RIG, check=True, timeout=INSTALL_SECONDS)
    out = tmp_path / "rows.json"
    process = subprocess.Popen(
        ["node", "sessions.mjs", "--server", server, "--out", str(out)],
        cwd=RIG,
        env={**os.environ, "PEERS_PORT_OFFSET": PORT_OFFSET, "PEERS_STATE": ".wrangler/sessions"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=RUN_SECONDS)
    finally:
        end_group(process)
    print(said)
    assert out.exists(), said
    (row,) = json.loads(out.read_text())
    assert row["failures"] == []
    assert row["note"]["pointed"]["repointed"]
    assert process.returncode == 0
