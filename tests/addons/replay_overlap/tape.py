"""Chats on tape: what arrives of them, in order, to be played to the product damaged or cut off."""

from functools import cache
from typing import Any

import msgspec
from tests.addons.replay_overlap.clients import Page
from tests.addons.replay_overlap.documents import dumps
from tests.addons.replay_overlap.scenes import asked, continued, emit
from tests.addons.replay_overlap.streams import Piece, whole
from tests.addons.replay_overlap.world import HEADERS, PATH, World

from midstream.core import metrics
from midstream.core.addon import Answer, Fetch, Mode
from midstream.core.engine import Engine, Route
from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.session import Session, State
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_chat import DIALECT
from midstream_addons.replay_overlap import ADDON

NS = 1_000_000
STEP_MS = 7
LONG_MS = 60_000
PIECES: list[Piece] = [("text", ("ha", "ha"), True, None), ("tool", {"v": 1}), ("step",)]


class Event(msgspec.Struct):
    """A frame that arrives on a socket; without one, the socket opens."""

    socket: int
    frame: Frame | None = None


@cache
def tape(kind: str, closing: str) -> tuple[Event, ...]:
    """Return what arrives of a continuation with two drops."""
    messages, stream = asked(PIECES), whole(PIECES)
    world = World(messages, latency=(40, 30), server={"closing": closing})
    events: list[Event] = []
    history = chat.message_list([dumps(message) for message in messages])
    pass_on = world.pass_on

    def record(number: int, side: Side, message: bytes) -> None:
        if number not in {event.socket for event in events}:
            events.append(Event(number))
            if number == 1:
                events.append(Event(number, history))
        events.append(Event(number, Frame(side, Kind.WS_TEXT, message)))
        pass_on(number, side, message)

    world.pass_on = record  # type: ignore[method-assign]
    page = Page(kind, messages)
    number = continued(world, page, stream[0])
    emit(world, stream[1:7])
    world.drop(number)
    number = world.connect(page)
    world.run(600)
    emit(world, stream[7:9])
    world.drop(number)
    emit(world, stream[9:])
    number = world.connect(page)
    world.run(25)
    world.server.finish()
    world.run(2_000)
    page.say("u2", "next", "R2")
    world.flush(number)
    world.run(500)
    return tuple(events)


class Player:
    """Plays events to the product. `answer` answers what it fetches, unless all is silent."""

    def __init__(self, answer: Answer, mode: Mode = Mode.REPAIR, client: str = "unknown") -> None:
        addon = ADDON(ADDON.Options(client=client))  # type: ignore[arg-type]
        route = Route("chat", "/*", "http://upstream", ((addon, mode),))
        self.engine = Engine([route], [DIALECT], secret=bytes(32))
        self.answer, self.is_silent = answer, False
        self.now_ms = 0
        self.sessions: dict[int, Session] = {}
        self.received: dict[int, list[Frame]] = {}
        self.left: dict[int, list[Frame]] = {}
        self.due: list[tuple[int, int, Any]] = []

    def play(self, events: list[Event]) -> None:
        """Play all, then let much time pass, and end every socket politely."""
        for event in events:
            if event.frame is None or event.socket not in self.sessions:
                self.open(event.socket)
            if event.frame is not None:
                self.take(event.socket, event.frame)
            self.pass_time(STEP_MS)
        self.pass_time(LONG_MS)
        for number in self.sessions:
            self.end(number, "server_end")

    def open(self, number: int) -> None:
        self.open_at(number, f"{PATH}?_pk=pk{number & 1}")

    def open_at(self, number: int, target: str) -> None:
        """Open a socket; a target that fetches the chat's messages is a plain GET."""
        head = RequestHead("GET", target, () if "/get-messages" in target else HEADERS)
        session = self.engine.open(head, self.engine.routes[0])
        self.sessions[number], self.received[number], self.left[number] = session, [], []
        self._carry(number, session.open(self.now_ms * NS))

    def take(self, number: int, frame: Frame) -> None:
        session = self.sessions[number]
        if session.state is not State.OPEN:
            return
        self.received[number].append(frame)
        fresh = Frame(frame.sender, frame.kind, frame.wire)
        self._carry(
            number,
            session.receive_message(fresh.sender, fresh.kind, fresh.wire, self.now_ms * NS),
        )

    def end(self, number: int, how: str) -> None:
        session, now_ns = self.sessions[number], self.now_ms * NS
        if how == "abort":
            self._carry(number, session.abort(now_ns))
            return
        first = Side.SERVER if how == "server_end" else Side.CLIENT
        self._carry(number, session.end(first, now_ns))
        self._carry(number, session.end(first.other, now_ns))

    def pass_time(self, ms: int) -> None:
        """Let asks be answered and deadlines come."""
        end_ms = self.now_ms + ms
        for _ in range(10_000):
            at_ms = min([due[0] for due in self.due] + self._deadlines(), default=end_ms + 1)
            if at_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, at_ms)
            for due in [due for due in self.due if due[0] <= at_ms]:
                self.due.remove(due)
                answer = self.answer if isinstance(due[2].ask, Fetch) else Answer()
                out = self.sessions[due[1]].answer(due[2], answer, self.now_ms * NS)
                self._carry(due[1], out)
            for number, session in self.sessions.items():
                self._carry(number, session.wake(self.now_ms * NS))
        self.now_ms = end_ms

    def _deadlines(self) -> list[int]:
        due = (session.deadline_ns for session in self.sessions.values())
        return [-(-at_ns // NS) for at_ns in due if at_ns is not None]

    def _carry(self, number: int, frames: list[Frame]) -> None:
        self.left[number] += frames
        for pending in self.sessions[number].take_asks():
            ask = pending.ask
            if not (isinstance(ask, Fetch) and self.is_silent):
                delay_ms = 3 if isinstance(ask, Fetch) else ask.ms
                self.due.append((self.now_ms + delay_ms, number, pending))

    def count(self, metric: metrics.Metric, word: str = "") -> int:
        samples = self.engine.counts.samples(metric)
        return int(sum(value for labels, value in samples if not word or word in labels))
