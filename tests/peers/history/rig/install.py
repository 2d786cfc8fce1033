"""Three npm trees and one Python environment, made on first use.

There are no lock files: the pins here and in requirements.txt, and the project's own date for what
these bring along, say what is installed.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.peers.history.rig.places import REPOSITORY, RIG, WORK, newest_release

INSTALL_SECONDS = 600
PYTHON = "3.13"
TREES = {
    # ai 7 asks for Node 22, which not every system has
    "node": {"node": "22.23.3"},
    "ai7": {
        "ai": "7.0.173",
        "@ai-sdk/openai": "4.0.118",
        "@ai-sdk/anthropic": "4.0.105",
        "zod": "4.1.12",
    },
    "ai6": {
        "ai": "6.0.326",
        "@ai-sdk/openai": "3.0.141",
        "@ai-sdk/anthropic": "3.0.140",
        "zod": "4.1.12",
    },
}
REQUIREMENTS = RIG / "requirements.txt"
AISDK = RIG / "clients" / "aisdk.mjs"


def command_of(client: str) -> list[str | Path]:
    """How a client of `modes.CLIENTS` is started."""
    if client in TREES:
        return [WORK / "node/node_modules/node/bin/node", WORK / client / AISDK.name]
    return [WORK / "python/bin/python", "-m", f"tests.peers.history.clients.{client}_loop"]


def versions() -> dict[str, str]:
    """The pinned packages of every client, in one line each."""
    pins = dict(line.split("==") for line in REQUIREMENTS.read_text().split())
    found = {client: f"`{client}` {pins[client]}" for client in pins}
    for tree, packages in TREES.items():
        if tree != "node":
            found[tree] = ", ".join(
                f"`{name}` {pin}" for name, pin in packages.items() if name != "zod"
            )
    return found


def install() -> None:
    """Make what is missing or was made from other pins.

    Raises: subprocess.SubprocessError if a package cannot be had, or not in time.
    """
    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(_npm_tree, name, pins) for name, pins in TREES.items()]
        made.append(pool.submit(_python))
    for each in made:
        each.result()
    for name in TREES:
        shutil.copyfile(AISDK, WORK / name / AISDK.name)


def _npm_tree(name: str, pins: dict[str, str]) -> None:
    folder = WORK / name
    date = newest_release()
    manifest = {"name": f"rig-{name}", "private": True, "type": "module", "dependencies": pins}
    if _is_made(folder, json.dumps([manifest, date]).encode()):
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps(manifest, indent=1))
    flags = ["--no-audit", "--no-fund", "--no-package-lock", "--prefer-offline"]
    # only `node` has an install script: it fetches the package of this platform
    flags += [] if name == "node" else ["--ignore-scripts"]
    _run(["npm", "install", *flags, f"--before={date}"], folder)
    _mark(folder, json.dumps([manifest, date]).encode())


def _python() -> None:
    folder = WORK / "python"
    date = newest_release()
    wanted = f"{PYTHON} {date} ".encode() + REQUIREMENTS.read_bytes()
    if _is_made(folder, wanted):
        return
    # inside the checkout, since a uv that pyenv brings is chosen by the folder
    uv = os.environ.get("UV", "uv")
    _run([uv, "venv", "--quiet", "--clear", "--python", PYTHON, folder], REPOSITORY)
    into: list[str | Path] = ["--python", folder / "bin/python", "--exclude-newer", date]
    _run([uv, "pip", "install", "--quiet", *into, "-r", REQUIREMENTS], REPOSITORY)
    _mark(folder, wanted)


def _is_made(folder: Path, wanted: bytes) -> bool:
    stamp = folder / ".installed"
    return stamp.exists() and stamp.read_text() == hashlib.sha256(wanted).hexdigest()


def _mark(folder: Path, wanted: bytes) -> None:
    (folder / ".installed").write_text(hashlib.sha256(wanted).hexdigest())


def _run(command: Sequence[str | Path], folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        check=False,
        timeout=INSTALL_SECONDS,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        words = " ".join(str(word) for word in command[:3])
        raise subprocess.SubprocessError(f"{words} ended {done.returncode}\n{done.stdout[-1500:]}")
