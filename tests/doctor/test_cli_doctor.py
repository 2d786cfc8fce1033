"""The verb: exit codes, what it prints, and what it refuses."""

import io
import json
from pathlib import Path

import pytest
from tests.doctor.build import Tape
from tests.doctor.test_agents import completed, played, update

from midstream.cli import main


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    tape = played(update("one ", append=False), update("two"), completed("one two"))
    return tape.write(tmp_path, "faulty")


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return played(update("one", append=False), completed()).write(tmp_path, "clean")


def test_clean_traffic_exits_0_with_an_empty_list(clean: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", str(clean), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["faults"] == []


def test_faults_exit_1(faulty: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", str(faulty), "--json"]) == 1
    [fault] = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["addon"], fault["count"]) == ("final-message-once", 1)


def test_a_folder_stands_for_all_its_captures(
    faulty: Path, clean: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["doctor", str(faulty.parent), "--json"]) == 1
    paths = [one["path"] for one in json.loads(capsys.readouterr().out)["captures"]]
    assert paths == [str(faulty.parent / "clean"), str(faulty.parent / "faulty")]


@pytest.mark.parametrize("content", [b"", b"not a capture at all", None])
def test_what_cannot_be_read_exits_2_in_one_line(
    content: bytes | None, tmp_path: Path, clean: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "foreign.bin"
    if content is not None:
        path.write_bytes(content)
    assert main(["doctor", str(clean), str(path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert str(path) in told.err


def test_a_damaged_capture_is_read_up_to_the_byte_that_is_told(
    faulty: Path, capsys: pytest.CaptureFixture[str]
):
    whole = faulty.read_bytes()
    faulty.write_bytes(whole + b"\x07\x00\x00\x00")
    assert main(["doctor", str(faulty), "--json"]) == 1
    told = capsys.readouterr()
    assert f"damaged at byte {len(whole)}" in told.err
    assert len(json.loads(told.out)["faults"]) == 1


def test_the_page_is_written_for_its_owner_alone(
    faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    page = tmp_path / "report.html"
    assert main(["doctor", str(faulty), "--html", str(page)]) == 1
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600
    assert f"wrote {page}" in capsys.readouterr().out


def test_a_capture_is_not_overwritten_by_the_page(faulty: Path, capsys: pytest.CaptureFixture[str]):
    before = faulty.read_bytes()
    assert main(["doctor", str(faulty), "--html", str(faulty)]) == 2
    assert faulty.read_bytes() == before
    assert "is a capture that is read" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_told_before_the_work(
    faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["doctor", str(faulty), "--html", str(tmp_path / "no" / "x.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert main(["doctor", str(faulty), "--html", str(tmp_path)]) == 2


def test_a_configuration_decides_what_is_counted(
    faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "midstream.toml"
    file.write_text('[addon.final-message-once]\nmode = "off"\n')
    assert main(["doctor", str(faulty), "--json", "--config", str(file)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["faults"] == []
    assert [one["name"] for one in found["findings"]] == ["repeated-final"]
    file.write_text("nonsense = 1\n")
    assert main(["doctor", str(faulty), "--config", str(file)]) == 2


def test_exchanges_that_no_route_matches_are_told(
    faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "midstream.toml"
    file.write_text('[[route]]\npath = "/chat"\nupstream = "http://127.0.0.1:1"\n')
    assert main(["doctor", str(faulty), "--config", str(file)]) == 0
    assert "note: exchanges that no route matches: 1" in capsys.readouterr().out


def test_json_and_html_exclude_each_other(faulty: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", str(faulty), "--json", "--html", "x.html"]) == 2
    assert "not allowed with" in capsys.readouterr().err


def test_an_empty_capture_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", str(Tape().write(tmp_path, "empty"))]) == 0
    assert capsys.readouterr().out.startswith("No known fault.\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_shows_how_far_it_is_where_a_person_looks(
    faulty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("midstream.cli.doctor.LONG_BYTES", 0)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["doctor", str(faulty), "--json"]) == 1
    assert "examining" in terminal.getvalue()
    assert json.loads(capsys.readouterr().out)["clean"] is False


def test_nothing_but_the_report_is_printed_where_nobody_looks(
    faulty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("midstream.cli.doctor.LONG_BYTES", 0)
    assert main(["doctor", str(faulty)]) == 1
    assert capsys.readouterr().err == ""
