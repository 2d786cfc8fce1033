"""Finds the summaries that were filed as rows, and what has to point elsewhere without them.

A row is one if its id is `compaction_` and the id of a compaction record of its own session. Any
other row stays, whatever it is called. (The package itself hides the same rows since 0.32.)
"""

import sqlite3
from collections.abc import Iterable, Iterator

import msgspec

from midstream.sessions.layouts import PREFIX, Layout


class Moved(msgspec.Struct, frozen=True):
    """A row whose parent is removed: its new parent, None for the beginning."""

    id: str
    old_parent: str
    new_parent: str | None


class Pointed(msgspec.Struct, frozen=True):
    """A compaction record whose range begins or ends at a removed row: its new range.

    Both new ends are None where nothing of its range is left, or where it is no range, since its
    ends are on two branches: then it is not changed.
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
    """Return a finding for each session that holds such rows.

    What is kept is bounded by the rows that go and their children, whatever the database's size.
    """
    found: dict[str, list[str]] = {}
    rows = database.execute(
        f"SELECT m.session_id, m.id FROM {layout.compactions} c CROSS JOIN {layout.messages} m "
        f"ON m.session_id = c.session_id AND m.id = ? || c.id ORDER BY 1, m.{layout.order}",
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
            f"SELECT id, parent_id FROM {self._layout.messages} "
            f"WHERE session_id = ? ORDER BY {self._layout.order}",
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
            "WHERE session_id = ? ORDER BY id",
            (self._session,),
        ).fetchall()
        return [
            self._point(*row) for row in rows if row[1] in self._removed or row[2] in self._removed
        ]

    def _point(self, identifier: str, first: str, last: str) -> Pointed:
        """Return where a range begins and ends with the rows that stay of it."""
        new_first = new_last = None
        for row in self._path(last):
            if row not in self._removed:
                new_first, new_last = row, new_last or row
            if row == first:
                return Pointed(identifier, first, last, new_first, new_last)
        return Pointed(identifier, first, last, None, None)

    def _surviving(self, identifier: str) -> str | None:
        stays = (row for row in self._path(identifier) if row not in self._removed)
        return next(stays, None)

    def _path(self, identifier: str | None) -> Iterator[str]:
        """Return a row and its ancestors. A circle of parents ends where it would begin anew."""
        seen: set[str] = set()
        while identifier is not None and identifier not in seen:
            yield identifier
            seen.add(identifier)
            row = self._database.execute(
                f"SELECT parent_id FROM {self._layout.messages} WHERE session_id = ? AND id = ?",
                (self._session, identifier),
            ).fetchone()
            identifier = None if row is None else row[0]
