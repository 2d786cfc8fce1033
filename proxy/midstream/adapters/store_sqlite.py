"""A store in an SQLite file: the workers of one host share it, and restarts find it again.

One thread of its own talks to the file, so that a slow disk delays no stream.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from midstream.core.errors import StoreError

BUSY_MS: Final = 250
PURGE_SECONDS: Final = 60
FILE_MODE: Final = 0o600

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS conversations (
    key BLOB PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, expires_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS conversations_by_expiry ON conversations (expires_ms);
"""
_LOAD: Final = "SELECT value, version FROM conversations WHERE key = ? AND expires_ms > ?"
_SAVE: Final = """
INSERT INTO conversations (key, value, version, expires_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    value = excluded.value, version = excluded.version, expires_ms = excluded.expires_ms
WHERE excluded.version > version OR expires_ms <= ?
"""
_PURGE: Final = "DELETE FROM conversations WHERE expires_ms <= ?"


class SqliteStore:
    """Conversations by key, in one file. `wall_ms` is milliseconds since 1970."""

    def __init__(
        self, path: str, *, wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._path = Path(path)
        self._wall_ms = wall_ms
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-sqlite")
        self._file: sqlite3.Connection | None = None
        self._purged_ms = 0

    async def load(self, key: bytes) -> tuple[bytes, int] | None:
        return await self._run(self._load, key)

    async def save(self, key: bytes, value: bytes, version: int, ttl_s: float) -> bool:
        return await self._run(self._save, key, value, version, ttl_s)

    async def close(self) -> None:
        await self._run(self._close)
        self._thread.shutdown()

    async def _run[**P, T](self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def attempt() -> T:
            try:
                return work(*args, **kwargs)
            except (sqlite3.Error, OSError) as error:
                raise StoreError(f"sqlite: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, attempt)

    # --- in the thread --------------------------------------------------------------------------

    def _load(self, key: bytes) -> tuple[bytes, int] | None:
        row = self._opened().execute(_LOAD, (key, self._wall_ms())).fetchone()
        return None if row is None else (bytes(row[0]), int(row[1]))

    def _save(self, key: bytes, value: bytes, version: int, ttl_s: float) -> bool:
        now_ms = self._wall_ms()
        file = self._opened()
        if now_ms - self._purged_ms > PURGE_SECONDS * 1000:
            self._purged_ms = now_ms
            file.execute(_PURGE, (now_ms,))
        row = (key, value, version, now_ms + int(ttl_s * 1000), now_ms)
        return file.execute(_SAVE, row).rowcount > 0

    def _opened(self) -> sqlite3.Connection:
        """Return the file, made for its owner alone where there is none."""
        if self._file is None:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
            file = sqlite3.connect(self._path, timeout=BUSY_MS / 1000, isolation_level=None)
            try:
                file.execute("PRAGMA journal_mode = WAL")
                file.execute("PRAGMA synchronous = NORMAL")
                file.executescript(_SCHEMA)
            except sqlite3.Error:
                file.close()
                raise
            self._file = file
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
