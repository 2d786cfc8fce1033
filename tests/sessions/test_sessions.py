"""`midstream sessions`: what is found, what is changed, and what nothing touches."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sessions.stores import Store, dump, links, ranges, recorded, search
from tests.sessions.verbs import CHAT, RECORDS, Captured, made, said

CHAT_ROWS, STREAM_ROWS, MANY_BYTES = 20_000, 100_000, 40 << 20
LAYOUTS = pytest.mark.parametrize("layout", ["old", "new"])


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
    assert "compaction_r1 to compaction_r1, of which nothing is left on one branch: it stays" in out
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


@LAYOUTS
def test_search_finds_the_rest_and_the_row_no_more(tmp_path: Path, capsys: Captured, layout: str):
    path = made(tmp_path, layout)
    assert search(path, "r1") == ["compaction_r1"]
    assert said(capsys, "repair", path, "--write")[0] == 0
    assert search(path, "r1") == []
    assert [search(path, row) for row in ("u1", "a3")] == [["u1"], ["a3"]]


def test_payloads_go_with_the_last_message_that_refers_to_them(tmp_path: Path, capsys: Captured):
    store = Store(tmp_path / "state.sqlite", "new")
    store.fill(CHAT, RECORDS)
    store.attach("compaction_r1", "alone")
    store.attach("compaction_r1", "shared")
    store.attach("u1", "shared")
    path = store.close()
    assert said(capsys, "repair", path, "--write")[0] == 0
    rows = dump(path)
    assert rows["cf_agents_session_attachment_refs"] == [("", "u1", "shared")]
    assert rows["cf_agents_session_attachment_chunks"] == [("shared", 0, b"\0")]
    assert rows["cf_agents_session_attachment_meta"] == [("shared", 1, "image/png", 1)]
    assert all("compaction_r1" not in row for row in rows["cf_agents_session_message_chunks"])


def test_what_a_real_server_stored_is_repaired(tmp_path: Path, capsys: Captured):
    path = recorded(tmp_path / "state.sqlite")
    before, filed = links(path), "compaction_042a102f-a9fc-4f1f-98e8-f1ee1987ad5c"
    behind = next(row for row, parent in before.items() if parent == filed)
    code, out, _ = said(capsys, "repair", path, "--write")
    assert code == 0
    assert f"  {behind}: parent {filed} -> {before[filed]}\n" in out
    after = {row: parent for row, parent in before.items() if row != filed}
    assert links(path) == after | {behind: before[filed]}
    first = next(iter(before))
    assert ranges(path)["b8e52b82-21e0-4c44-b56d-68781321b84d"] == (first, before[filed])
    assert search(path, "FIRST") == []
    assert search(path, "turn 4") == [behind]


def test_what_an_id_says_to_a_terminal_is_not_passed_on(tmp_path: Path, capsys: Captured):
    rows = [("u1", None), ("compaction_\x1b[2J", "u1")]
    path = made(tmp_path, rows=rows, records=[("\x1b[2J", "u1", "u1")])
    assert "  row compaction_\\x1b[2J\n" in said(capsys, "check", path)[1]


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


def test_memory_does_not_grow_with_the_database(tmp_path: Path):
    """The rows of streams are most of a store, and a chat may be long: both are passed by."""
    store = Store(tmp_path / "state.sqlite")
    store.database.execute("BEGIN")
    rows = [(f"m{n}", f"m{n - 1}" if n else None) for n in range(CHAT_ROWS)]
    rows.insert(CHAT_ROWS // 2, ("compaction_r1", f"m{CHAT_ROWS // 2 - 1}"))
    store.fill([*rows, ("last", "compaction_r1")], [("r1", "m0", "compaction_r1")])
    store.database.executemany(
        "INSERT INTO cf_ai_chat_stream_chunks VALUES (?, 's', ?, ?, 0)",
        ((f"c{n}", "x" * 400, n) for n in range(STREAM_ROWS)),
    )
    store.database.execute("COMMIT")
    path = store.close()
    assert path.stat().st_size > MANY_BYTES
    program = (
        "import resource, sys\n"
        "from midstream.cli import main\n"
        "main(['sessions', 'check', sys.argv[2]])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "code = main(['sessions', 'repair', sys.argv[1], '--write'])\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(code, grown)\n"
    )
    (tmp_path / "small").mkdir()
    small = made(tmp_path / "small")
    done = subprocess.run(
        [sys.executable, "-c", program, path, small], capture_output=True, text=True, check=True
    )
    code, grown_kib = map(int, done.stdout.splitlines()[-1].split())
    assert code == 0
    assert grown_kib * 1024 < MANY_BYTES / 2
    assert links(path)["last"] == f"m{CHAT_ROWS // 2 - 1}"
