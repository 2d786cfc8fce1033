"""Takes filed summaries out of a session database, in one transaction."""

import sqlite3
from collections.abc import Iterable

from midstream.sessions.database import damage
from midstream.sessions.findings import Finding
from midstream.sessions.layouts import SessionsError


def repair(database: sqlite3.Connection, findings: Iterable[Finding], path: str) -> None:
    """Carry out findings in a database that nobody else can write to since they were found.

    Raises SessionsError, and then nothing was changed.
    """
    foreign = _foreign_keys(database)
    database.execute("BEGIN IMMEDIATE")
    for finding in findings:
        _carry_out(database, finding)
    wrong = damage(database, "integrity_check")
    if wrong is None and (worse := _foreign_keys(database) - foreign):
        wrong = f"a foreign key leads nowhere: {min(worse)}"
    if wrong is not None:
        database.execute("ROLLBACK")
        raise SessionsError(f"{path}: not repaired, it would not be whole: {wrong}")
    database.execute("COMMIT")


def _carry_out(database: sqlite3.Connection, finding: Finding) -> None:
    layout, session = finding.layout, finding.session
    database.executemany(
        f"UPDATE {layout.messages} SET parent_id = ? WHERE session_id = ? AND id = ?",
        [(moved.new_parent, session, moved.id) for moved in finding.moved],
    )
    database.executemany(
        f"UPDATE {layout.compactions} SET from_message_id = ?, to_message_id = ? "
        "WHERE session_id = ? AND id = ?",
        [(p.new_from, p.new_to, session, p.id) for p in finding.pointed if p.new_from is not None],
    )
    for identifier in finding.removed:
        for table, column in ((layout.messages, "id"), *layout.beside):
            database.execute(
                f"DELETE FROM {table} WHERE session_id = ? AND {column} = ?",
                (session, identifier),
            )
        if layout.refs:
            _release(database, finding, identifier)


def _release(database: sqlite3.Connection, finding: Finding, identifier: str) -> None:
    """Drop what a message refers to, and payloads that nothing refers to any more.

    Source: `AttachmentStore.releaseMessages` in agents 0.32 (dist/sessions).
    """
    refs = finding.layout.refs
    of_message = f"FROM {refs} WHERE session_id = ? AND message_id = ?"
    key = (finding.session, identifier)
    hashes = database.execute(f"SELECT DISTINCT hash {of_message}", key).fetchall()
    database.execute(f"DELETE {of_message}", key)
    for table in finding.layout.attachments:
        database.executemany(
            f"DELETE FROM {table} WHERE hash = ?1 "
            f"AND NOT EXISTS (SELECT 1 FROM {refs} WHERE hash = ?1)",
            hashes,
        )


def _foreign_keys(database: sqlite3.Connection) -> set[str]:
    """Return the rows whose foreign keys lead nowhere."""
    return {str(row) for row in database.execute("PRAGMA foreign_key_check")}
