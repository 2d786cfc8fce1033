"""Looking at captures: what `ls`, `show`, `verify`, `stats`, `grep`, `cut` and `tail` say."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from midstream import describing
from midstream.adapters.capture_format import HEADER, read
from midstream.adapters.capture_heads import request_head
from midstream.cli import main
from midstream.core.ports import RecordKind

CAPTURES = Path(__file__).parent / "captures"
CHAT = CAPTURES / "cloudflare" / "aichat-03-midcontinuation-reconnect-000001.cap"
ALL = sorted(CAPTURES.rglob("*.cap"))

type Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    code = main(["capture", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    """A capture in which something was mended: the chat through the addons."""
    path = tmp_path / "mended-000001.cap"
    assert main(["replay", str(CHAT), "--out", str(path)]) == 0
    return path


def cut_at(path: Path, size: int) -> Path:
    path.write_bytes(path.read_bytes()[:size])
    return path


# --- what there is --------------------------------------------------------------------------------


def test_ls_lists_captures_with_their_segments(tmp_path: Path, capsys: Captured):
    shutil.copy(CHAT, tmp_path / "one-000001.cap")
    shutil.copy(CHAT, tmp_path / "one-000002.cap")
    shutil.copy(CHAT, tmp_path / "two-000001.cap")
    (tmp_path / "notes.txt").write_text("no capture")
    code, out, _ = said(capsys, "ls", tmp_path)
    assert code == 0
    assert re.search(rf"one +2 +{2 * CHAT.stat().st_size:,} +2026-11-30 00:53:20 UTC", out)
    assert [entry["name"] for entry in json.loads(said(capsys, "ls", tmp_path, "--json")[1])] == [
        "one", "two",
    ]  # fmt: skip


def test_ls_of_an_empty_folder_says_so(tmp_path: Path, capsys: Captured):
    assert said(capsys, "ls", tmp_path)[:2] == (0, f"{tmp_path}: no captures\n")


def test_stats_counts_records_frames_and_repairs(mended: Path, capsys: Captured):
    count = sum(1 for _ in read(mended))
    code, out, _ = said(capsys, "stats", mended)
    assert code == 0
    assert out.startswith(f"{count} records of 3 exchanges")
    assert re.search("replay-overlap +reset +1", out)
    found = json.loads(said(capsys, "stats", mended, "--json")[1])
    assert found["records"] == count
    assert {"addon": "replay-overlap", "rule": "reset", "count": 1} in found["repairs"]


# --- is it whole ----------------------------------------------------------------------------------


def test_verify_says_ok(capsys: Captured):
    assert said(capsys, "verify", CHAT)[:2] == (0, "ok: 96 records, 3 exchanges, 1 segment\n")


def test_verify_names_the_byte_where_the_first_bad_record_starts(mended: Path, capsys: Captured):
    whole = mended.read_bytes()
    starts = [len(HEADER)]
    while starts[-1] < len(whole):
        starts.append(starts[-1] + 8 + int.from_bytes(whole[starts[-1] :][:4], "little"))
    for size in (len(whole) - 1, starts[5] + 3, starts[5] + 9, starts[40] + 20):
        mended.write_bytes(whole[:size])
        at = max(start for start in starts if start < size)
        code, out, _ = said(capsys, "verify", mended)
        assert code == 1
        assert f"damaged at byte {at}: " in out
        assert f"; {starts.index(at)} records before it are whole" in out
        assert json.loads(said(capsys, "verify", mended, "--json")[1])["damage"]["byte"] == at


def test_show_and_stats_read_everything_before_the_damage(mended: Path, capsys: Captured):
    cut_at(mended, mended.stat().st_size - 1)
    whole = sum(1 for _ in read(mended))
    code, out, err = said(capsys, "show", mended)
    assert (code, len(out.splitlines())) == (1, whole)
    assert "damaged at byte" in err
    code, out, err = said(capsys, "stats", mended)
    assert (code, out.split()[0]) == (1, str(whole))
    assert "damaged at byte" in err


@pytest.mark.parametrize("verb", ["show", "verify", "stats"])
@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "no such capture"),
        (b"", "not a capture: 0 bytes, a header has 16"),
        (b"RIFF" * 10, "not a capture: it starts with 52 49 46 46"),
        (HEADER[:8] + b"\x02\x00" + HEADER[10:], "a capture of version 2"),
    ],
    ids=["missing", "empty", "foreign", "newer"],
)
def test_what_is_no_capture_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: Captured, verb: str, content: bytes | None, error: str
):
    path = tmp_path / "x-000001.cap"
    if content is not None:
        path.write_bytes(content)
    code, out, err = said(capsys, verb, path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert error in err


# --- what it says ---------------------------------------------------------------------------------


def test_show_prints_one_line_a_record_with_its_meaning(capsys: Captured):
    lines = said(capsys, "show", CHAT)[1].splitlines()
    assert len(lines) == 96
    assert re.fullmatch(
        r" +0\.564 +2:7 +-> ws_text +244 chat request \w+: 1 message, the last user .*", lines[12]
    )


def test_show_prints_what_was_done(mended: Path, capsys: Captured):
    out = said(capsys, "show", mended, "--mended")[1]
    assert "replay-overlap reset]" in out
    assert len(out.splitlines()) < 60


def test_show_can_choose(mended: Path, capsys: Captured):
    out = said(capsys, "show", mended, "--exchange", 2, "--side", "client", "--kind", "frame")[1]
    assert all(" 2:" in line and "->" in line for line in out.splitlines())
    assert len(said(capsys, "show", mended, "--seq", "3-5", "--exchange", 2)[1].splitlines()) == 3


def test_show_diff_prints_before_and_after(mended: Path, capsys: Captured):
    out = said(capsys, "show", mended, "--mended", "--diff")[1]
    assert re.search(r"^ +\+ +\"type\": \"cf_agent_message_updated\"", out, re.MULTILINE)


def test_show_json_has_a_line_for_each_record(mended: Path, capsys: Captured):
    rows = [json.loads(line) for line in said(capsys, "show", mended, "--json")[1].splitlines()]
    assert len(rows) == sum(1 for _ in read(mended))
    assert {"exchange", "seq", "side", "kind", "bytes", "addon", "rule"} <= rows[0].keys()
    assert any(row["rule"] == "reset" for row in rows)


def test_colour_is_for_terminals_alone(mended: Path, capsys: Captured, monkeypatch):
    assert "\x1b[" not in said(capsys, "show", mended, "--mended", "--diff")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in said(capsys, "show", mended, "--mended", "--diff")[1]
    assert "\x1b[" in said(capsys, "stats", mended)[1]


def test_a_reader_that_has_had_enough_ends_it_quietly():
    command = f"{sys.executable} -m midstream capture show {CHAT} | head -n 2"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert (run.stderr, len(run.stdout.splitlines())) == ("", 2)


def test_grep_finds_by_payload_and_by_meaning(capsys: Captured):
    code, out, _ = said(capsys, "grep", "getLocation", CHAT)
    assert code == 0
    assert "tool-input-start getLocation" in out
    assert said(capsys, "grep", "-c", "no answer IS running", "-i", CHAT)[:2] == (0, "1\n")
    assert said(capsys, "grep", "nobody said this", CHAT)[:2] == (1, "")
    code, _, err = said(capsys, "grep", "(", CHAT)
    assert code == 2
    assert "expected a regular expression" in err


def test_cut_keeps_what_was_asked_for(mended: Path, tmp_path: Path, capsys: Captured):
    out = tmp_path / "part.cap"
    assert said(capsys, "cut", mended, "--exchange", 3, "--out", out)[0] == 0
    assert {record.exchange for record in read(out)} == {3}
    assert out.stat().st_mode & 0o777 == 0o600
    code, _, err = said(capsys, "cut", mended, "--out", mended)
    assert (code, "is the capture that is read" in err) == (2, True)


def test_cut_mended_keeps_whole_exchanges(mended: Path, tmp_path: Path, capsys: Captured):
    out = tmp_path / "part.cap"
    assert said(capsys, "cut", mended, "--mended", "--out", out)[0] == 0
    kinds = {record.kind for record in read(out)}
    assert RecordKind.OPEN in kinds


def test_tail_follows_a_capture_over_a_torn_end_and_a_new_segment(tmp_path: Path):
    whole = CHAT.read_bytes()
    first, second = tmp_path / "live-000001.cap", tmp_path / "live-000002.cap"
    first.write_bytes(whole[: len(whole) // 2])
    run = subprocess.Popen(
        [sys.executable, "-m", "midstream", "capture", "tail", str(tmp_path / "live"),
         "-n", "100", "--seconds", "4", "--json"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    time.sleep(1.5)
    first.write_bytes(whole)
    second.write_bytes(whole)
    out, _ = run.communicate(timeout=60)
    assert len(out.splitlines()) == 2 * 96


# --- what frames mean -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_nearly_every_frame_of_a_known_format_is_told_in_its_words(path: Path):
    dialects: dict[int, list[str]] = {}
    known = total = 0
    for record in read(path):
        if record.kind is RecordKind.OPEN:
            dialects[record.exchange] = describing.dialects_of(request_head(record))
        frame = record.received
        if frame is not None:
            total += 1
            known += describing.is_known(dialects[record.exchange], frame)
    assert known >= 0.95 * total or total - known <= 2
