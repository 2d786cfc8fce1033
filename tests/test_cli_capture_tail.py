"""`midstream capture tail`: records as they are written."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

CHAT = Path(__file__).parent / "captures/cloudflare/aichat-03-midcontinuation-reconnect-000001.cap"
WHOLE = CHAT.read_bytes()
RECORDS = 96
SECONDS = 30

type Rows = Callable[[int], list[dict[str, Any]]]


def _heed_interrupts() -> None:
    """Undo what a shell does to what it starts in the background: there SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def tailing(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], Rows]]:
    """Run the verb; the second value waits for so many of its lines."""
    run = subprocess.Popen(
        [sys.executable, "-m", "midstream", "capture", "tail", *map(str, arguments), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy(),
        preexec_fn=_heed_interrupts,
    )  # fmt: skip
    assert run.stdout is not None
    lines: Queue[str] = Queue()
    out = run.stdout

    def read() -> None:
        for line in out:
            lines.put(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield run, lambda count: [json.loads(lines.get(timeout=SECONDS)) for _ in range(count)]
    finally:
        run.kill()
        run.wait(SECONDS)
        reader.join(SECONDS)
        out.close()
        assert run.stderr is not None
        run.stderr.close()


def test_tail_follows_a_record_that_is_half_written_and_new_segments(tmp_path: Path):
    first = tmp_path / "live-000001.cap"
    first.write_bytes(WHOLE[: len(WHOLE) // 2])
    with tailing(tmp_path, "-n", 1) as (_, rows):
        (before,) = rows(1)
        with first.open("ab") as file:
            file.write(WHOLE[len(WHOLE) // 2 :])
        rest = rows(1)
        assert (rest[0]["exchange"], rest[0]["seq"]) == (before["exchange"], before["seq"] + 1)
        while (rest[-1]["exchange"], rest[-1]["kind"]) != (3, "close"):
            rest += rows(1)
        second = tmp_path / "live-000002.cap"
        second.touch()  # not begun yet
        (tmp_path / "other-000001.cap").write_bytes(WHOLE)  # not this capture
        second.write_bytes(WHOLE)
        more = rows(RECORDS)
        while (more[0]["exchange"], more[0]["seq"]) != (1, 1):  # the closes of the first one
            more = more[1:] + rows(1)
        assert len({(row["exchange"], row["seq"]) for row in more}) == RECORDS


def test_tail_goes_on_behind_what_a_dead_writer_left_and_tells_it(tmp_path: Path):
    first = tmp_path / "live-000001.cap"
    first.write_bytes(WHOLE[:-1])
    with tailing(first, "-n", 1000) as (run, rows):
        rows(RECORDS - 1)
        (tmp_path / "live-000002.cap").touch()  # ended before it began
        (tmp_path / "live-000003.cap").write_bytes(WHOLE)
        rows(RECORDS)
        first.unlink()  # rotation
        (tmp_path / "live-000004.cap").write_bytes(WHOLE)
        rows(RECORDS)
        run.send_signal(signal.SIGINT)
        assert run.wait(SECONDS) == 130
        assert run.stderr is not None
        (told,) = run.stderr.read().splitlines()
        assert "live-000001.cap: damaged at byte " in told


def test_tail_starts_with_the_last_lines_that_are_wanted(tmp_path: Path):
    (tmp_path / "live-000001.cap").write_bytes(WHOLE)
    with tailing(tmp_path / "live", "-n", 2, "--side", "client", "--seconds", 0) as (run, rows):
        assert [row["side"] for row in rows(2)] == ["client", "client"]
        assert run.wait(SECONDS) == 0


@pytest.mark.parametrize("name", ["", "nothing", "foreign-000001.cap"])
def test_tail_of_what_is_no_capture_is_one_line(tmp_path: Path, name: str):
    if name.endswith(".cap"):
        (tmp_path / name).write_bytes(b"RIFF" * 10)
    with tailing(tmp_path / name) as (run, _):
        assert run.wait(SECONDS) == 2
        assert run.stderr is not None
        assert run.stderr.read().count("\n") == 1
