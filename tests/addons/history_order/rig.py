"""Drives history-order through a real engine: requests and sockets of one proxy, no I/O."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from midstream.adapters import capture_format, capture_heads
from midstream.core import metrics
from midstream.core.addon import Mode
from midstream.core.engine import Engine, Route
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.ports import RecordKind
from midstream.core.session import Session
from midstream_addons.history_order import ADDON
from midstream_addons.history_order.addon import PROVIDERS
from midstream_addons.history_order.ledger import Ledger
from midstream_addons.history_order.options import Options

CLIENT, SERVER = Side.CLIENT, Side.SERVER
CAPTURES = Path(__file__).parents[2] / "captures" / "history"
JSON = ResponseHead(200, (("Content-Type", "application/json"),))
EVENTS = ResponseHead(200, (("Content-Type", "text/event-stream"),))
UPGRADED = ResponseHead(101, (("Upgrade", "websocket"),))
UPSTREAM = "http://127.0.0.1:9"

type Fields = dict[str, Any]


def written(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Rig:
    """One proxy. `repairs`, `skips` and `pairs` are what it has counted."""

    def __init__(self, mode: Mode = Mode.REPAIR, **options: Any) -> None:
        self.now_ns = 0
        route = Route("api", "/*", UPSTREAM, ((ADDON(Options(**options)), mode),))
        self.engine = Engine([route], list(PROVIDERS), secret=b"secret", counts=Counts())

    @property
    def repairs(self) -> dict[str, int]:
        return self._counted(metrics.REPAIRS, 2)

    @property
    def skips(self) -> dict[str, int]:
        return self._counted(metrics.SKIPPED, 1)

    @property
    def pairs(self) -> tuple[int, int, int]:
        """How many pairs were comparable, came inverted, and left inverted."""
        found = self._counted(metrics.HISTORY_PAIRS, 1)
        states = ("comparable", "inverted_in", "inverted_out")
        comparable, came, left = (found.get(state, 0) for state in states)
        return comparable, came, left

    @property
    def prefix(self) -> tuple[int, int]:
        """How many items of earlier requests led the next one, and how many there were."""
        found = self._counted(metrics.HISTORY_PREFIX, 1)
        return found.get("kept", 0), found.get("sent", 0)

    @property
    def errors(self) -> float:
        return sum(value for _, value in self.engine.counts.samples(metrics.ERRORS))

    @property
    def ledgers(self) -> list[Ledger]:
        states = [c.states for c in self.engine.conversations._known.values()]
        return [state["history-order"] for state in states]  # type: ignore[misc]  # it is one

    def open(self, head: RequestHead) -> Session:
        session = self.engine.open(head, self.engine.routes[0])
        session.open(self.now_ns)
        return session

    def post(
        self,
        body: bytes,
        answer: list[Fields] | bytes | None = None,
        path: str = "/v1/responses",
        **headers: str,
    ) -> bytes:
        """Post a body and take the answer, events or a body; return what the provider got."""
        pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        session = self.open(
            RequestHead("POST", path, (("Content-Type", "application/json"), *pairs))
        )
        left = self.sent(session, CLIENT, body)
        if answer is not None:
            session.respond(JSON if isinstance(answer, bytes) else EVENTS, self.now_ns)
            wire = answer if isinstance(answer, bytes) else b"".join(map(event, answer))
            assert self.sent(session, SERVER, wire) == wire
        return left

    def sent(self, session: Session, side: Side, wire: bytes) -> bytes:
        """A side sends a body or a stream and ends; return what arrives at the other one."""
        frames = session.receive(side, wire, self.now_ns) + session.end(side, self.now_ns)
        assert {frame.sender for frame in frames} <= {side}
        return b"".join(frame.wire for frame in frames)

    def socket(self, path: str = "/v1/responses", **headers: str) -> "Socket":
        pairs = (("Upgrade", "websocket"), *headers.items())
        session = self.open(RequestHead("GET", path, pairs))
        session.respond(UPGRADED, self.now_ns)
        return Socket(self, session)

    def _counted(self, metric: metrics.Metric, label: int) -> dict[str, int]:
        found: Counter[str] = Counter()
        for labels, value in self.engine.counts.samples(metric):
            if value:
                found[labels[label]] += int(value)
        return dict(found)


class Socket:
    """One WebSocket."""

    def __init__(self, rig: Rig, session: Session) -> None:
        self._rig = rig
        self._session = session

    def client(self, body: Fields) -> Any:
        """The client sends a message; return what arrives."""
        return json.loads(self._send(CLIENT, written(body)))

    def server(self, *events: Fields) -> None:
        """The server sends messages, which arrive as they are."""
        for message in map(written, events):
            assert self._send(SERVER, message) == message

    def end(self) -> None:
        self._session.end(SERVER, self._rig.now_ns)
        self._session.end(CLIENT, self._rig.now_ns)

    def _send(self, side: Side, message: bytes) -> bytes:
        now_ns = self._rig.now_ns
        (frame,) = self._session.receive_message(side, Kind.WS_TEXT, message, now_ns)
        return frame.wire


def event(fields: Fields) -> bytes:
    return b"data: " + written(fields) + b"\n\n"


def play(rig: Rig, name: str) -> list[tuple[Frame, Frame]]:
    """Play a capture; return each frame as it came and as it left."""
    sessions: dict[int, Session] = {}
    played = []
    for record in capture_format.read(CAPTURES / f"{name}-000001.cap"):
        if record.kind is RecordKind.OPEN:
            sessions[record.exchange] = rig.open(capture_heads.request_head(record))
        elif record.kind is RecordKind.HEADERS:
            sessions[record.exchange].respond(capture_heads.response_head(record), 0)
        elif record.kind is RecordKind.FRAME and record.received is not None:
            came, session = record.received, sessions[record.exchange]
            left = session.receive(came.sender, came.wire, 0)
            if came.kind is Kind.BODY:
                left += session.end(came.sender, 0)
            (frame,) = left
            played.append((came, frame))
    return played
