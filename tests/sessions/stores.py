"""Session databases as the real packages lay them out, with a chat that was compacted."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded" / "think-0.15.sql"

type Row = tuple[str, str | None]
"""A message and its parent."""
type Record = tuple[str, str, str]
"""A compaction record, and the first and the last message of its range."""

OLD = """
CREATE TABLE assistant_messages (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL DEFAULT '', parent_id TEXT, role TEXT NOT NULL,
  content TEXT NOT NULL, created_at DATETIME DEFAULT CURRENT_TIMESTAMP);
CREATE INDEX idx_assistant_msg_parent ON assistant_messages(parent_id);
CREATE INDEX idx_assistant_msg_session ON assistant_messages(session_id);
CREATE TABLE assistant_compactions (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL DEFAULT '', summary TEXT NOT NULL,
  from_message_id TEXT NOT NULL, to_message_id TEXT NOT NULL,
  created_at DATETIME DEFAULT CURRENT_TIMESTAMP);
CREATE VIRTUAL TABLE assistant_fts USING fts5(
  id UNINDEXED, session_id UNINDEXED, role UNINDEXED, content, tokenize='porter unicode61');
CREATE TABLE assistant_config (
  session_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (session_id, key));
CREATE TABLE cf_ai_chat_stream_chunks (
  id text primary key, stream_id text not null, body text not null,
  chunk_index integer not null, created_at integer not null);
"""
"""agents 0.17 to 0.19: `AgentSessionProvider.ensureTable` in
dist/experimental/memory/session/index.js, and the streams of dist/chat/index.js."""

NEW = """
CREATE TABLE cf_agents_session_messages (
  session_id TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, parent_id TEXT,
  type TEXT NOT NULL DEFAULT 'message', role TEXT NOT NULL, content TEXT NOT NULL,
  content_chunks INTEGER NOT NULL DEFAULT 0, token_estimate INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL, content_hash TEXT, PRIMARY KEY (session_id, id)) WITHOUT ROWID;
CREATE TABLE cf_agents_session_message_chunks (
  session_id TEXT NOT NULL, id TEXT NOT NULL, idx INTEGER NOT NULL, content TEXT NOT NULL,
  PRIMARY KEY (session_id, id, idx)) WITHOUT ROWID;
CREATE TABLE cf_agents_session_compactions (
  session_id TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, summary TEXT NOT NULL,
  from_message_id TEXT NOT NULL, to_message_id TEXT NOT NULL, created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, id)) WITHOUT ROWID;
CREATE TABLE cf_agents_session_attachment_meta (
  hash TEXT PRIMARY KEY, bytes INTEGER NOT NULL, media_type TEXT NOT NULL,
  chunks INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE cf_agents_session_attachment_chunks (
  hash TEXT NOT NULL, idx INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (hash, idx)) WITHOUT ROWID;
CREATE TABLE cf_agents_session_attachment_refs (
  session_id TEXT NOT NULL, message_id TEXT NOT NULL, hash TEXT NOT NULL,
  PRIMARY KEY (session_id, message_id, hash)) WITHOUT ROWID;
CREATE VIRTUAL TABLE cf_agents_session_fts USING fts5(
  id UNINDEXED, session_id UNINDEXED, role UNINDEXED, content, tokenize='porter unicode61');
"""
"""agents 0.32, dist/sessions: `ensureTables`, `AttachmentStore.ensureTables`, `_ensureFts` (0.24
has the same but for `content_hash`)."""

FLAT = """
CREATE TABLE cf_ai_chat_agent_messages (
  id text primary key, message text not null, created_at datetime default current_timestamp);
"""
"""@cloudflare/ai-chat 0.9, dist/index.js: the one table of an AIChatAgent."""


class Store:
    """A database of one layout."""

    def __init__(self, path: Path | str, layout: str = "old") -> None:
        self.path = Path(path)
        self.layout = layout
        self._seq = 0
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA synchronous = OFF")
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
                self._insert("cf_agents_session_fts (id, session_id, role, content)",
                             identifier, session, "assistant", identifier)  # fmt: skip
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

    def attach(self, message: str, digest: str, session: str = "") -> None:
        """Let a message refer to a payload."""
        prefix = "INSERT OR IGNORE INTO cf_agents_session_attachment_"
        self.database.execute(f"{prefix}refs VALUES (?, ?, ?)", (session, message, digest))
        self.database.execute(f"{prefix}chunks VALUES (?, 0, x'00')", (digest,))
        self.database.execute(f"{prefix}meta VALUES (?, 1, 'image/png', 1)", (digest,))

    def _insert(self, into: str, *values: object) -> None:
        marks = ", ".join("?" * len(values))
        self.database.execute(f"INSERT INTO {into} VALUES ({marks})", values)

    def links(self, session: str = "") -> dict[str, str | None]:
        """Return the parents of the messages of a session."""
        return dict(_query(self.database, "messages", "id, parent_id", session))

    def ranges(self, session: str = "") -> dict[str, tuple[str, str]]:
        """Return the ranges of the compaction records."""
        columns = "id, from_message_id, to_message_id"
        rows = _query(self.database, "compactions", columns, session)
        return {identifier: (first, last) for identifier, first, last in rows}

    def close(self) -> Path:
        self.database.close()
        return self.path


def links(path: Path) -> dict[str, str | None]:
    """Return the parents of the messages of a session."""
    with closing(sqlite3.connect(path)) as database:
        return dict(_query(database, "messages", "id, parent_id"))


def ranges(path: Path) -> dict[str, tuple[str, str]]:
    """Return the ranges of the compaction records."""
    with closing(sqlite3.connect(path)) as database:
        rows = _query(database, "compactions", "id, from_message_id, to_message_id")
        return {identifier: (first, last) for identifier, first, last in rows}


def dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables; of those that have it, with the rowid."""
    with closing(sqlite3.connect(path)) as database:
        names = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
        found = {}
        for table, sql in database.execute(names).fetchall():
            columns = "*" if "WITHOUT ROWID" in sql.upper() else "rowid, *"
            found[table] = sorted(database.execute(f"SELECT {columns} FROM '{table}'"), key=repr)
        return found


def search(path: Path, words: str) -> list[str]:
    """Return the messages that the index of a database finds, once it is found to be whole."""
    with closing(sqlite3.connect(path)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
        fts = "assistant_fts" if "assistant_fts" in names else "cf_agents_session_fts"
        database.execute(f"INSERT INTO {fts}({fts}) VALUES ('integrity-check')")
        found = database.execute(f"SELECT id FROM {fts} WHERE {fts} MATCH ?", (f'"{words}"',))
        return [row[0] for row in found]


def recorded(path: Path) -> Path:
    """Make the database that a real server had filled: see record.py."""
    database = sqlite3.connect(path)
    database.executescript(OLD)
    database.executescript(RECORDED.read_text())
    database.close()
    return path


def _query(
    database: sqlite3.Connection, table: str, columns: str, session: str = ""
) -> list[tuple[Any, ...]]:
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
    prefix = "assistant_" if f"assistant_{table}" in names else "cf_agents_session_"
    query = f"SELECT {columns} FROM {prefix}{table} WHERE session_id = ?"
    return database.execute(query, (session,)).fetchall()
