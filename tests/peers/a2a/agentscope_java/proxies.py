"""midstream in front of a server, as a person would start it."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 90.0
END_SECONDS = 20.0
POLL_SECONDS = 0.1


@contextmanager
def gateway(upstream: str, folder: Path) -> Iterator[str]:
    port = free_port()
    places = ["--listen", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0"]
    with _running(["run", "--upstream", upstream, *places], port, folder / "gateway.log"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def mitm(upstream: str, folder: Path) -> Iterator[str]:
    port = free_port()
    settings = folder / "midstream.toml"
    settings.write_text('admin = "127.0.0.1:0"\n')
    options = ["--mode", f"reverse:{upstream}", "--listen-host", "127.0.0.1"]
    options += ["--listen-port", str(port), "--set", f"confdir={folder}"]
    argv = ["mitm", "--config", str(settings), "--", *options]
    with _running(argv, port, folder / "mitm.log"):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def _running(arguments: list[str], port: int, log: Path) -> Iterator[None]:
    argv = [sys.executable, "-m", "midstream", *arguments]
    with (
        log.open("wb") as said,
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as process,
    ):
        try:
            _wait_for(process, port, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"not up within {START_SECONDS} s\n{log.read_text()[-2000:]}")
        time.sleep(POLL_SECONDS)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
