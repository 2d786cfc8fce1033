"""What is exported as HAR, before the published schema of HAR 1.2 and its validator.

They come from npm, pinned in `har/package.json`, and lie in PEERS_HAR_DIR (default `har/.work/`).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.peers.history.rig.places import newest_release

from midstream.cli import main

pytestmark = pytest.mark.peers

HERE = Path(__file__).parent
RIG = HERE / "har"
WORK = Path(os.environ.get("PEERS_HAR_DIR", RIG / ".work"))
CAPTURES = sorted((HERE.parent / "captures").rglob("*.cap"))
INSTALL_SECONDS = 300
RUN_SECONDS = 120


@pytest.fixture(scope="module")
def work() -> Path:
    """Install the validator, unless what is there was made from these pins."""
    manifest, made = (RIG / "package.json").read_bytes(), WORK / "package.json"
    if not (WORK / "node_modules").exists() or made.read_bytes() != manifest:
        WORK.mkdir(parents=True, exist_ok=True)
        made.unlink(missing_ok=True)
        shutil.copyfile(RIG / "package.json", made)
        flags = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        subprocess.run(
            ["npm", "install", *flags, f"--before={newest_release()}"],
            cwd=WORK, check=True, timeout=INSTALL_SECONDS, capture_output=True,
        )  # fmt: skip
    return WORK


def complaints(work: Path, files: list[Path]) -> dict[str, list[str]]:
    run = subprocess.run(
        ["node", RIG / "validate.cjs", *files],
        env=os.environ | {"HAR_WORK": str(work)},
        check=True, capture_output=True, text=True, timeout=RUN_SECONDS,
    )  # fmt: skip
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {file.name: found for file, found in zip(files, lines, strict=True) if found}


def test_the_schema_finds_no_fault_in_any_capture(work: Path, tmp_path: Path) -> None:
    files = []
    for path in CAPTURES:
        mended = tmp_path / "mended.cap"
        assert main(["replay", str(path), "--out", str(mended)]) == 0
        for view, capture in (("received", path), ("sent", mended)):
            files.append(tmp_path / f"{path.parent.name}-{path.stem}-{view}.har")
            verb = ["capture", "export", "har", str(capture), "--out", str(files[-1])]
            assert main([*verb, f"--{view}"]) == 0
    assert len(files) == 2 * len(CAPTURES) > 100
    assert not complaints(work, files)


def test_the_validator_does_find_faults(work: Path, tmp_path: Path) -> None:
    log = {"version": "1.2", "creator": {"name": "x"}, "entries": [{"time": -1}]}
    path = tmp_path / "wrong.har"
    path.write_text(json.dumps({"log": log}))
    assert complaints(work, [path])
