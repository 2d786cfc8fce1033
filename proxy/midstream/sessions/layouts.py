"""The tables of a session store, by the version of the package that made them.

Source: cloudflare/agents, package `agents`: `dist/experimental/memory/session/index.js` of 0.17 to
0.19 (tables `assistant_*`), `dist/sessions/` of 0.24 to 0.32 (`cf_agents_session_*`; later ones
add columns); `@cloudflare/ai-chat` 0.9 (`cf_ai_chat_agent_messages`). None of them keeps counters.
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
    """The names of the tables, and the column that says in which order rows were stored.

    `beside` are tables that hold more of a message, with the column of its id; `attachments` those
    of payloads that are kept as long as a message refers to them.
    """

    messages: str
    compactions: str
    order: str
    beside: tuple[tuple[str, str], ...]
    refs: str = ""
    attachments: tuple[str, ...] = ()


LAYOUTS: Final = (
    Layout("assistant_messages", "assistant_compactions", "rowid", (("assistant_fts", "id"),)),
    Layout(
        "cf_agents_session_messages",
        "cf_agents_session_compactions",
        "seq",
        (("cf_agents_session_message_chunks", "id"), ("cf_agents_session_fts", "id")),
        "cf_agents_session_attachment_refs",
        ("cf_agents_session_attachment_chunks", "cf_agents_session_attachment_meta"),
    ),
)
WITHOUT_RECORDS: Final = "cf_ai_chat_agent_messages"
"""The one table of an AIChatAgent: it makes no summaries, so none can be filed there."""
_COLUMNS: Final = {
    "messages": {"id", "session_id", "parent_id", "role", "content"},
    "compactions": {"id", "session_id", "from_message_id", "to_message_id"},
}


def layouts_of(database: sqlite3.Connection, path: str) -> list[Layout]:
    """Return the layouts that a database has, each with the tables beside it that are there.

    Raises SessionsError where it is no session store.
    """
    tables = {
        row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    found = []
    for layout in LAYOUTS:
        if layout.messages in tables and layout.compactions in tables:
            _check_columns(database, layout, path)
            found.append(_present(layout, tables))
    if not found and WITHOUT_RECORDS not in tables:
        raise SessionsError(
            f"{path}: not a session database, expected the tables "
            + " or ".join(f"{layout.messages} and {layout.compactions}" for layout in LAYOUTS)
        )
    return found


def _present(layout: Layout, tables: set[str]) -> Layout:
    return msgspec.structs.replace(
        layout,
        beside=tuple(pair for pair in layout.beside if pair[0] in tables),
        refs=layout.refs if layout.refs in tables else "",
        attachments=tuple(table for table in layout.attachments if table in tables),
    )


def _check_columns(database: sqlite3.Connection, layout: Layout, path: str) -> None:
    for table, wanted in (
        (layout.messages, _COLUMNS["messages"] | ({"seq"} & {layout.order})),
        (layout.compactions, _COLUMNS["compactions"]),
    ):
        there = {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
        if missing := wanted - there:
            raise SessionsError(
                f"{path}: table {table} has no column {', '.join(sorted(missing))}: "
                "a version of the package that is not known"
            )
