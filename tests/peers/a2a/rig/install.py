"""One virtual environment for each file of requirements/, made on first use."""

import hashlib
import os
import subprocess
import tomllib
from pathlib import Path

from tests.peers.a2a.rig.places import REPOSITORY, RIG, WORK

INSTALL_SECONDS = 600
PYTHON = "3.13"


def python_of(environment: str) -> Path:
    return WORK / "venv" / environment / "bin" / "python"


def install(environments: set[str]) -> None:
    """Make what is missing or was made from other requirements.

    Raises: subprocess.SubprocessError if a package cannot be had, or not in time.
    """
    for environment in sorted(environments):
        requirements = RIG / "requirements" / f"{environment}.txt"
        date = newest_release()
        wanted = hashlib.sha256(f"{PYTHON} {date}".encode() + requirements.read_bytes())
        stamp = WORK / "venv" / f"{environment}.installed"
        if stamp.exists() and stamp.read_text() == wanted.hexdigest():
            continue
        python = python_of(environment)
        uv("venv", "--quiet", "--clear", "--python", PYTHON, python.parent.parent)
        uv("pip", "install", "--quiet", "--python", python, "--exclude-newer", date,
           "-r", requirements)  # fmt: skip
        stamp.write_text(wanted.hexdigest())


def newest_release() -> str:
    """The date that pins the project's own packages; it pins what the peers bring along, too."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    date: str = settings["tool"]["uv"]["exclude-newer"]
    return date


def uv(*arguments: str | Path) -> None:
    # inside the checkout, since a uv that pyenv brings is chosen by the folder
    command = [os.environ.get("UV", "uv"), *arguments]
    subprocess.run(command, cwd=REPOSITORY, check=True, timeout=INSTALL_SECONDS)
