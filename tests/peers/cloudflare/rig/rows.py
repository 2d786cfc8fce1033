"""Prints what a conversation's Durable Object has stored: python3 rows.py STATE_DIR NAME

The object's SQLite file is copied first (workerd has it open) and found by the conversation's
name, which it holds in clear.
"""

import json
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

WANTED = {
    "assistant_messages": "SELECT id, parent_id, role FROM assistant_messages ORDER BY rowid",
    "assistant_compactions": "SELECT id, from_message_id, to_message_id FROM assistant_compactions",
    "cf_ai_chat_agent_messages": "SELECT id FROM cf_ai_chat_agent_messages ORDER BY created_at",
}


def files_of(database: Path) -> list[Path]:
    """The database and what has not been folded into it yet."""
    sides = (database.with_name(database.name + end) for end in ("", "-wal", "-shm"))
    return [file for file in sides if file.exists()]


def read(database: Path) -> dict[str, list[dict[str, str]]]:
    with tempfile.TemporaryDirectory() as folder:
        for file in files_of(database):
            shutil.copy(file, folder)
        connection = sqlite3.connect(Path(folder) / database.name)
        connection.row_factory = sqlite3.Row
        try:
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            return {
                table: [dict(row) for row in connection.execute(query)]
                for table, query in WANTED.items()
                if table in names
            }
        finally:
            connection.close()


def main() -> None:
    state, name = Path(sys.argv[1]), sys.argv[2].encode()
    for database in state.glob("*/*.sqlite"):
        if any(name in file.read_bytes() for file in files_of(database)):
            tables = read(database)
            if tables:
                print(json.dumps(tables))
                return
    sys.exit(f"no stored conversation {sys.argv[2]}")


main()
