"""Opens a session database, and makes a copy of it before anything is written.

To look at one leaves no trace: no file beside it, no time changed, no lock.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from midstream.sessions.layouts import SessionsError

MAGIC: Final = b"SQLite format 3\x00"
BUSY_SECONDS: Final = 2.0


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to look at. Raises SessionsError."""
    _check(path)
    if not _has_log(path):
        with _connected(path, path, "mode=ro&immutable=1") as database:
            yield database
        return
    # The file alone is not the whole truth, and SQLite would write beside it: a copy is read.
    with tempfile.TemporaryDirectory(prefix="midstream-") as folder:
        copy = Path(folder) / "copy"
        try:
            shutil.copyfile(path, copy)
            shutil.copyfile(_log(path), _log(copy))
        except OSError as error:
            raise SessionsError(f"{path}: cannot be copied: {error.strerror}") from None
        with _connected(copy, path, "mode=rw") as database:
            yield database


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to repair. Raises SessionsError."""
    _check(path)
    if not os.access(path, os.W_OK):
        raise SessionsError(f"{path}: cannot be written, expected a file of your own")
    with _connected(path, path, "mode=rw") as database:
        yield database


def backed_up(path: Path) -> Path:
    """Copy a database beside itself, what is only in its log included; return the copy's path.

    It is read over a connection of its own: one that writes cannot be copied from.
    """
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    number = 0
    while True:
        number += 1
        copy = path.with_name(f"{path.name}.backup-{stamp}" + (f"-{number}" if number > 1 else ""))
        try:
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        except OSError as error:
            raise SessionsError(f"{copy}: cannot be written: {error.strerror}") from None
        break
    with _connected(path, path, "mode=ro") as source:
        target = sqlite3.connect(copy)
        try:
            source.backup(target)
        finally:
            target.close()
    return copy


@contextmanager
def _connected(path: Path, name: Path, how: str) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(path.absolute()))}?{how}"
    database = None
    try:
        database = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        yield database
    except sqlite3.Error as error:
        raise SessionsError(f"{name}: {_in_words(error)}") from None
    finally:
        if database is not None:
            database.close()


def _check(path: Path) -> None:
    if path.is_dir():
        raise SessionsError(f"{path}: is a directory, expected an SQLite file")
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise SessionsError(f"{path}: cannot be read: {error.strerror}") from None
    if start != MAGIC:
        found = f"it starts with {start[:8].hex(' ')}" if start else "it is empty"
        raise SessionsError(f"{path}: not an SQLite database: {found}")


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _has_log(path: Path) -> bool:
    log = _log(path)
    return log.exists() and log.stat().st_size > 0


def _in_words(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return "is in use by another process, expected a copy or a stopped server"
    return text
