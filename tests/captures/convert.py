"""Converts recordings of real traffic into captures.

    python -m tests.captures.convert SOURCE TARGET

SOURCE holds `cloudflare/*.jsonl` and `cloudflare/golden/*.jsonl` (one frame a line), `a2a/*.sse`
(the response head as comments, then the body) and `history/*/upstream-saw-*.request.json`. What a
recording does not hold is added by the rules that README.md states.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.captures import provider_streams

from midstream.adapters.capture_format import HEADER, StoredRecord, encode, segment_name
from midstream.core.frames import Kind, Side
from midstream.core.ports import RecordKind
from midstream.core.sse import SseSplitter

NS_PER_MS = 1_000_000
WALL_NS = 1_796_000_000 * 10**9
"""The recordings count from their own start; this is when, about, they were made."""

UPSTREAM = "http://upstream.test"
HOP_BY_HOP = ("connection", "transfer-encoding", "content-length")
WEBSOCKET_HEADERS = [
    ["Host", "upstream.test"],
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
    ["Sec-WebSocket-Version", "13"],
]
EVENT_MS = 5
"""Between two events of a recording that has no times."""

type Fields = dict[str, Any]


class Capture:
    """Collects the records of one capture."""

    def __init__(self) -> None:
        self.records: list[StoredRecord] = []
        self._seq: dict[int, int] = {}

    def add(self, at_ms: int, exchange: int, kind: RecordKind, **fields: Any) -> None:
        seq = self._seq[exchange] = self._seq.get(exchange, 0) + 1
        mono_ns = at_ms * NS_PER_MS
        record = StoredRecord(
            WALL_NS + mono_ns, mono_ns, exchange, seq, kind, route="default", **fields
        )
        self.records.append(record)

    def open(self, at_ms: int, exchange: int, method: str, target: str, headers: Any) -> None:
        meta = {"route": "default", "upstream": UPSTREAM, "method": method, "target": target}
        self.add(at_ms, exchange, RecordKind.OPEN, meta={**meta, "headers": headers})

    def respond(self, at_ms: int, exchange: int, status: int, headers: Any) -> None:
        meta = {"status": status, "headers": headers}
        self.add(at_ms, exchange, RecordKind.HEADERS, side=Side.SERVER, meta=meta)

    def frame(self, at_ms: int, exchange: int, side: Side, kind: Kind, data: bytes) -> None:
        self.add(at_ms, exchange, RecordKind.FRAME, side=side, frame=kind, data=data)

    def end(self, at_ms: int, exchange: int, side: Side, **meta: Any) -> None:
        self.add(at_ms, exchange, RecordKind.CLOSE, side=side, meta=meta)

    def close(self, at_ms: int, exchange: int, ending: str, **meta: Any) -> None:
        self.add(at_ms, exchange, RecordKind.CLOSE, meta={"ending": ending, **meta})

    def write(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        data = HEADER + b"".join(encode(record) for record in self.records)
        (directory / segment_name(name, 1)).write_bytes(data)


def chat(lines: Iterable[Fields]) -> Capture:
    """Convert a chat: the received legs only, and of two closes of a connection the first."""
    capture = Capture()
    live: dict[int, bool] = {}
    at_ms = 0
    for line in lines:
        number, at_ms = line["conn"], line["t"]
        target = line["path"]
        if target.startswith("/raw-"):  # recorded without the prefix that the server routes by
            target = f"/agents/rig-chat{target}"
        if line["kind"] == "http":
            _chat_http(capture, number, line, target)
            continue
        if number not in live:
            _break_others(capture, live, at_ms, target, number)
            capture.open(at_ms, number, "GET", target, WEBSOCKET_HEADERS)
            capture.respond(at_ms, number, 101, [["Connection", "Upgrade"]])
            live[number] = True
        if line["kind"] == "close" and live[number]:
            live[number] = False
            _chat_close(capture, number, line)
        elif line["kind"] == "text" and line["dir"] in ("c2s", "c2p", "s2c", "u2p"):
            side = Side.CLIENT if line["dir"][0] == "c" else Side.SERVER
            capture.frame(at_ms, number, side, Kind.WS_TEXT, line["data"].encode())
    for number in [number for number, is_live in live.items() if is_live]:
        close = {"t": at_ms + 1000, "dir": "c2s", "data": {"code": 1000, "reason": ""}}
        _chat_close(capture, number, close)
    return capture


def _break_others(
    capture: Capture, live: dict[int, bool], at_ms: int, target: str, number: int
) -> None:
    """End a raw client's earlier socket, which it dropped before it made the next one."""
    if "/raw-" in target:
        for earlier in [other for other, is_live in live.items() if is_live]:
            live[earlier] = False
            capture.close(at_ms, earlier, "aborted", side="client", code=1006)


def _chat_http(capture: Capture, number: int, line: Fields, target: str) -> None:
    at_ms, data = line["t"], line["data"]
    if line["dir"] == "c2s":
        capture.open(at_ms, number, data["method"], target, [["Host", "upstream.test"]])
        capture.end(at_ms, number, Side.CLIENT)
        return
    capture.respond(at_ms, number, data["status"], [["Content-Type", "application/json"]])
    capture.frame(at_ms, number, Side.SERVER, Kind.BODY, data["body"].encode())
    capture.end(at_ms, number, Side.SERVER)
    capture.close(at_ms, number, "complete")


def _chat_close(capture: Capture, number: int, line: Fields) -> None:
    side = Side.CLIENT if line["dir"] == "c2s" else Side.SERVER
    code, reason = line["data"]["code"], line["data"].get("reason", "")
    if code == 1006:
        capture.close(line["t"], number, "aborted", side=side.value, code=code)
        return
    for ended in (side, side.other):
        capture.end(line["t"], number, ended, code=code, reason=reason)
    capture.close(line["t"], number, "complete")


def post(requests: Iterable[tuple[str, bytes, Any, int, Any, bytes]]) -> Capture:
    """Make a capture of POST requests, one after the other, each with its whole response."""
    capture = Capture()
    at_ms = 0
    for number, (target, body, headers, status, answered, response) in enumerate(requests, 1):
        capture.open(at_ms, number, "POST", target, [["Host", "upstream.test"], *headers])
        capture.frame(at_ms, number, Side.CLIENT, Kind.BODY, body)
        capture.end(at_ms, number, Side.CLIENT)
        capture.respond(at_ms, number, status, answered)
        types = [value for name, value in answered if name.lower() == "content-type"]
        kind = Kind.SSE if types[0].startswith("text/event-stream") else Kind.BODY
        for piece in _events(response) if kind is Kind.SSE else [response]:
            at_ms += EVENT_MS
            capture.frame(at_ms, number, Side.SERVER, kind, piece)
        capture.end(at_ms, number, Side.SERVER)
        capture.close(at_ms, number, "complete")
        at_ms += EVENT_MS
    return capture


def _events(body: bytes) -> Iterator[bytes]:
    splitter = SseSplitter(16 << 20)
    yield from splitter.receive(body)
    if rest := splitter.flush():
        yield rest


def a2a(path: Path) -> Capture:
    """Convert one response of an agent server; the request is written as its client sent it."""
    head, body = path.read_bytes().split(b"\n\n", 1)
    status, *headers = [line.removeprefix(": ") for line in head.decode().split("\n")]
    pairs = [header.split(": ", 1) for header in headers]
    answered = [pair for pair in pairs if pair[0].lower() not in HOP_BY_HOP]
    server, _, scenario = path.stem.partition(".")
    target, request, sent = _a2a_request(server, scenario)
    return post([(target, request, sent, int(status.split()[1]), answered, body)])


def _a2a_request(server: str, scenario: str) -> tuple[str, bytes, Any]:
    is_new = not server.endswith(("03", "compliant")) and server.startswith(("sdk", "adk"))
    role, part = ("ROLE_USER", {}) if is_new else ("user", {"kind": "text"})
    message = {"messageId": "m1", "role": role, "parts": [{**part, "text": scenario}]}
    body: Fields = {"message": message}
    target = "/"
    if "-rest" in server:
        target = "/message:stream" if is_new else "/v1/message:stream"
    else:
        method = "SendStreamingMessage" if is_new else "message/stream"
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": body}
    headers = [["Content-Type", "application/json"], ["Accept", "text/event-stream"]]
    if is_new:
        headers.append(["A2A-Version", "1.0"])
    return target, json.dumps(body).encode(), headers


def history(folder: Path) -> Capture:
    """Convert the requests of one run; see README.md for what the provider answered."""
    sent = [json.loads(file.read_bytes()) for file in sorted(folder.glob("*.request.json"))]
    as_sent = provider_streams.invert if folder.name.endswith("-inverted") else lambda body: body
    json_type = [["Content-Type", "application/json"]]
    streams = [["Content-Type", "text/event-stream; charset=utf-8"]]
    return post(
        (
            request["path"],
            json.dumps(as_sent(request["body"]), separators=(",", ":")).encode(),
            json_type,
            200,
            streams,
            provider_streams.response(request["path"], number, "-reason-" in folder.name),
        )
        for number, request in enumerate(sent, 1)
    )


def main(source: Path, target: Path) -> None:
    for path in sorted(source.glob("cloudflare/**/*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        chat(lines).write(target / path.parent.relative_to(source), path.stem)
    for path in sorted(source.glob("a2a/*.sse")):
        a2a(path).write(target / "a2a", path.stem)
    for folder in sorted(source.glob("history/*/")):
        history(folder).write(target / "history", folder.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
