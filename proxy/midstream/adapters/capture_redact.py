"""Takes secrets out of records before they are queued.

A header value becomes a token: a hash keyed with a secret of this process. Equal secrets have equal
tokens within a capture, so exchanges of one user stay together, and nobody can test a guess.
"""

import hashlib
import secrets
from collections.abc import Iterable

import msgspec

from midstream.core.ports import Record, RecordKind

TOKEN_PREFIX = "redacted:"  # noqa: S105 - it marks what is no secret
_HOST_HEADERS = frozenset({"host", "x-forwarded-host", "forwarded"})
_WITH_HEADERS = (RecordKind.OPEN, RecordKind.HEADERS)


class Redactor:
    """Replaces the values of the named headers; names in any case."""

    def __init__(self, names: Iterable[str], key: bytes | None = None) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._key = key or secrets.token_bytes(32)

    def record(self, record: Record) -> Record:
        """Return the record without the secrets of its head; one without a head as it is."""
        headers = record.meta.get("headers")
        if record.kind not in _WITH_HEADERS or not isinstance(headers, list | tuple):
            return record
        clean = tuple(
            (name, self.token(value) if name.lower() in self._names else value)
            for name, value in headers
        )
        meta = {**record.meta, "headers": clean}
        if self._names & _HOST_HEADERS and "origin" in meta:
            meta["origin"] = ""  # it says what they say
        return msgspec.structs.replace(record, meta=meta)

    def token(self, value: str) -> str:
        """Return what stands for a secret."""
        encoded = value.encode("utf-8", "surrogateescape")
        return TOKEN_PREFIX + hashlib.blake2b(encoded, digest_size=16, key=self._key).hexdigest()
