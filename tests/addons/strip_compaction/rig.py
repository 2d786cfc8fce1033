"""Drives strip-compaction through a real engine: sockets and requests of one chat, no I/O."""

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
from midstream.dialects.cloudflare_chat import DIALECT
from midstream_addons.strip_compaction import ADDON
from midstream_addons.strip_compaction.options import Options, Server
from midstream_addons.strip_compaction.state import Chat

CLIENT, SERVER = Side.CLIENT, Side.SERVER
PATH = "/agents/rig-think/room"
JSON_HEAD = ResponseHead(200, (("Content-Type", "application/json"),))
CAPTURES = Path(__file__).parents[2] / "captures" / "cloudflare"

type Fields = dict[str, Any]


class Rig:
    """One proxy. `repairs` and `skips` are what it has counted."""

    def __init__(self, mode: Mode = Mode.REPAIR, server: str = "unknown", **options: Any) -> None:
        self.addon = ADDON(Options(server=Server(server), **options))
        self.engine = Engine(
            [Route("chat", "/*", "http://127.0.0.1:9", ((self.addon, mode),))],
            [DIALECT],
            secret=b"secret",
            counts=Counts(),
        )

    @property
    def repairs(self) -> dict[str, int]:
        return self._counted(metrics.REPAIRS, 2)

    @property
    def skips(self) -> dict[str, int]:
        return self._counted(metrics.SKIPPED, 1)

    @property
    def errors(self) -> float:
        return sum(value for _, value in self.engine.counts.samples(metrics.ERRORS))

    @property
    def chat(self) -> Chat:
        """The one conversation."""
        (conversation,) = self.engine.conversations._known.values()
        state = conversation.states["strip-compaction"]
        assert isinstance(state, Chat)
        return state

    def open(self, head: RequestHead) -> Session:
        session = self.engine.open(head, self.engine.routes[0])
        session.open(0)
        return session

    def socket(self, path: str = PATH) -> "Socket":
        head = RequestHead("GET", f"{path}?_pk=1", (("Upgrade", "websocket"),))
        session = self.open(head)
        session.respond(ResponseHead(101, (("Upgrade", "websocket"),)), 0)
        return Socket(self, session)

    def think(self, messages: list[Any] = []) -> "Socket":  # noqa: B006  # never changed
        """Open a socket to a server that behaves like Think: its list comes at once."""
        socket = self.socket()
        socket.client(type="cf_agent_stream_resume_request")
        socket.lists(messages)
        socket.greet()
        return socket

    def aichat(self) -> "Socket":
        """Open a socket to a server that behaves like AIChatAgent: no list."""
        socket = self.socket()
        socket.client(type="cf_agent_stream_resume_request")
        socket.greet()
        return socket

    def get(self, body: bytes, path: str = PATH) -> bytes:
        """The client fetches the chat's messages; return what it gets."""
        session = self.open(RequestHead("GET", f"{path}/get-messages"))
        session.end(CLIENT, 0)
        session.respond(JSON_HEAD, 0)
        return self._body(session, SERVER, body)

    def post(self, body: bytes, content_type: str = "application/json", path: str = PATH) -> bytes:
        """The client posts a body; return what the server gets."""
        session = self.open(RequestHead("POST", path, (("Content-Type", content_type),)))
        return self._body(session, CLIENT, body)

    def _body(self, session: Session, side: Side, body: bytes) -> bytes:
        frames = session.receive(side, body, 0) + session.end(side, 0)
        assert {frame.sender for frame in frames} <= {side}
        return b"".join(frame.wire for frame in frames)

    def _counted(self, metric: metrics.Metric, label: int) -> dict[str, int]:
        found: Counter[str] = Counter()
        for labels, value in self.engine.counts.samples(metric):
            if value:
                found[labels[label]] += int(value)
        return dict(found)


class Socket:
    """One WebSocket. Each method returns the one message that leaves."""

    def __init__(self, rig: Rig, session: Session) -> None:
        self.rig = rig
        self.session = session

    def send(self, side: Side, wire: bytes, kind: Kind = Kind.WS_TEXT) -> bytes:
        return self.frame(side, wire, kind).wire

    def frame(self, side: Side, wire: bytes, kind: Kind = Kind.WS_TEXT) -> Frame:
        (frame,) = self.session.receive_message(side, kind, wire, 0)
        assert (frame.sender, frame.kind) == (side, kind)
        return frame

    def client(self, **fields: Any) -> Any:
        return json.loads(self.send(CLIENT, stringify(fields)))

    def server(self, **fields: Any) -> Any:
        return json.loads(self.send(SERVER, stringify(fields)))

    def greet(self) -> None:
        self.server(name="room", agent="rig", type="cf_agent_identity")
        self.server(mcp={"tools": []}, type="cf_agent_mcp_servers")
        self.server(type="cf_agent_stream_resume_none")

    def lists(self, messages: list[Any]) -> list[str]:
        """The server sends its list; return the ids that arrive."""
        left = self.server(type="cf_agent_chat_messages", messages=messages)
        return ids(left["messages"])

    def states(self, messages: list[Any]) -> list[str]:
        """The client sends its list; return the ids that arrive."""
        return ids(self.client(messages=messages, type="cf_agent_chat_messages")["messages"])

    def uploads(self, messages: list[Any], trigger: str = "submit-message") -> list[str]:
        """The client starts a turn; return the ids that arrive."""
        left = json.loads(self.send(CLIENT, turn(messages, trigger)))
        return ids(json.loads(left["init"]["body"])["messages"])

    def answers(self, stream: str = "r1", **fields: Any) -> None:
        """The server streams an answer."""
        for body, done in (('{"type":"start","messageId":"a"}', False), ("", True)):
            self.server(
                body=body, done=done, id=stream, type="cf_agent_use_chat_response", **fields
            )

    def close(self) -> None:
        self.session.end(CLIENT, 0)
        self.session.end(SERVER, 0)


def stringify(value: Any) -> bytes:
    """Encode as JSON.stringify does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def turn(messages: list[Any], trigger: str = "submit-message", **more: Any) -> bytes:
    body = stringify({"messages": messages, "trigger": trigger, **more}).decode()
    return stringify(
        {"id": "r1", "init": {"method": "POST", "body": body}, "type": "cf_agent_use_chat_request"}
    )


def user(identifier: str, text: str = "hi") -> Fields:
    return {"parts": [{"type": "text", "text": text}], "id": identifier, "role": "user"}


def answer(identifier: str, text: str = "hello") -> Fields:
    parts = [{"type": "step-start"}, {"type": "text", "text": text, "state": "done"}]
    return {"id": identifier, "role": "assistant", "parts": parts}


def summary(record: str, second: int = 0, text: str = "SUMMARY") -> Fields:
    """Return what Think makes up for a range, read at a second."""
    return {
        "id": f"compaction_{record}",
        "role": "assistant",
        "parts": [{"type": "text", "text": text}],
        "createdAt": f"2026-11-30T14:30:{second:02}.000Z",
    }


def ids(messages: list[Any]) -> list[str]:
    return [message["id"] for message in messages]


class Played:
    """A frame of a capture: as it came, as it left, and its exchange."""

    def __init__(self, exchange: int, came: Frame, left: Frame) -> None:
        self.exchange = exchange
        self.came = came
        self.left = left

    @property
    def message(self) -> Any:
        try:
            return json.loads(self.came.wire)
        except ValueError:
            return None

    @property
    def is_upload(self) -> bool:
        return isinstance(self.message, dict) and self.message["type"] == (
            "cf_agent_use_chat_request"
        )


def play(rig: Rig, name: str) -> list[Played]:
    """Play a capture of real traffic through a proxy."""
    sessions: dict[int, Session] = {}
    played = []
    for record in capture_format.read(CAPTURES / name):
        if record.kind is RecordKind.OPEN:
            sessions[record.exchange] = rig.open(capture_heads.request_head(record))
        elif record.kind is RecordKind.HEADERS:
            sessions[record.exchange].respond(capture_heads.response_head(record), 0)
        elif record.kind is RecordKind.FRAME and record.received is not None:
            came = record.received
            session = sessions[record.exchange]
            if came.kind is Kind.BODY:
                left = session.receive(came.sender, came.wire, 0) + session.end(came.sender, 0)
            else:
                left = session.receive_message(came.sender, came.kind, came.wire, 0)
            (frame,) = left
            played.append(Played(record.exchange, came, frame))
    return played
