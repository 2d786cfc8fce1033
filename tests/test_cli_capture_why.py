"""`midstream capture why`: one frame in words."""

import json
import re
from pathlib import Path

import pytest

from midstream.cli import main

CHAT = (
    Path(__file__).parent / "captures" / "cloudflare"
    / "aichat-03-midcontinuation-reconnect-000001.cap"
)  # fmt: skip

type Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["capture", "why", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    path = tmp_path / "mended-000001.cap"
    assert main(["replay", str(CHAT), "--out", str(path)]) == 0
    return path


def test_an_exchange_is_told_with_its_addons_and_what_they_did(mended: Path, capsys: Captured):
    code, out, _ = said(capsys, mended, 3)
    assert code == 0
    assert out.startswith("read as: ")
    assert "replay-overlap (repair)" in out
    assert re.search(r"replay-overlap did reset: .*baseline parts 3", out)
    assert "The message was set back to what it was before the running answer" in out


def test_one_frame_is_told_by_its_number(mended: Path, capsys: Captured):
    rows = json.loads(said(capsys, mended, 3, "--json")[1])["records"]
    seq = next(row["seq"] for row in rows if any("did reset" in line for line in row["why"]))
    out = said(capsys, mended, f"3:{seq}")[1]
    assert "did reset" in out
    assert out.count("\n\n") == 1


def test_a_frame_that_was_left_alone_is_told_why(mended: Path, capsys: Captured):
    out = said(capsys, mended, "2:5")[1]
    assert "left alone: these addons had nothing to say: " in out


def test_a_capture_without_addons_is_explained_by_playing_it(capsys: Captured):
    assert "did reset" not in said(capsys, CHAT, 3)[1]
    code, out, _ = said(capsys, CHAT, 3, "--replay")
    assert code == 0
    assert "did reset" in out
    assert "differences to the capture" not in out


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("9", "no exchange 9, there are 1-3"),
        ("3:99999", "exchange 3 has no record 99999, has 1-"),
        ("x", 'found "x"'),
        ("1:x", 'found "1:x"'),
    ],
)
def test_what_is_not_there_is_one_line_and_exit_code_2(
    mended: Path, capsys: Captured, place: str, error: str
):
    code, out, err = said(capsys, mended, place)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert error in err
