"""`midstream sessions`: what is found, what is changed, and what nothing touches."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sessions.stores import Store, dump, links, ranges

from midstream.cli import main

CHAT = [("u1", None), ("a1", "u1"), ("u2", "a1"), ("a2", "u2"), ("compaction_r1", "a2"),
        ("u3", "compaction_r1"), ("a3", "u3")]  # fmt: skip
RECORDS = [("r1", "u1", "a1")]
LAYOUTS = pytest.mark.parametrize("layout", ["old", "new"])

type Captured = pytest.CaptureFixture[str]


def made(tmp_path: Path, layout: str = "old", rows=CHAT, records=RECORDS) -> Path:
    store = Store(tmp_path / "state.sqlite", layout)
    store.fill(rows, records)
    return store.close()


def said(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    code = main(["sessions", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err


@LAYOUTS
def test_check_names_the_rows_and_leaves_no_trace(tmp_path: Path, capsys: Captured, layout: str):
    path = made(tmp_path, layout)
    before = path.stat().st_mtime_ns, path.read_bytes()
    code, out, _ = said(capsys, "check", path)
    assert code == 1
    assert "holds 1 filed summary\n  row compaction_r1\n" in out
    assert "  u3: parent compaction_r1 -> a2\n" in out
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert list(tmp_path.iterdir()) == [path]


@LAYOUTS
def test_repair_is_a_dry_run_until_it_is_told_to_write(
    tmp_path: Path, capsys: Captured, layout: str
):
    path = made(tmp_path, layout)
    before = path.read_bytes()
    code, out, _ = said(capsys, "repair", path)
    assert code == 1
    assert out.endswith("nothing was changed; --write does it, after a backup\n")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@LAYOUTS
def test_repair_takes_the_row_out_and_mends_the_links(
    tmp_path: Path, capsys: Captured, layout: str
):
    path = made(tmp_path, layout)
    before = dump(path)
    code, out, _ = said(capsys, "repair", path, "--write")
    assert code == 0
    assert links(path) == {"u1": None, "a1": "u1", "u2": "a1", "a2": "u2", "u3": "a2", "a3": "u3"}
    assert ranges(path) == {"r1": ("u1", "a1")}
    (backup,) = [p for p in tmp_path.iterdir() if p != path]
    assert out.startswith(f"backup: {backup}\n")
    assert dump(backup) == before
    assert backup.stat().st_mode & 0o777 == 0o600
    gone = [line for line in before if line not in dump(path)]
    assert all("compaction_r1" in line or "'u3'" in line for line in gone if "_fts" not in line)


@LAYOUTS
def test_a_second_repair_finds_nothing_and_makes_no_backup(
    tmp_path: Path, capsys: Captured, layout: str
):
    path = made(tmp_path, layout)
    assert said(capsys, "repair", path, "--write")[0] == 0
    files = sorted(tmp_path.iterdir())
    assert said(capsys, "repair", path, "--write")[:2] == (0, f"{path}: clean\n")
    assert said(capsys, "check", path)[:2] == (0, f"{path}: clean\n")
    assert sorted(tmp_path.iterdir()) == files


@LAYOUTS
def test_a_range_that_ends_at_a_removed_row_ends_at_the_nearest_one_that_stays(
    tmp_path: Path, capsys: Captured, layout: str
):
    rows = [*CHAT, ("compaction_r2", "a3"), ("u4", "compaction_r2")]
    records = [*RECORDS, ("r2", "compaction_r1", "a3"), ("r3", "a1", "compaction_r2"),
               ("r4", "compaction_r1", "compaction_r1")]  # fmt: skip
    path = made(tmp_path, layout, rows, records)
    out = said(capsys, "repair", path, "--write")[1]
    assert ranges(path) == {
        "r1": ("u1", "a1"), "r2": ("u3", "a3"), "r3": ("a1", "a3"),
        "r4": ("compaction_r1", "compaction_r1"),
    }  # fmt: skip
    assert "  record r4: nothing of its range is left, it stays as it is\n" in out
    assert links(path)["u4"] == "a3"


@LAYOUTS
def test_rows_of_another_session_and_foreign_ones_stay(
    tmp_path: Path, capsys: Captured, layout: str
):
    store = Store(tmp_path / "state.sqlite", layout)
    store.fill([("u1", None), ("compaction_other", "u1"), ("compaction_", "u1")], RECORDS, "one")
    store.fill([("x1", None), ("compaction_r1", "x1"), ("x2", "compaction_r1")], (), "two")
    path = store.close()
    before = path.read_bytes()
    assert said(capsys, "repair", path, "--write")[:2] == (0, f"{path}: clean\n")
    assert path.read_bytes() == before


def test_search_finds_the_rest_and_the_row_no_more(tmp_path: Path, capsys: Captured):
    path = made(tmp_path)
    assert said(capsys, "repair", path, "--write")[0] == 0
    database = sqlite3.connect(path)
    found = database.execute("SELECT id FROM assistant_fts").fetchall()
    database.close()
    assert [row[0] for row in found] == ["u1", "a1", "u2", "a2", "u3", "a3"]


@LAYOUTS
def test_json_names_everything(tmp_path: Path, capsys: Captured, layout: str):
    path = made(tmp_path, layout)
    found = json.loads(said(capsys, "check", path, "--json")[1])
    assert found["rows"] == 1
    (session,) = found["sessions"]
    assert session["rows"] == ["compaction_r1"]
    assert session["reparented"] == [
        {"id": "u3", "old_parent": "compaction_r1", "new_parent": "a2"}
    ]
    assert "backup" in json.loads(said(capsys, "repair", path, "--write", "--json")[1])


def test_what_is_only_in_the_log_of_a_live_file_counts(tmp_path: Path, capsys: Captured):
    store = Store(tmp_path / "live.sqlite")
    store.database.execute("PRAGMA journal_mode = WAL")
    store.fill(CHAT, RECORDS)
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in tmp_path.glob("live.sqlite*"):
        shutil.copy(path, folder)
    store.close()
    path = folder / "live.sqlite"
    (folder / "live.sqlite-shm").unlink()
    files = {p: p.read_bytes() for p in folder.iterdir()}
    assert said(capsys, "check", path)[0] == 1
    assert {p: p.read_bytes() for p in folder.iterdir()} == files
    assert said(capsys, "repair", path, "--write")[0] == 0
    assert "compaction_r1" not in links(path)
    (backup,) = folder.glob("*.backup-*")
    assert "compaction_r1" in links(backup)


def test_a_database_that_another_process_writes_is_left_alone(tmp_path: Path, capsys: Captured):
    path = made(tmp_path)
    before = path.read_bytes()
    program = (
        "import sqlite3, sys, time\n"
        "d = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "d.execute('BEGIN EXCLUSIVE'); print('held', flush=True); time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        code, out, err = said(capsys, "repair", path, "--write")
    finally:
        other.kill()
        other.wait()
        assert other.stdout is not None
        other.stdout.close()
    assert (code, out) == (2, "")
    assert err == f"{path}: is in use by another process, expected a copy or a stopped server\n"
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.backup-*"))


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


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda path: None, "cannot be read: No such file or directory"),
        (lambda path: path.write_bytes(b""), "not an SQLite database: it is empty"),
        (lambda path: path.write_bytes(b"RIFF" * 99), "not an SQLite database: it starts with 52"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(200)), "database"),
        (_directory, "is a directory, expected an SQLite file"),
        (_other_schema, "not a session database, expected the tables assistant_messages and"),
        (_half_known, "table assistant_messages has no column content, parent_id, role, session"),
    ],
    ids=["missing", "empty", "foreign", "broken", "directory", "another schema", "another version"],
)
@pytest.mark.parametrize("verb", [["check"], ["repair"], ["repair", "--write"]])
def test_what_cannot_be_read_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: Captured, spoil, error: str, verb: list[str]
):
    path = tmp_path / "state.sqlite"
    spoil(path)
    before = sorted(tmp_path.iterdir())
    code, out, err = said(capsys, verb[0], path, *verb[1:])
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(f"{path}: ")
    assert error in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_large_database_is_looked_through_without_taking_it_all_in(
    tmp_path: Path, capsys: Captured
):
    store = Store(tmp_path / "state.sqlite")
    store.database.execute("BEGIN")
    rows = [(f"m{n}", f"m{n - 1}" if n else None) for n in range(20_000)]
    rows.insert(15_000, ("compaction_r1", "m14999"))
    store.fill(rows, [("r1", "m0", "m9000")])
    store.database.execute("COMMIT")
    path = store.close()
    assert said(capsys, "repair", path, "--write")[0] == 0
    assert len(links(path)) == 20_000


@given(data=st.data())
def test_no_row_is_lost_but_the_filed_ones_and_every_path_stays_in_order(data, tmp_path_factory):
    count = data.draw(st.integers(1, 14))
    names = [f"m{n}" for n in range(count)]
    filed = data.draw(st.sets(st.sampled_from(names), max_size=6))
    identifier = {name: f"compaction_{name}" if name in filed else name for name in names}
    parents = {
        name: data.draw(st.sampled_from([None, *names[:number]]))
        for number, name in enumerate(names)
    }
    rows = [(identifier[n], identifier[p] if (p := parents[n]) else None) for n in names]
    records = [
        (name, *(identifier[data.draw(st.sampled_from(names))] for _ in range(2)))
        for name in sorted(filed)
    ]
    store = Store(
        tmp_path_factory.mktemp("s") / "state.sqlite", data.draw(st.sampled_from(["old", "new"]))
    )
    store.fill(rows, records)
    path = store.close()
    before = dict(rows)
    assert main(["sessions", "repair", str(path), "--write"]) == 0
    after = links(path)
    removed = {identifier[name] for name in filed}
    assert set(after) == set(before) - removed
    for row in after:
        assert _path(after, row) == [name for name in _path(before, row) if name not in removed]
    for record, (first, last) in ranges(path).items():
        old_first, old_last = next((f, t) for r, f, t in records if r == record)
        span = _path(before, old_last)
        span = span[: span.index(old_first) + 1] if old_first in span else span
        staying = [name for name in span if name not in removed]
        if {old_first, old_last} & removed and staying:
            assert (first, last) == (staying[-1], staying[0])
        else:
            assert (first, last) == (old_first, old_last)


def _path(parents: dict[str, str | None], row: str) -> list[str]:
    found = [row]
    while (parent := parents[found[-1]]) is not None:
        found.append(parent)
    return found
