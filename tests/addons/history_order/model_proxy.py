"""A client and a provider at both ends of a real session, over any transport, in any chunks."""

import random
from collections import Counter

from midstream.core import metrics
from midstream.core.addon import Mode
from midstream.core.engine import Engine, Route
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Kind, Side
from midstream.core.metrics import Counts
from midstream.core.session import Session
from midstream_addons.history_order import ADDON
from midstream_addons.history_order.addon import PROVIDERS

JSON = ("Content-Type", "application/json")
EVENTS = ("Content-Type", "text/event-stream")
PLACES = {
    metrics.REPAIRS.name: 2, metrics.SKIPPED.name: 1, metrics.HISTORY_PAIRS.name: 1,
    metrics.ERRORS.name: 0,
}  # fmt: skip
"""Which label tells what was counted."""
CREATE = b'{"type":"response.create",'


class Proxy:
    """One proxy with nothing but the repair on it."""

    def __init__(self) -> None:
        route = Route("api", "/*", "http://127.0.0.1:9", ((ADDON(ADDON.Options()), Mode.REPAIR),))
        self.engine = Engine([route], list(PROVIDERS), secret=b"secret", counts=Counts())

    def counted(self) -> Counter[str]:
        """Return what the repair has counted: rules, reasons, pairs and errors."""
        found: Counter[str] = Counter()
        for (name, labels), value in self.engine.counts.values.items():
            if name in PLACES and value:
                found[labels[PLACES[name]] if PLACES[name] else "error"] += int(value)
        return found


class Talk:
    """The exchanges of one conversation; `is_socket` has all of them on one WebSocket."""

    def __init__(
        self, proxy: Proxy, path: str, credential: str, rnd: random.Random, *, is_socket: bool
    ) -> None:
        self._proxy = proxy
        self._path = path
        self._headers = (JSON, ("Authorization", f"Bearer {credential}"))
        self._rnd = rnd
        self.is_socket = is_socket
        self._session = self._open("GET", ("Upgrade", "websocket")) if is_socket else None
        if self._session is not None:
            self._session.respond(ResponseHead(101, (("Upgrade", "websocket"),)), 0)

    def ask(self, body: bytes) -> bytes:
        """The client sends a request; return what reaches the provider."""
        if self.is_socket:
            assert self._session is not None
            sent = CREATE + body[1:]
            (frame,) = self._session.receive_message(Side.CLIENT, Kind.WS_TEXT, sent, 0)
            assert frame.wire.startswith(CREATE)
            return b"{" + frame.wire[len(CREATE) :]
        self._session = self._open("POST")
        frames = [
            frame
            for chunk in self._chunks(body)
            for frame in self._session.receive(Side.CLIENT, chunk, 0)
        ]
        frames += self._session.end(Side.CLIENT, 0)
        return b"".join(frame.wire for frame in frames)

    def answer(self, events: list[bytes]) -> None:
        """The provider streams a response; every byte of it reaches the client."""
        session = self._session
        assert session is not None
        if self.is_socket:
            for event in events:
                (frame,) = session.receive_message(Side.SERVER, Kind.WS_TEXT, event, 0)
                assert frame.wire == event
            return
        end = self._rnd.choice((b"\n", b"\r\n"))
        name = self._rnd.choice((b"", b"event: some" + end, b": comment" + end))
        wire = b"".join(name + b"data: " + event + end * 2 for event in events)
        self._respond(EVENTS, wire)

    def answer_whole(self, body: bytes) -> None:
        """The provider answers with one body."""
        self._respond(JSON, body)

    def close(self) -> None:
        if self.is_socket and self._session is not None:
            self._session.end(Side.SERVER, 0)
            self._session.end(Side.CLIENT, 0)

    def _respond(self, content_type: tuple[str, str], wire: bytes) -> None:
        session = self._session
        assert session is not None
        session.respond(ResponseHead(200, (content_type,)), 0)
        frames = [f for chunk in self._chunks(wire) for f in session.receive(Side.SERVER, chunk, 0)]
        frames += session.end(Side.SERVER, 0)
        assert b"".join(frame.wire for frame in frames) == wire

    def _open(self, method: str, *headers: tuple[str, str]) -> Session:
        head = RequestHead(method, self._path, (*self._headers, *headers))
        session = self._proxy.engine.open(head, self._proxy.engine.routes[0])
        session.open(0)
        return session

    def _chunks(self, wire: bytes) -> list[bytes]:
        size = self._rnd.choice((7, 64, 1460, 1 << 20))
        return [wire[at : at + size] for at in range(0, len(wire), size)]
