"""A capture as JSON lines: one object for each record.

exchange, seq, kind, time (seconds since 1970), mono (seconds), route, side, frame, bytes,
payload (text, or {"base64": …}), sent ([{side, frame, payload}], null where the frame went on
as it came), addon, rule (of the first repair), rules, declined, why ([[addon, word, {fact: …}]]),
meta
"""

import base64
from collections.abc import Iterable
from typing import Any, BinaryIO

import msgspec

from midstream.adapters.capture_format import StoredRecord

NS_PER_S = 1_000_000_000


def write_jsonl(records: Iterable[StoredRecord], file: BinaryIO) -> None:
    """Write a line for each record."""
    for record in records:
        file.write(msgspec.json.encode(as_object(record)) + b"\n")


def as_object(record: StoredRecord) -> dict[str, object]:
    """Return a record as JSON can hold it."""
    first = record.rules[0] if record.rules else (None, None)
    return {
        "exchange": record.exchange,
        "seq": record.seq,
        "kind": record.kind.value,
        "time": record.wall_ns / NS_PER_S,
        "mono": record.mono_ns / NS_PER_S,
        "route": record.route,
        "side": None if record.side is None else record.side.value,
        "frame": None if record.frame is None else record.frame.value,
        "bytes": len(record.data),
        "payload": None if record.frame is None else readable(record.data),
        "sent": None
        if record.sent is None
        else [
            {"side": side.value, "frame": kind.value, "payload": readable(wire)}
            for side, kind, wire in record.sent
        ],
        "addon": first[0],
        "rule": first[1],
        "rules": record.rules,
        "declined": record.skips,
        "why": plain(record.meta.get("why", [])),
        "meta": plain({key: value for key, value in record.meta.items() if key != "why"}),
    }


def readable(data: bytes) -> str | dict[str, str]:
    """Return text as it is, anything else as base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def plain(value: Any) -> Any:
    """Return a value of `meta` in types of JSON."""
    if isinstance(value, bytes):
        return readable(value)
    if isinstance(value, dict):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
