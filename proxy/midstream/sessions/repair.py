"""Takes filed summaries out of a session database, in one transaction."""

import sqlite3
from collections.abc import Iterable

from midstream.sessions.findings import Finding
from midstream.sessions.layouts import SessionsError


def repair(database: sqlite3.Connection, findings: Iterable[Finding], path: str) -> None:
    """Carry out findings. Raises SessionsError, and then nothing was changed.

    The caller has begun the transaction in which they were found, so that nobody changes what
    they rest on; it is committed here once the database is found to be whole.
    """
    broken = _broken(database)
    for finding in findings:
        _carry_out(database, finding)
    if worse := _broken(database) - broken:
        database.execute("ROLLBACK")
        raise SessionsError(f"{path}: not repaired, it would not be whole: {sorted(worse)[0]}")
    database.execute("COMMIT")


def _carry_out(database: sqlite3.Connection, finding: Finding) -> None:
    layout, session = finding.layout, finding.session
    for moved in finding.moved:
        database.execute(
            f"UPDATE {layout.messages} SET parent_id = ? WHERE session_id = ? AND id = ?",
            (moved.new_parent, session, moved.id),
        )
    for pointed in finding.pointed:
        if pointed.new_from is not None:
            database.execute(
                f"UPDATE {layout.compactions} SET from_message_id = ?, to_message_id = ? "
                "WHERE session_id = ? AND id = ?",
                (pointed.new_from, pointed.new_to, session, pointed.id),
            )
    for identifier in finding.removed:
        for table, column in ((layout.messages, "id"), *layout.beside):
            database.execute(
                f"DELETE FROM {table} WHERE session_id = ? AND {column} = ?",
                (session, identifier),
            )


def _broken(database: sqlite3.Connection) -> set[str]:
    """Return what SQLite itself finds wrong."""
    found = {row[0] for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"}
    return found | {str(row) for row in database.execute("PRAGMA foreign_key_check")}
