"""Opens a session database, and makes a copy of it before anything is written.

To look at one leaves no trace: no file beside it, no time changed. To write to one takes it for
oneself alone, since a server that has it open remembers what it held.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from midstream.sessions.layouts import SessionsError

MAGIC: Final = b"SQLite format 3\x00"
WRITTEN_WITH_A_LOG: Final = b"\x02"
"""The byte 18 of a database whose journal is a write-ahead log."""
BUSY_SECONDS: Final = 2.0
COPY_TRIES: Final = 3
COPY_PAUSE_SECONDS: Final = 0.2
BACKUP_NAMES: Final = 100
BACKUP_STEP_PAGES: Final = 2_000

type Progress = Callable[[int, int], None]
"""Is told how much of how much is done."""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to look at. Raises SessionsError."""
    has_log = _check(path)
    real = path.resolve()  # what SQLite keeps beside a database stands beside the file, not a link
    sides = [side for side in (_beside(real, "-wal"), _beside(real, "-journal")) if _is_used(side)]
    if not sides:
        # Only a file that nobody locks is read without asking: to ask would leave files beside it.
        with _connected(real, path, "mode=ro&immutable=1" if has_log else "mode=ro") as database:
            yield _whole(database, path, "quick_check")
        return
    # The file alone is not the whole truth, and SQLite would write beside it: a copy is read.
    with tempfile.TemporaryDirectory(prefix="midstream-") as folder:
        copy = Path(folder) / "copy"
        _copy(real, sides, copy, path)
        with _connected(copy, path, "mode=rw") as database:
            yield _whole(database, path, "quick_check")


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to repair, locked until it is closed. Raises SessionsError.

    If anything is raised inside, what is in its log stays there.
    """
    _check(path)
    real = path.resolve()
    for place in (real, real.parent):
        if not os.access(place, os.W_OK):
            raise SessionsError(f"{path}: {place} cannot be written, expected one of your own")
    with _connected(real, path, "mode=rw") as database:
        database.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")  # an idle server has no transaction, but a lock
        database.execute("COMMIT")  # the lock stays
        yield _whole(database, path, "integrity_check")
        database.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, False)


def backed_up(database: sqlite3.Connection, path: Path, progress: Progress) -> Path:
    """Copy a locked database beside itself, its log included; return the copy's path."""
    copy = _new_file(path)
    target = sqlite3.connect(copy, isolation_level=None)

    def step(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SessionsError(f"{path}: {_IN_USE}")  # it would be tried again for ever
        progress(total - remaining, total)

    try:
        database.backup(target, pages=BACKUP_STEP_PAGES, progress=step)
        target.close()
    except BaseException as error:
        target.close()
        copy.unlink()
        if isinstance(error, sqlite3.Error):
            raise SessionsError(f"{copy}: cannot be written: {error}") from None
        raise
    return copy


def damage(database: sqlite3.Connection, pragma: str) -> str | None:
    """Return the first thing that is wrong with the file itself, by SQLite's own check."""
    for (found,) in database.execute(f"PRAGMA {pragma}(1)"):
        if found != "ok":
            return " ".join(str(found).split())
    return None


def _whole(database: sqlite3.Connection, path: Path, pragma: str) -> sqlite3.Connection:
    if found := damage(database, pragma):
        raise SessionsError(f"{path}: damaged: {found}")
    return database


def _new_file(path: Path) -> Path:
    """Create a file for a copy: readable by its owner alone, under a name that nothing has."""
    real = path.resolve()
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    for number in range(1, BACKUP_NAMES + 1):
        end = f"-{number}" if number > 1 else ""
        copy = real.with_name(f"{real.name}.backup-{stamp}{end}")
        try:
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        except OSError as error:
            raise SessionsError(f"{copy}: cannot be written: {error.strerror}") from None
        return copy
    raise SessionsError(f"{path}: {BACKUP_NAMES} backups of this second are beside it already")


@contextmanager
def _connected(path: Path, name: Path, how: str) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(path))}?{how}"
    database = None
    try:
        database = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        yield database
    except sqlite3.Error as error:
        raise SessionsError(f"{name}: {_in_words(error)}") from None
    finally:
        if database is not None:
            database.close()


def _check(path: Path) -> bool:
    """Refuse what is no database; tell whether it is written with a log."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise SessionsError(f"{path}: is a directory, expected an SQLite file")
        if not stat.S_ISREG(mode):
            raise SessionsError(f"{path}: is not a file, expected an SQLite file")
        with path.open("rb") as file:
            start = file.read(len(MAGIC) + 3)
    except OSError as error:
        raise SessionsError(f"{path}: cannot be read: {error.strerror}") from None
    if not start.startswith(MAGIC):
        found = f"it starts with {start[:8].hex(' ')}" if start else "it is empty"
        raise SessionsError(f"{path}: not an SQLite database (or an encrypted one): {found}")
    return start[len(MAGIC) + 2 :] == WRITTEN_WITH_A_LOG


def _copy(real: Path, sides: list[Path], copy: Path, name: Path) -> None:
    """Copy a database and what belongs to it, all of the same moment."""
    files = [(real, copy), *((side, _beside(copy, side.name[len(real.name) :])) for side in sides)]
    for left in reversed(range(COPY_TRIES)):
        before = [_moment(source) for source, _ in files]
        for source, target in files:
            try:
                shutil.copyfile(source, target)
            except OSError as error:
                raise SessionsError(f"{source}: cannot be read: {error.strerror}") from None
        if [_moment(source) for source, _ in files] == before:
            return
        if left:
            time.sleep(COPY_PAUSE_SECONDS)
    raise SessionsError(f"{name}: {_IN_USE}")


def _moment(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _is_used(path: Path) -> bool:
    found = _moment(path)
    return found is not None and found[1] > 0


_IN_USE: Final = "is in use by another process, expected a copy or a stopped server"


def _in_words(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return _IN_USE
    if "malformed" in text or "not a database" in text:
        return f"damaged: {text}"
    return text
