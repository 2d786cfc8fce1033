"""Finds the summaries that were filed as rows, and what has to point elsewhere without them.

A row is one if its id is `compaction_` and the id of a compaction record of its own session. Any
other row stays, whatever it is called.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from midstream.sessions.layouts import PREFIX, Layout

MAX_STEPS: Final = 1_000_000
"""How far a chain of parents is followed: a circle would have no end."""


class Moved(msgspec.Struct, frozen=True):
    """A row whose parent is removed: its new parent, None for the beginning."""

    id: str
    old_parent: str
    new_parent: str | None


class Pointed(msgspec.Struct, frozen=True):
    """A compaction record whose range ends at a removed row: where it ends from now on.

    Both are None where nothing of its range is left: then it is not changed.
    """

    id: str
    old_from: str
    old_to: str
    new_from: str | None
    new_to: str | None


class Finding(msgspec.Struct, frozen=True):
    """What is wrong in one session."""

    layout: Layout
    session: str
    removed: list[str]
    moved: list[Moved]
    pointed: list[Pointed]


def find(database: sqlite3.Connection, layout: Layout) -> Iterator[Finding]:
    """Return a finding for each session that holds such rows."""
    found: dict[str, list[str]] = {}
    # Both are bounded by the rows to be removed, whatever the size of the database.
    rows = database.execute(
        f"SELECT m.session_id, m.id FROM {layout.messages} m JOIN {layout.compactions} c "
        "ON c.session_id = m.session_id AND m.id = ? || c.id ORDER BY m.session_id, m.rowid"
        if _has_rowid(database, layout.messages)
        else f"SELECT m.session_id, m.id FROM {layout.messages} m JOIN {layout.compactions} c "
        "ON c.session_id = m.session_id AND m.id = ? || c.id ORDER BY m.session_id, m.seq",
        (PREFIX,),
    )
    for session, identifier in rows:
        found.setdefault(session, []).append(identifier)
    for session, removed in found.items():
        rows_of = _Rows(database, layout, session, removed)
        yield Finding(layout, session, removed, rows_of.moved(), rows_of.pointed())


class _Rows:
    """The rows of one session, seen as if some of them were gone."""

    def __init__(
        self,
        database: sqlite3.Connection,
        layout: Layout,
        session: str,
        removed: Iterable[str],
    ) -> None:
        self._database = database
        self._layout = layout
        self._session = session
        self._removed = frozenset(removed)

    def moved(self) -> list[Moved]:
        """Return the rows whose parent goes, with the nearest ancestor that stays."""
        rows = self._database.execute(
            f"SELECT id, parent_id FROM {self._layout.messages} WHERE session_id = ?",
            (self._session,),
        )
        return [
            Moved(identifier, parent, self._surviving(parent))
            for identifier, parent in rows
            if parent in self._removed and identifier not in self._removed
        ]

    def pointed(self) -> list[Pointed]:
        """Return the compaction records that begin or end at a row that goes."""
        rows = self._database.execute(
            f"SELECT id, from_message_id, to_message_id FROM {self._layout.compactions} "
            "WHERE session_id = ?",
            (self._session,),
        ).fetchall()
        return [
            self._point(*row) for row in rows if row[1] in self._removed or row[2] in self._removed
        ]

    def _point(self, identifier: str, first: str, last: str) -> Pointed:
        """Return where a range begins and ends with the rows that stay of it."""
        staying = [row for row in self._range(first, last) if row not in self._removed]
        if not staying:
            return Pointed(identifier, first, last, None, None)
        return Pointed(identifier, first, last, staying[-1], staying[0])

    def _range(self, first: str, last: str) -> Iterator[str]:
        """Return the rows of a range, from its end back to its beginning."""
        at: str | None = last
        for _ in range(MAX_STEPS):
            if at is None:
                return
            yield at
            if at == first:
                return
            at = self._parent(at)

    def _surviving(self, identifier: str | None) -> str | None:
        for _ in range(MAX_STEPS):
            if identifier is None or identifier not in self._removed:
                return identifier
            identifier = self._parent(identifier)
        return None

    def _parent(self, identifier: str) -> str | None:
        row = self._database.execute(
            f"SELECT parent_id FROM {self._layout.messages} WHERE session_id = ? AND id = ?",
            (self._session, identifier),
        ).fetchone()
        return None if row is None else row[0]


def _has_rowid(database: sqlite3.Connection, table: str) -> bool:
    columns = {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
    return "seq" not in columns
