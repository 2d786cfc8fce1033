"""Session databases as the real packages lay them out, with a chat that was compacted."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

type Row = tuple[str, str | None]
"""A message and its parent."""
type Record = tuple[str, str, str]
"""A compaction record, and the first and the last message of its range."""

OLD = """
CREATE TABLE assistant_messages (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL DEFAULT '', parent_id TEXT, role TEXT NOT NULL,
  content TEXT NOT NULL, created_at DATETIME DEFAULT CURRENT_TIMESTAMP);
CREATE INDEX idx_assistant_msg_parent ON assistant_messages(parent_id);
CREATE TABLE assistant_compactions (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL DEFAULT '', summary TEXT NOT NULL,
  from_message_id TEXT NOT NULL, to_message_id TEXT NOT NULL,
  created_at DATETIME DEFAULT CURRENT_TIMESTAMP);
CREATE VIRTUAL TABLE assistant_fts USING fts5(
  id UNINDEXED, session_id UNINDEXED, role UNINDEXED, content, tokenize='porter unicode61');
"""
NEW = """
CREATE TABLE cf_agents_session_messages (
  session_id TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, parent_id TEXT,
  type TEXT NOT NULL DEFAULT 'message', role TEXT NOT NULL, content TEXT NOT NULL,
  content_chunks INTEGER NOT NULL DEFAULT 0, token_estimate INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL, PRIMARY KEY (session_id, id)) WITHOUT ROWID;
CREATE TABLE cf_agents_session_message_chunks (
  session_id TEXT NOT NULL, id TEXT NOT NULL, idx INTEGER NOT NULL, content TEXT NOT NULL,
  PRIMARY KEY (session_id, id, idx)) WITHOUT ROWID;
CREATE TABLE cf_agents_session_compactions (
  session_id TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, summary TEXT NOT NULL,
  from_message_id TEXT NOT NULL, to_message_id TEXT NOT NULL, created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, id)) WITHOUT ROWID;
"""
"""The columns are those of the package `agents` 0.19.0 and 0.24.0."""


class Store:
    """A database of one layout."""

    def __init__(self, path: Path, layout: str = "old") -> None:
        self.path = path
        self.layout = layout
        self._seq = 0
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.executescript(OLD if layout == "old" else NEW)

    def fill(self, rows: Iterable[Row], records: Iterable[Record] = (), session: str = "") -> None:
        for identifier, parent in rows:
            self._seq += 1
            content = json.dumps({"id": identifier, "parts": [], "n": 1.50})
            if self.layout == "old":
                self._insert("assistant_messages (id, session_id, parent_id, role, content)",
                             identifier, session, parent, "assistant", content)  # fmt: skip
                self._insert("assistant_fts (id, session_id, role, content)",
                             identifier, session, "assistant", identifier)  # fmt: skip
            else:
                self._insert(
                    "cf_agents_session_messages "
                    "(session_id, id, seq, parent_id, role, content, created_at)",
                    session, identifier, self._seq, parent, "assistant", content, 1,
                )  # fmt: skip
                self._insert("cf_agents_session_message_chunks (session_id, id, idx, content)",
                             session, identifier, 0, "more")  # fmt: skip
        for identifier, first, last in records:
            self._seq += 1
            if self.layout == "old":
                self._insert(
                    "assistant_compactions "
                    "(id, session_id, summary, from_message_id, to_message_id)",
                    identifier, session, "S", first, last,
                )  # fmt: skip
            else:
                self._insert(
                    "cf_agents_session_compactions "
                    "(session_id, id, seq, summary, from_message_id, to_message_id, created_at)",
                    session, identifier, self._seq, "S", first, last, 1,
                )  # fmt: skip

    def _insert(self, into: str, *values: object) -> None:
        marks = ", ".join("?" * len(values))
        self.database.execute(f"INSERT INTO {into} VALUES ({marks})", values)

    def close(self) -> Path:
        self.database.close()
        return self.path


def links(path: Path, session: str = "") -> dict[str, str | None]:
    """Return the parents of the messages of a session."""
    return dict(_query(path, "messages", "id, parent_id", session))


def ranges(path: Path, session: str = "") -> dict[str, tuple[str, str]]:
    """Return the ranges of the compaction records."""
    rows = _query(path, "compactions", "id, from_message_id, to_message_id", session)
    return {identifier: (first, last) for identifier, first, last in rows}


def dump(path: Path) -> list[str]:
    database = sqlite3.connect(path)
    try:
        return list(database.iterdump())
    finally:
        database.close()


def _query(path: Path, table: str, columns: str, session: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(path)
    try:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
        old = "assistant_" if f"assistant_{table}" in names else "cf_agents_session_"
        return database.execute(
            f"SELECT {columns} FROM {old}{table} WHERE session_id = ?", (session,)
        ).fetchall()
    finally:
        database.close()
