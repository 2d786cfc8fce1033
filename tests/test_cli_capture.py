"""Looking at captures: what `ls`, `show`, `verify`, `stats`, `grep`, `cut` and `tail` say."""

import json
import os
import pty
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.adapters.capture_format import HEADER, StoredRecord, encode, read
from midstream.cli import main
from midstream.core.frames import Kind, Side
from midstream.core.ports import RecordKind

CAPTURES = Path(__file__).parent / "captures"
CHAT = CAPTURES / "cloudflare" / "aichat-03-midcontinuation-reconnect-000001.cap"

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


def test_ls_counts_exchanges_and_mended_ones_when_asked(
    mended: Path, tmp_path: Path, capsys: Captured
):
    (tmp_path / "other-000001.cap").write_bytes(b"RIFF" * 10)
    code, out, _ = said(capsys, "ls", tmp_path, "--count")
    assert code == 0
    count = sum(1 for _ in read(mended))
    assert re.search(rf"^mended .* {count} +3 +1$", out, re.MULTILINE)
    assert "not a capture: it starts with 52 49 46 46" in out
    cut_at(mended, mended.stat().st_size - 1)
    (entry,) = [
        entry
        for entry in json.loads(said(capsys, "ls", tmp_path, "--count", "--json")[1])
        if entry["name"] == "mended"
    ]
    assert (entry["records"], entry["exchanges"], entry["mended"]) == (count - 1, 3, 1)
    assert entry["damage"]["reason"].startswith("record is cut")


def test_a_folder_with_several_captures_wants_one_of_them_named(tmp_path: Path, capsys: Captured):
    for name in ("one", "two"):
        shutil.copy(CHAT, tmp_path / f"{name}-000001.cap")
    for verb in ("show", "verify", "stats", "tail"):
        code, out, err = said(capsys, verb, tmp_path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"holds 2 captures, name one: {tmp_path / 'one'}, {tmp_path / 'two'}" in err
    assert said(capsys, "verify", tmp_path / "two")[0] == 0


def test_stats_counts_records_frames_and_repairs(mended: Path, capsys: Captured):
    count = sum(1 for _ in read(mended))
    code, out, _ = said(capsys, "stats", mended)
    assert code == 0
    assert out.startswith(f"{count} records of 3 exchanges")
    assert re.search("replay-overlap +reset +1", out)
    assert "responses: 2 ws, 1 http" in out
    found = json.loads(said(capsys, "stats", mended, "--json")[1])
    assert found["records"] == count
    assert {"addon": "replay-overlap", "rule": "reset", "count": 1} in found["repairs"]


# --- is it whole ----------------------------------------------------------------------------------


def test_verify_says_ok(capsys: Captured):
    assert said(capsys, "verify", CHAT)[:2] == (0, "ok: 96 records, 3 exchanges, 1 segment\n")


def starts_of(whole: bytes) -> list[int]:
    """Return where each record of a segment starts."""
    starts = [len(HEADER)]
    while starts[-1] < len(whole):
        starts.append(starts[-1] + 8 + int.from_bytes(whole[starts[-1] :][:4], "little"))
    return starts[:-1]


def test_verify_names_the_byte_where_the_first_bad_record_starts(mended: Path, capsys: Captured):
    whole = mended.read_bytes()
    starts = starts_of(whole)
    for size in random.Random(7).sample(range(len(HEADER) + 1, len(whole)), 25):
        if size in starts:
            continue  # nothing is cut there
        mended.write_bytes(whole[:size])
        at = max(start for start in starts if start < size)
        code, out, _ = said(capsys, "verify", mended)
        assert code == 1
        assert f"damaged at byte {at}: " in out
        assert f"; {starts.index(at)} records before it are whole" in out
        assert json.loads(said(capsys, "verify", mended, "--json")[1])["damage"]["byte"] == at


def test_verify_finds_a_byte_that_flipped(mended: Path, capsys: Captured):
    whole = bytearray(mended.read_bytes())
    at = starts_of(bytes(whole))[30]
    whole[at + 12] ^= 1
    mended.write_bytes(whole)
    code, out, _ = said(capsys, "verify", mended)
    assert code == 1
    assert f"damaged at byte {at}: checksum is " in out
    assert "; 30 records before it are whole" in out


def test_verify_goes_on_with_the_segments_behind_a_damaged_one(tmp_path: Path, capsys: Captured):
    size = CHAT.stat().st_size
    for number in (1, 2, 4, 5):
        shutil.copy(CHAT, tmp_path / f"run-{number:06d}.cap")
    cut_at(tmp_path / "run-000002.cap", size - 1)
    cut_at(tmp_path / "run-000005.cap", 7)  # its writer was ended while it began
    code, out, _ = said(capsys, "verify", tmp_path)
    assert code == 1
    first, second, rest, missing = out.splitlines()
    assert first.startswith(f"{tmp_path / 'run-000002.cap'}: damaged at byte ")
    assert first.endswith("; 95 records before it are whole")
    assert second == (
        f"{tmp_path / 'run-000005.cap'}: damaged at byte 0: header is cut at 7 of 16 bytes; "
        "0 records before it are whole"
    )
    assert rest == f"readable: {96 * 3 - 1} records, 9 exchanges, 4 segments"
    assert missing == "segments are missing: 3"
    found = json.loads(said(capsys, "verify", tmp_path, "--json")[1])
    assert [damage["records_before"] for damage in found["damages"]] == [95, 0]
    assert found["missing_segments"] == [3]


def test_a_segment_without_a_header_does_not_hide_those_before_it(tmp_path: Path, capsys: Captured):
    shutil.copy(CHAT, tmp_path / "run-000001.cap")
    (tmp_path / "run-000002.cap").touch()
    code, out, err = said(capsys, "show", tmp_path)
    assert (code, len(out.splitlines())) == (1, 96)
    assert "run-000002.cap: damaged at byte 0: header is cut at 0 of 16 bytes" in err


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


def test_show_can_stop_early_and_print_wall_times(capsys: Captured):
    lines = said(capsys, "show", CHAT, "--limit", 3, "--wall")[1].splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("2026-11-30 00:53:20.")


def test_show_can_choose_by_time(capsys: Captured):
    times = [float(line.split()[0]) for line in said(capsys, "show", CHAT)[1].splitlines()]
    part = said(capsys, "show", CHAT, "--from", 0.6, "--to", 0.7)[1].splitlines()
    assert [float(line.split()[0]) for line in part] == [t for t in times if 0.6 <= t <= 0.7]
    from_date = said(capsys, "show", CHAT, "--from", "2026-11-30T00:53:22Z")[1].splitlines()
    assert 0 < len(from_date) < len(times)
    code, _, err = said(capsys, "show", CHAT, "--from", "noon")
    assert code == 2
    assert 'found "noon", expected seconds such as 12.5' in err


def test_what_a_stranger_sent_cannot_write_to_the_terminal(tmp_path: Path, capsys: Captured):
    evil = "\x1b]0;owned\x07\n\u202e\x9b31m"
    path = tmp_path / "evil-000001.cap"
    meta = {"method": "GET", "target": f"/agents/a/b?{evil}", "headers": []}
    message = {"type": "cf_agent_use_chat_response", "id": evil, "body": "", "done": True}
    records = [
        StoredRecord(1, 1, 1, 1, RecordKind.OPEN, None, evil, meta=meta),
        StoredRecord(
            2, 2, 1, 2, RecordKind.FRAME, Side.SERVER, evil, Kind.WS_TEXT,
            json.dumps(message).encode(), ((Side.SERVER, Kind.WS_TEXT, evil.encode()),),
        ),
        StoredRecord(3, 3, 1, 3, RecordKind.FRAME, Side.CLIENT, evil, Kind.WS_TEXT, evil.encode()),
    ]  # fmt: skip
    path.write_bytes(HEADER + b"".join(map(encode, records)))
    for verb in (["show", path, "--raw", "--diff"], ["stats", path], ["grep", "owned", path]):
        code, out, _ = said(capsys, *verb)
        assert code == 0
        assert all(line.isprintable() for line in out.split("\n")), verb
    assert len(said(capsys, "show", path)[1].splitlines()) == 3


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_gets_colour_unless_it_wants_none(mended: Path, no_color: str):
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    run = subprocess.run(
        [sys.executable, "-m", "midstream", "capture", "stats", str(mended)],
        stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False,
        env=environment | {"NO_COLOR": no_color, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    out = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert (run.returncode, run.stderr) == (0, b"")
    assert ("\x1b[" in out) is not bool(no_color)
    assert re.search("replay-overlap.* reset", out)


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


def test_a_part_can_be_replayed_for_the_heads_stay(mended: Path, tmp_path: Path, capsys: Captured):
    out = tmp_path / "part.cap"
    assert said(capsys, "cut", mended, "--exchange", 2, "--seq", "40-", "--out", out)[0] == 0
    kinds = [record.kind for record in read(out)]
    assert kinds[:2] == [RecordKind.OPEN, RecordKind.HEADERS]
    assert said(capsys, "verify", out)[0] == 0
    assert main(["replay", str(out)]) == 0


def test_cut_of_what_is_not_there_writes_nothing(mended: Path, tmp_path: Path, capsys: Captured):
    out = tmp_path / "part.cap"
    code, _, err = said(capsys, "cut", mended, "--exchange", 99, "--out", out)
    assert (code, "holds nothing of that" in err, out.exists()) == (1, True, False)


def test_cut_mended_keeps_whole_exchanges(mended: Path, tmp_path: Path, capsys: Captured):
    out = tmp_path / "part.cap"
    assert said(capsys, "cut", mended, "--mended", "--out", out)[0] == 0
    kinds = {record.kind for record in read(out)}
    assert RecordKind.OPEN in kinds
