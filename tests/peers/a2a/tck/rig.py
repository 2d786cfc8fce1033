"""An agent under test and, if wished, midstream in front of it: started, awaited, ended."""

import hashlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parents[4]
WORK = Path(__file__).parent / ".work"

INSTALL_SECONDS = 600
START_SECONDS = 60
END_SECONDS = 20

SDKS = {
    "sut10": ("a2a-sdk[http-server]==1.3.0", "uvicorn==0.54.0"),
    "sut03": ("a2a-sdk[http-server]==0.3.26", "uvicorn==0.54.0"),
}

REQUEST = re.compile(r'"[A-Z]+ \S+ HTTP/1\.[01]"')
"""A line of uvicorn's access log."""


@dataclass(frozen=True)
class Via:
    """How the agent is reached; `mends` says whether midstream's addons run."""

    host: str = "direct"
    mends: bool = False

    def __str__(self) -> str:
        if self.host == "direct":
            return self.host
        return f"{self.host}-{'mends' if self.mends else 'passes'}"


def environment(name: str, *requirements: str) -> Path:
    """Return the Python of a virtual environment with these, made where it is missing."""
    folder = WORK / name
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = hashlib.sha256("\n".join(requirements).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        for command in (
            ["uv", "venv", "--quiet", "--clear", "--python", "3.13", str(folder)],
            ["uv", "pip", "install", "--quiet", "--python", str(python), *requirements],
        ):
            subprocess.run(command, cwd=ROOT, check=True, timeout=INSTALL_SECONDS)
        stamp.write_text(wanted)
    return python


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def program(command: list[str], port: int, log: Path) -> Iterator[None]:
    """Run a program that listens on this port; its output goes to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        try:
            await_port(process, port, log)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when it listens; sends nothing, so that no request is counted."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{log.stem} does not listen:\n{log.read_text()[-2000:]}")


@dataclass(frozen=True)
class Stand:
    """A running agent with what is in front of it."""

    url: str
    agent_log: Path
    admin: str = ""

    def asked(self) -> int:
        """Return how many requests have reached the agent."""
        return len(REQUEST.findall(self.agent_log.read_text()))

    def passed(self) -> int:
        """Return how many requests midstream has seen."""
        counts = re.findall(r"^midstream_requests_total\{[^}]*\} (\S+)", self.metrics(), re.M)
        return sum(int(float(count)) for count in counts)

    def metrics(self) -> str:
        """Return what midstream counts, as Prometheus text."""
        with urlopen(f"{self.admin}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
            return text


@contextmanager
def standing(sut: str, via: Via, name: str) -> Iterator[Stand]:
    """Run one of the agents, directly reachable or behind midstream.

    Where midstream mends, the agent's card names the agent itself, as in the field: only the
    rewritten card keeps a client from going past midstream. Where it passes, the card names it.
    """
    python = environment(sut, *SDKS[sut])
    port, front, admin = free_port(), free_port(), free_port()
    upstream, proxy = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{front}"
    named = upstream if via.host == "direct" or via.mends else proxy
    logs = WORK / "logs"
    agent_log = logs / f"{name}-agent.log"
    agent = [str(python), "-m", f"tests.peers.a2a.tck.{sut}", str(port), named]
    with program(agent, port, agent_log):
        if via.host == "direct":
            yield Stand(upstream, agent_log)
            return
        command = midstream(via, upstream, front, admin, WORK / "run" / f"{name}.toml")
        with program(command, front, logs / f"{name}-midstream.log"):
            yield Stand(proxy, agent_log, f"http://127.0.0.1:{admin}")


def midstream(via: Via, upstream: str, port: int, admin: int, file: Path) -> list[str]:
    """Return the command that runs it, its configuration written to the file."""
    lines = [f'listen = "127.0.0.1:{port}"', f'admin = "127.0.0.1:{admin}"']
    lines += ["[[route]]", 'name = "a2a"', f'upstream = "{upstream}"']
    lines += [] if via.mends else ["addons = []"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    verb = "run" if via.host == "gateway" else "mitm"
    return [sys.executable, "-m", "midstream", verb, "--config", str(file)]
