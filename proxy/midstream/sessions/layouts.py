"""The tables of a session store, by the version of the package that made them.

Source: cloudflare/agents, package `agents`: `dist/experimental/memory/session/index.js` of 0.17 to
0.19 (tables `assistant_*`), `dist/sessions/index.js` of 0.24 and later (`cf_agents_session_*`).
"""

import sqlite3
from typing import Final

import msgspec

from midstream.core.errors import Error

PREFIX: Final = "compaction_"
"""How the id of a summary begins; behind it stands the id of its compaction record."""


class SessionsError(Error):
    """A database that cannot be read or repaired, told in one line."""


class Layout(msgspec.Struct, frozen=True):
    """The names of the tables. `beside` are those that hold more of a message, with its id."""

    messages: str
    compactions: str
    beside: tuple[tuple[str, str], ...]


LAYOUTS: Final = (
    Layout("assistant_messages", "assistant_compactions", (("assistant_fts", "id"),)),
    Layout(
        "cf_agents_session_messages",
        "cf_agents_session_compactions",
        (
            ("cf_agents_session_message_chunks", "id"),
            ("cf_agents_session_attachment_refs", "message_id"),
            ("cf_agents_session_fts", "id"),
        ),
    ),
)
_COLUMNS: Final = {
    "messages": {"id", "session_id", "parent_id", "role", "content"},
    "compactions": {"id", "session_id", "from_message_id", "to_message_id"},
}


def layouts_of(database: sqlite3.Connection, path: str) -> list[Layout]:
    """Return the layouts that a database has, each with the tables beside it that are there.

    Raises SessionsError where there is none.
    """
    tables = {
        row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    found = []
    for layout in LAYOUTS:
        if layout.messages in tables and layout.compactions in tables:
            _check_columns(database, layout, path)
            beside = tuple(pair for pair in layout.beside if pair[0] in tables)
            found.append(msgspec.structs.replace(layout, beside=beside))
    if not found:
        raise SessionsError(
            f"{path}: not a session database, expected the tables "
            + " or ".join(f"{layout.messages} and {layout.compactions}" for layout in LAYOUTS)
        )
    return found


def _check_columns(database: sqlite3.Connection, layout: Layout, path: str) -> None:
    for table, wanted in (
        (layout.messages, _COLUMNS["messages"]),
        (layout.compactions, _COLUMNS["compactions"]),
    ):
        there = {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
        if missing := wanted - there:
            raise SessionsError(
                f"{path}: table {table} has no column {', '.join(sorted(missing))}: "
                "a version of the package that is not known"
            )
