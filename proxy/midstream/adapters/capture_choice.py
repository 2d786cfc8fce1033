"""Chooses which exchanges are captured at all, and which of those are kept.

An exchange is chosen when it opens: by route, by path, and by a share of all that is fixed by its
number, so that all of it is there or none. What is kept of the chosen ones is decided while they
run: everything, those that an addon touched, those that failed, or only what is asked for.
"""

import zlib
from typing import Final

from midstream.config.schema import CaptureTable
from midstream.core.ports import Record, RecordKind

SERVER_ERROR: Final = 500
NORMAL_CLOSES: Final = frozenset({1000, 1001, 1005})
ABORTED: Final = "aborted"
SCALE: Final = 1 << 32


class Choice:
    """What `[capture]` says of exchanges."""

    def __init__(self, table: CaptureTable) -> None:
        self._routes = frozenset(table.routes)
        self._paths = tuple(table.paths)
        self._limit = int(table.sample * SCALE)
        self._keep = table.keep

    @property
    def keeps_all(self) -> bool:
        return self._keep == "all"

    def takes(self, opened: Record) -> bool:
        """Tell whether an exchange is captured, by its `open` record."""
        if self._routes and opened.meta.get("route") not in self._routes:
            return False
        path = path_of(opened)
        if self._paths and not any(_matches(pattern, path) for pattern in self._paths):
            return False
        return zlib.crc32(opened.exchange.to_bytes(8)) < self._limit

    def keeps(self, record: Record) -> bool:
        """Tell whether this record makes its exchange one that is kept."""
        if self._keep == "mended":
            return bool(record.rules)
        return self._keep == "errors" and _is_error(record)


def path_of(opened: Record) -> str:
    """Return the path of an exchange, without its query, by its `open` record."""
    return str(opened.meta.get("target", "")).partition("?")[0]


def _matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _is_error(record: Record) -> bool:
    if record.kind is RecordKind.HEADERS:
        status = record.meta.get("status")
        return isinstance(status, int) and status >= SERVER_ERROR
    if record.kind is not RecordKind.CLOSE:
        return False
    code = record.meta.get("code")
    is_bad = isinstance(code, int) and bool(code) and code not in NORMAL_CLOSES
    return is_bad or record.meta.get("ending") == ABORTED
