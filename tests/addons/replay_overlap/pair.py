"""Two products in a row: what leaves one arrives at the other."""

from typing import Any

from midstream.core.frames import Frame, Kind, Side
from midstream.core.session import Session, State


class Pair:
    """A session that is two of them: one near the server, one near the client."""

    def __init__(self, near_server: Session, near_client: Session) -> None:
        self._sessions = {Side.SERVER: near_server, Side.CLIENT: near_client}

    @property
    def state(self) -> State:
        return self._sessions[Side.CLIENT].state

    @property
    def deadline_ns(self) -> int | None:
        due = [s.deadline_ns for s in self._sessions.values() if s.deadline_ns is not None]
        return min(due, default=None)

    def open(self, now_ns: int) -> list[Frame]:
        return [frame for s in self._sessions.values() for frame in s.open(now_ns)]

    def receive_message(self, side: Side, kind: Kind, data: bytes, now_ns: int) -> list[Frame]:
        return self._through(side, [Frame(side, kind, data)], now_ns)

    def take_asks(self) -> list[Any]:
        return [Asked(side, ask) for side, s in self._sessions.items() for ask in s.take_asks()]

    def answer(self, asked: Any, answer: Any, now_ns: int) -> list[Frame]:
        session = self._sessions[asked.at]
        return self._left(asked.at, session.answer(asked.pending, answer, now_ns), now_ns)

    def wake(self, now_ns: int) -> list[Frame]:
        return [
            frame
            for side, s in self._sessions.items()
            for frame in self._left(side, s.wake(now_ns), now_ns)
        ]

    def end(self, side: Side, now_ns: int) -> list[Frame]:
        near = self._left(side, self._sessions[side].end(side, now_ns), now_ns)
        return near + self._sessions[side.other].end(side, now_ns)

    def abort(self, now_ns: int) -> list[Frame]:
        for session in self._sessions.values():
            session.abort(now_ns)
        return []

    def _through(self, at: Side, frames: list[Frame], now_ns: int) -> list[Frame]:
        """Run frames through the session at one end, and what leaves through the other."""
        session = self._sessions[at]
        left = [
            out
            for frame in frames
            for out in session.receive_message(frame.sender, frame.kind, frame.wire, now_ns)
        ]
        return self._left(at, left, now_ns)

    def _left(self, at: Side, frames: list[Frame], now_ns: int) -> list[Frame]:
        out: list[Frame] = []
        for frame in frames:
            if frame.sender is at:  # it goes on to the other session
                out += self._through(at.other, [frame], now_ns)
            else:
                out.append(frame)
        return out


class Asked:
    """What one of the two asked of the host."""

    def __init__(self, at: Side, pending: Any) -> None:
        self.at, self.pending, self.ask = at, pending, pending.ask
