"""Files that are no session database, are locked, damaged, or hold half of it in a log."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sessions.stores import FLAT, Store, links
from tests.sessions.verbs import CHAT, RECORDS, Captured, made, said

IN_USE = "is in use by another process, expected a copy or a stopped server"
WRITES = pytest.mark.parametrize("verb", [["check"], ["repair"], ["repair", "--write"]])


def live(tmp_path: Path) -> tuple[Store, Path]:
    """A database that is open, and a copy of its files as they lie on the disk."""
    store = Store(tmp_path / "live.sqlite")
    store.database.execute("PRAGMA journal_mode = WAL")
    store.fill(CHAT, RECORDS)
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in tmp_path.glob("live.sqlite*"):
        shutil.copy(path, folder)
    return store, folder / "live.sqlite"


@pytest.mark.parametrize("has_index", [True, False], ids=["with -shm", "without -shm"])
def test_what_is_only_in_the_log_of_a_live_file_counts(
    tmp_path: Path, capsys: Captured, has_index: bool
):
    store, path = live(tmp_path)
    store.close()
    if not has_index:
        path.with_name("live.sqlite-shm").unlink()
    files = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.parent.iterdir()}
    assert said(capsys, "check", path)[0] == 1
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.parent.iterdir()} == files
    assert said(capsys, "repair", path, "--write")[0] == 0
    assert "compaction_r1" not in links(path)
    (backup,) = path.parent.glob("*.backup-*")
    assert "compaction_r1" in links(backup)


def test_the_log_is_found_beside_the_file_that_a_link_leads_to(tmp_path: Path, capsys: Captured):
    store, path = live(tmp_path)
    store.close()
    link = tmp_path / "link"
    link.symlink_to(path)
    assert said(capsys, "check", link)[0] == 1
    assert said(capsys, "repair", link, "--write")[0] == 0
    assert len(list(path.parent.glob("*.backup-*"))) == 1


def test_a_log_that_cannot_be_read_is_told(tmp_path: Path, capsys: Captured):
    path = made(tmp_path)
    log = tmp_path / "state.sqlite-wal"
    log.mkdir()  # what even root cannot read
    code, out, err = said(capsys, "check", path)
    assert (code, out) == (2, "")
    assert err == f"{log}: cannot be read: Is a directory\n"


def test_an_idle_server_keeps_its_file(tmp_path: Path, capsys: Captured):
    store, _ = live(tmp_path)
    other = _other_process(store.path, "d.execute('SELECT count(*) FROM assistant_messages')")
    files = {p: p.read_bytes() for p in tmp_path.glob("live.sqlite*")}
    try:
        assert said(capsys, "check", store.path)[0] == 1
        code, out, err = said(capsys, "repair", store.path, "--write")
    finally:
        _end(other)
    assert (code, out, err) == (2, "", f"{store.path}: {IN_USE}\n")
    assert {p: p.read_bytes() for p in tmp_path.glob("live.sqlite*")} == files
    store.close()


@WRITES
def test_a_database_that_another_process_writes_is_left_alone(
    tmp_path: Path, capsys: Captured, verb: list[str]
):
    path = made(tmp_path)
    before = path.read_bytes()
    other = _other_process(path, "d.execute('BEGIN EXCLUSIVE')")
    try:
        code, out, err = said(capsys, verb[0], path, *verb[1:])
    finally:
        _end(other)
    assert (code, out, err) == (2, "", f"{path}: {IN_USE}\n")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_a_table_of_messages_without_records_is_clean(tmp_path: Path, capsys: Captured):
    path = tmp_path / "state.sqlite"
    database = sqlite3.connect(path)
    database.executescript(FLAT)
    database.execute("INSERT INTO cf_ai_chat_agent_messages (id, message) VALUES (?, '{}')",
                     ("compaction_mine",))  # fmt: skip
    database.commit()
    database.close()
    before = path.read_bytes()
    assert said(capsys, "repair", path, "--write") == (0, f"{path}: clean\n", "")
    assert path.read_bytes() == before


def _directory(path: Path) -> None:
    path.mkdir()


def _other_schema(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE notes (id TEXT)")
    database.close()


def _half_known(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE assistant_messages (id TEXT)")
    database.execute("CREATE TABLE assistant_compactions (id TEXT)")
    database.close()


def _torn(path: Path) -> None:
    """A database of which a page in the middle was overwritten."""
    store = Store(path)
    store.database.execute("BEGIN")
    store.fill([(f"m{n}", f"m{n - 1}" if n else None) for n in range(500)])
    store.fill(CHAT, RECORDS)
    store.database.execute("COMMIT")
    store.close()
    wrong = bytearray(path.read_bytes())
    middle = len(wrong) // 2 // 4096 * 4096
    wrong[middle : middle + 4096] = b"\xa5" * 4096
    path.write_bytes(wrong)


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda path: None, "cannot be read: No such file or directory"),
        (lambda path: path.write_bytes(b""), "not an SQLite database (or an encrypted one): it is"),
        (lambda path: path.write_bytes(b"RIFF" * 99), "an encrypted one): it starts with 52 49"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(200)), "damaged: file is not"),
        (_torn, "damaged: "),
        (_directory, "is a directory, expected an SQLite file"),
        (lambda path: path.symlink_to("/dev/null"), "is not a file, expected an SQLite file"),
        (_other_schema, "not a session database, expected the tables assistant_messages and"),
        (_half_known, "table assistant_messages has no column content, parent_id, role, session"),
    ],
    ids=["missing", "empty", "foreign", "cut", "torn", "directory", "device", "schema", "version"],
)
@WRITES
def test_what_cannot_be_read_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: Captured, spoil, error: str, verb: list[str]
):
    path = tmp_path / "state.sqlite"
    spoil(path)
    before = {p: p.is_file() and p.read_bytes() for p in tmp_path.iterdir()}
    code, out, err = said(capsys, verb[0], path, *verb[1:])
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(f"{path}: ")
    assert error in err
    assert {p: p.is_file() and p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_place_that_cannot_be_written_is_told_before_anything_is_made(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
):
    path = made(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr("os.access", lambda place, mode: place != tmp_path)  # root may write all
    code, out, err = said(capsys, "repair", path, "--write")
    assert (code, out) == (2, "")
    assert err == f"{path}: {tmp_path} cannot be written, expected one of your own\n"
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before
    assert said(capsys, "check", path)[0] == 1


def test_a_repair_that_would_not_be_whole_is_taken_back(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
):
    path = made(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr("midstream.sessions.repair.damage", lambda database, pragma: "row missing")
    code, out, err = said(capsys, "repair", path, "--write")
    assert (code, out) == (2, "")
    (backup,) = tmp_path.glob("*.backup-*")
    assert err == (
        f"{path}: not repaired, it would not be whole: row missing; the backup is {backup}\n"
    )
    assert path.read_bytes() == before


def test_a_backup_overwrites_nothing(tmp_path: Path, capsys: Captured):
    path = made(tmp_path)
    original = path.read_bytes()
    for _ in range(3):  # within one second the names differ by a number alone
        assert said(capsys, "repair", path, "--write")[0] == 0
        path.write_bytes(original)
    backups = list(tmp_path.glob("*.backup-*"))
    assert len(backups) == 3
    assert all("compaction_r1" in links(backup) for backup in backups)


def _other_process(path: Path, statement: str) -> subprocess.Popen[bytes]:
    """Start a process that has a database open until it is ended."""
    program = (
        "import sqlite3, sys, time\n"
        "d = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        f"{statement}; print('held', flush=True); time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    return other


def _end(other: subprocess.Popen[bytes]) -> None:
    other.kill()
    other.wait()
    assert other.stdout is not None
    other.stdout.close()
