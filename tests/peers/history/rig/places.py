"""Where the rig lies, and where it keeps what it installs and writes."""

import os
import tomllib
from pathlib import Path

RIG = Path(__file__).parent.parent
REPOSITORY = RIG.parents[2]
WORK = Path(os.environ.get("PEERS_HISTORY_DIR", RIG / ".work"))


def tail(log: Path) -> str:
    """The end of what a program complained of."""
    return log.read_text(errors="replace")[-1500:]


def newest_release() -> str:
    """The date that pins the project's own packages; it pins what the peers bring along, too."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    date: str = settings["tool"]["uv"]["exclude-newer"]
    return date
