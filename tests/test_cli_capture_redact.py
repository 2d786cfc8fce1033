"""`midstream capture redact`: a copy without secrets, and nothing else changed."""

import json
import stat
import string
from pathlib import Path
from random import Random

import msgspec
import pytest

from midstream.adapters.capture_format import HEADER, StoredRecord, encode, read
from midstream.cli import main
from midstream.core.frames import Kind, Side
from midstream.core.ports import RecordKind

CAPTURES = sorted((Path(__file__).parent / "captures").rglob("*.cap"))
KEY = "gh" + "p_" + "".join(Random(1).choices(string.ascii_letters + string.digits, k=36))
WORD = b"region"
WITH_WORD = [path for path in CAPTURES if WORD in path.read_bytes()]
PLAIN = "".join(Random(2).choices(string.ascii_letters + string.digits, k=24))


def frame(seq: int, wire: bytes, **fields: object) -> StoredRecord:
    return StoredRecord(
        1, seq, 1, seq, RecordKind.FRAME, Side.SERVER, "r", Kind.WS_TEXT, wire,
        **fields,  # type: ignore[arg-type]  # fields of the struct
    )  # fmt: skip


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    opened: dict[str, object] = {
        "method": "GET", "target": "/chat?token=t1&page=2", "upstream": "http://u.test",
        "headers": [["X-Api-Key", PLAIN], ["Accept", "*/*"]],
    }  # fmt: skip
    asked: dict[str, object] = {
        "number": 1, "ask": {"type": "fetch", "target": "/x?api_key=k7"},
        "answer": {"status": 200, "body": json.dumps({"text": KEY}).encode()},
    }  # fmt: skip
    received = f'{{"text":"{KEY} and words"}}'.encode()
    records = [
        frame(1, f'{{"echo":"{PLAIN}"}}'.encode()),
        StoredRecord(1, 2, 1, 2, RecordKind.OPEN, meta=opened),
        frame(3, received, sent=((Side.SERVER, Kind.WS_TEXT, received),), rules=(("a", "b"),)),
        StoredRecord(1, 4, 1, 4, RecordKind.ASK, meta=asked),
        frame(5, b'{"text":"plain"}'),
        StoredRecord(1, 6, 1, 6, RecordKind.CLOSE, Side.SERVER, meta={"reason": f"no {KEY}"}),
    ]
    path = tmp_path / "run-000001.cap"
    path.write_bytes(HEADER + b"".join(map(encode, records)))
    return path


def test_no_secret_is_left_and_what_is_not_one_stays(
    planted: Path, capsys: pytest.CaptureFixture[str]
):
    before = planted.read_bytes()
    assert main(["capture", "redact", str(planted)]) == 0
    out = planted.with_name("run-000001.redacted.cap")
    assert planted.read_bytes() == before
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    written = out.read_bytes()
    for secret in (KEY, PLAIN, "t1&", "k7"):
        assert secret.encode() not in written
    records = list(read(out))
    assert [record.seq for record in records] == [1, 2, 3, 4, 5, 6]
    assert records[4] == list(read(planted))[4]
    assert records[2].rules == (("a", "b"),)
    token = json.loads(records[2].data)["text"].split()[0]
    assert records[2].sent is not None
    assert records[2].sent[0][2] == records[2].data
    assert json.loads(records[3].meta["answer"]["body"])["text"] == token
    assert records[1].meta["headers"][0][1] == json.loads(records[0].data)["echo"]
    said = capsys.readouterr().out
    assert "6 records written" in said
    assert "5 changed" in said
    assert "1 header" in said
    assert KEY not in said


def test_counts_are_told_as_json(planted: Path, capsys: pytest.CaptureFixture[str]):
    out = planted.with_name("out.cap")
    assert main(["capture", "redact", str(planted), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "out": str(out), "records": 6, "changed": 5, "dropped": 0,
        "redactions": {"github": 4, "header": 1, "known": 1, "named": 2},
    }  # fmt: skip


def test_a_redacted_capture_has_nothing_more_to_redact(
    planted: Path, capsys: pytest.CaptureFixture[str]
):
    first, second = planted.with_name("first.cap"), planted.with_name("second.cap")
    assert main(["capture", "redact", str(planted), "--out", str(first)]) == 0
    assert main(["capture", "redact", str(first), "--out", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert "0 changed" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize("path", CAPTURES[::4], ids=lambda path: path.stem)
def test_real_traffic_leaves_as_it_came(path: Path, tmp_path: Path):
    out = tmp_path / "out.cap"
    assert main(["capture", "redact", str(path), "--out", str(out)]) == 0
    assert list(read(out)) == list(read(path))


@pytest.mark.parametrize("path", WITH_WORD, ids=lambda path: path.stem)
def test_a_replay_of_a_redacted_capture_comes_to_the_same_verdicts(path: Path, tmp_path: Path):
    planted, mended, clean = (tmp_path / f"{name}.cap" for name in ("planted", "mended", "clean"))
    planted.write_bytes(HEADER + b"".join(encode(with_secret(each)) for each in read(path)))
    assert main(["replay", str(planted), "--out", str(mended)]) == 0
    assert main(["replay", str(mended), "--diff"]) == 0
    assert main(["capture", "redact", str(mended), "--out", str(clean)]) == 0
    assert KEY.encode() in mended.read_bytes()
    assert KEY.encode() not in clean.read_bytes()
    assert main(["replay", str(clean), "--diff"]) == 0


def with_secret(record: StoredRecord) -> StoredRecord:
    """Return a record with a key where a word of the answer was."""
    return msgspec.structs.replace(record, data=record.data.replace(WORD, KEY.encode()))


def test_headers_paths_and_text_go_where_asked(planted: Path):
    out = planted.with_name("out.cap")
    wanted = ["--redact", "accept", "--path", "echo", "--content", "none", "--out", str(out)]
    assert main(["capture", "redact", str(planted), *wanted]) == 0
    records = list(read(out))
    assert records[1].meta["headers"][1][1].startswith("redacted:")
    assert json.loads(records[0].data)["echo"].startswith("redacted:")
    assert json.loads(records[4].data) == {"text": "[5 characters]"}
    assert records[1].meta["redacted"] == {"content": "none"}


def test_of_a_damaged_capture_everything_before_is_written(
    planted: Path, capsys: pytest.CaptureFixture[str]
):
    out = planted.with_name("out.cap")
    whole = planted.read_bytes()
    planted.write_bytes(whole[:-1])
    assert main(["capture", "redact", str(planted), "--out", str(out)]) == 1
    assert len(list(read(out))) == 5
    assert "damaged at byte" in capsys.readouterr().err


def test_it_never_writes_over_its_input(planted: Path, capsys: pytest.CaptureFixture[str]):
    before = planted.read_bytes()
    assert main(["capture", "redact", str(planted), "--out", str(planted)]) == 2
    assert planted.read_bytes() == before
    assert "is the capture that is read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [("none.cap", None, "no such capture"), ("foreign.cap", b"GIF89a and more", "not a capture")],
)
def test_missing_and_foreign_files_are_one_line(
    name: str, content: bytes | None, error: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["capture", "redact", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert error in said
    assert said.count("\n") == 1


def test_a_path_that_is_none_is_a_usage_error(planted: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["capture", "redact", str(planted), "--path", "a..b"]) == 2
    assert '--path: found "a..b"' in capsys.readouterr().err
