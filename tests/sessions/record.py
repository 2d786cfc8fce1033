"""Prints the session tables of a database as SQL: python record.py DB >recorded/think-0.15.sql

DB is a copy of a Durable Object's file, made by tests/peers/cloudflare/sessions.mjs (the backup of
its conversation `pointed`): @cloudflare/think 0.15.0 with agents 0.19.0, under workerd.
"""

import sqlite3
import sys

TABLES = ("assistant_messages", "assistant_compactions", "assistant_fts")


def main() -> None:
    database = sqlite3.connect(f"file:{sys.argv[1]}?immutable=1", uri=True)
    for table in TABLES:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        names = ", ".join(["rowid", *columns])
        quoted = " || ', ' || ".join(f"quote({name})" for name in ["rowid", *columns])
        for (values,) in database.execute(f"SELECT {quoted} FROM {table} ORDER BY rowid"):
            print(f"INSERT INTO {table} ({names}) VALUES ({values});")
    database.close()


if __name__ == "__main__":
    main()
