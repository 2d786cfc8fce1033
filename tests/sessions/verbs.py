"""Runs `midstream sessions` on a chat whose summary was filed as a row."""

from pathlib import Path

import pytest
from tests.sessions.stores import Store

from midstream.cli import main

CHAT = [("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("compaction_r1", "a2"),
        ("u3", "compaction_r1"), ("a3", "u3")]  # fmt: skip
RECORDS = [("r1", "u1", "a1")]

type Captured = pytest.CaptureFixture[str]


def made(tmp_path: Path, layout: str = "old", rows=CHAT, records=RECORDS) -> Path:
    store = Store(tmp_path / "state.sqlite", layout)
    store.fill(rows, records)
    return store.close()


def said(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    """Return the exit code, and what was printed."""
    code = main(["sessions", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err
