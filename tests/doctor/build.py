"""Builds captures record by record, and examines them."""

import json
from pathlib import Path
from typing import Any

from midstream.adapters.capture_format import HEADER, Damage, StoredRecord, encode, segment_name
from midstream.config import load
from midstream.core.frames import Kind, Side
from midstream.core.ports import RecordKind
from midstream.doctor.examine import Doctor
from midstream.doctor.report import Finding, Report

EPOCH_NS = 1_800_000_000_000_000_000
MS = 1_000_000
CLIENT, SERVER = Side.CLIENT, Side.SERVER
UPGRADE = [["Upgrade", "websocket"]]


class Tape:
    """A capture in the making; it is a source of records, too. Each record is 1 ms after the last.

    The frames of an exchange are given as JSON documents.
    """

    def __init__(self) -> None:
        self.records: list[StoredRecord] = []
        self.damage: Damage | None = None
        self.paths: tuple[Path, ...] = ()
        self.now_ns = 0
        self._seqs: dict[int, int] = {}

    def __iter__(self) -> Any:
        return iter(self.records)

    def add(self, exchange: int, kind: RecordKind, side: Side | None = None, **more: Any) -> None:
        """Add a record of any kind."""
        self.now_ns += MS
        self._seqs[exchange] = self._seqs.get(exchange, 0) + 1
        record = StoredRecord(
            EPOCH_NS + self.now_ns, self.now_ns, exchange, self._seqs[exchange], kind, side, **more
        )
        self.records.append(record)

    def open(
        self, exchange: int, target: str, method: str = "POST", headers: Any = (), **meta: Any
    ) -> None:
        headers = [list(pair) for pair in headers]
        head = {"method": method, "target": target, "headers": headers}
        known = {"route": "default", "upstream": "http://upstream.test"}
        self.add(exchange, RecordKind.OPEN, route="default", meta={**known, **head, **meta})

    def socket(self, exchange: int, target: str = "/chat?_pk=p") -> None:
        """Open a WebSocket."""
        self.open(exchange, target, "GET", UPGRADE)
        self.add(exchange, RecordKind.HEADERS, SERVER, meta={"status": 101, "headers": []})

    def stream(self, exchange: int, target: str = "/", request: Any = None) -> None:
        """Open an event stream with a JSON request."""
        self.open(exchange, target, headers=[["Content-Type", "application/json"]])
        if request is not None:
            self.say(exchange, request, CLIENT, Kind.BODY)
        self.add(exchange, RecordKind.CLOSE, CLIENT)
        headers = [["Content-Type", "text/event-stream"]]
        self.add(exchange, RecordKind.HEADERS, SERVER, meta={"status": 200, "headers": headers})

    def say(
        self,
        exchange: int,
        document: Any,
        side: Side = SERVER,
        kind: Kind = Kind.WS_TEXT,
        **more: Any,
    ) -> None:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        wire = b"data: " + data + b"\n\n" if kind is Kind.SSE else data
        self.add(exchange, RecordKind.FRAME, side, frame=kind, data=wire, **more)

    def event(self, exchange: int, document: Any, **more: Any) -> None:
        """Send an event."""
        self.say(exchange, document, SERVER, Kind.SSE, **more)

    def end(self, exchange: int) -> None:
        """End both sides of an exchange."""
        self.add(exchange, RecordKind.CLOSE, SERVER)
        self.add(exchange, RecordKind.CLOSE, meta={"ending": "complete"})

    def break_off(self, exchange: int, **meta: Any) -> None:
        self.add(exchange, RecordKind.CLOSE, meta={"ending": "aborted", **meta})

    def write(self, directory: Path, name: str = "tape") -> Path:
        path = directory / segment_name(name, 1)
        path.write_bytes(HEADER + b"".join(encode(record) for record in self.records))
        return path


def chunk(stream: str, chunk: dict[str, object] | None, **more: object) -> dict[str, object]:
    """Return a chunk of a chat's stream."""
    body = "" if chunk is None else json.dumps(chunk)
    return {"type": "cf_agent_use_chat_response", "id": stream, "body": body, "done": False, **more}


def delta(stream: str, text: str, **more: object) -> dict[str, object]:
    return chunk(stream, {"type": "text-delta", "id": "t", "delta": text}, **more)


def examine(*tapes: Tape, is_drawn: bool = False) -> Report:
    """Examine tapes as `midstream doctor` does without a configuration."""
    doctor = Doctor(load(environ={}, needs_upstream=False), is_drawn=is_drawn)
    for number, tape in enumerate(tapes):
        doctor.take(f"tape{number}", tape)
    return doctor.report()


def finding(report: Report, name: str) -> Finding | None:
    return next((one for one in report.findings if one.name == name), None)


def faults(report: Report) -> dict[str, int]:
    return {fault.addon: fault.seen.count for fault in report.faults}
