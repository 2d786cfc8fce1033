"""Drives the sessions of a capture in virtual time: no sockets, no clock.

Records are fed in their order; the time of a record is the time of the session. Rules of this file:
- Between two records, deadlines and waits come due in their own order. A deadline that the capture
  shows being served late (its `repair` record) is served just as late.
- An ask is answered where the capture holds its answer. A `Wait` without one ends by virtual time.
  A `Fetch` without one is reported and gets status 0: at once where no addon ran while the capture
  was made, else when a live fetch would have been given up, for then the exchange probably ended
  first.
- What cannot be played (no head, out of order) is passed over and counted.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_heads import (
    asked,
    client_origin,
    request_head,
    response_head,
    text,
    upstream_of,
)  # fmt: skip
from midstream.core.addon import Answer, Ending, Wait
from midstream.core.chain import Pending
from midstream.core.engine import Engine
from midstream.core.errors import CaptureError
from midstream.core.frames import Frame, Kind
from midstream.core.ports import RecordKind
from midstream.core.session import IllegalEvent, Reading, Session
from midstream.hosts.replay_script import Script

NS_PER_MS = 1_000_000
FETCH_NS = 10_000 * NS_PER_MS
"""When a fetch is given up that the capture leaves without an answer."""

MAX_STEPS = 100_000
"""How many timers may come due between two records."""


class Left(msgspec.Struct, frozen=True):
    """Frames that left an exchange. `record` is None where virtual time made them leave."""

    exchange: int
    record: StoredRecord | None
    frames: list[Frame]


class Replayer:
    """Plays records through the sessions of an engine.

    `fetch` answers, at once, every `Fetch` that the capture does not. `problems` counts what could
    not be played, by reason.
    """

    def __init__(
        self, engine: Engine, script: Script, fetch: Callable[[str], Answer] | None = None
    ) -> None:
        self._engine = engine
        self._script = script
        self._fetch = fetch
        self._sessions: dict[int, Session] = {}
        self._deadlines: dict[int, int] = {}
        self._claims: dict[tuple[int, int], Pending] = {}
        self._ahead: list[tuple[int, int, int, Pending]] = []
        self._put_off = 0
        self.numbers: dict[int, int] = {}
        self.now_ns = 0
        self.problems: Counter[str] = Counter()
        self._feeds: dict[RecordKind, Callable[[StoredRecord], list[Frame]]] = {
            RecordKind.OPEN: self._open,
            RecordKind.HEADERS: self._headers,
            RecordKind.FRAME: self._frame,
            RecordKind.REPAIR: self._timer,
            RecordKind.ASK: self._answer,
            RecordKind.CLOSE: self._close,
        }

    @property
    def is_mended(self) -> bool:
        """Tell whether addons ran while the capture was made."""
        return self._script.is_mended

    @property
    def unended(self) -> int:
        """How many exchanges the records do not close."""
        return len(self._sessions)

    def feed(self, record: StoredRecord) -> Iterator[Left]:
        """Play one record, and before it what time has brought."""
        yield from self._advance(record.mono_ns)
        self.now_ns = max(self.now_ns, record.mono_ns)
        if record.kind is RecordKind.GAP:
            self.problems["records lost in the capture"] += int(record.meta.get("count", 1))
            return
        frames: list[Frame] = []
        try:
            if record.kind is RecordKind.OPEN or record.exchange in self._sessions:
                frames = self._feeds[record.kind](record)
            else:
                self.problems["records of an exchange without a head"] += 1
        except (IllegalEvent, CaptureError):
            self.problems["records that cannot be played"] += 1
        self._script.passed(record)
        yield Left(record.exchange, record, frames)
        yield from self._asks(record.exchange)

    # --- records --------------------------------------------------------------------------------

    def _open(self, record: StoredRecord) -> list[Frame]:
        head = request_head(record)
        route = self._engine.route(head)
        if route is None:
            self.problems["exchanges that no route matches"] += 1
            return []
        if upstream := upstream_of(record):  # addons read it, and no configuration need tell it
            route = msgspec.structs.replace(route, upstream=upstream)
        session = self._engine.open(head, route, origin=client_origin(record))
        self.numbers[session.exchange.number] = record.exchange
        self._sessions[record.exchange] = session
        return session.open(self.now_ns)

    def _headers(self, record: StoredRecord) -> list[Frame]:
        self._sessions[record.exchange].respond(response_head(record), self.now_ns)
        return []

    def _frame(self, record: StoredRecord) -> list[Frame]:
        session, frame = self._sessions[record.exchange], record.received
        if frame is None:
            raise CaptureError("frame record without a frame")
        side = frame.sender
        if frame.kind is Kind.BODY or (
            frame.kind is Kind.SSE and session.reads(side) is not Reading.EVENTS
        ):
            return session.receive(side, frame.wire, self.now_ns)
        return session.receive_message(side, frame.kind, frame.wire, self.now_ns)

    def _timer(self, record: StoredRecord) -> list[Frame]:
        session = self._sessions[record.exchange]
        if record.side is not None and "gave_up" in record.meta:
            return session.give_up(record.side, str(record.meta["gave_up"]), self.now_ns)
        due = session.deadline_ns
        return session.wake(self.now_ns) if due is not None and due <= self.now_ns else []

    def _answer(self, record: StoredRecord) -> list[Frame]:
        known, answer = asked(record)
        pending = self._claims.pop((record.exchange, known.number), None)
        if pending is None:
            self.problems["recorded answers to what was not asked"] += 1
            return []
        return self._sessions[record.exchange].answer(pending, answer, self.now_ns)

    def _close(self, record: StoredRecord) -> list[Frame]:
        session = self._sessions[record.exchange]
        meta = {key: _readable(value) for key, value in record.meta.items() if key != "ending"}
        if record.side is not None:
            return session.end(record.side, self.now_ns, **meta)
        del self._sessions[record.exchange]
        if record.meta.get("ending") == Ending.ABORTED:
            return session.abort(self.now_ns, **meta)
        return []

    # --- time and asks --------------------------------------------------------------------------

    def _asks(self, exchange: int) -> Iterator[Left]:
        """Find an answer to what a session asks."""
        for _ in range(MAX_STEPS):
            self._note_deadline(exchange)
            session = self._sessions.get(exchange)
            asks = [] if session is None else session.take_asks()
            if session is None or not asks:
                return
            for pending in asks:
                number = self._script.claim(exchange, pending)
                if number is not None:
                    self._claims[exchange, number] = pending
                elif isinstance(pending.ask, Wait):
                    self._answer_in(pending.ask.ms * NS_PER_MS, exchange, pending)
                elif self._fetch is not None:
                    answer = self._fetch(pending.ask.target)
                    yield Left(exchange, None, session.answer(pending, answer, self.now_ns))
                else:
                    self.problems["fetches that the capture has no answer to"] += 1
                    delay_ns = FETCH_NS if self._script.is_mended else 0
                    self._answer_in(delay_ns, exchange, pending)

    def _answer_in(self, delay_ns: int, exchange: int, pending: Pending) -> None:
        """Let virtual time bring an empty answer."""
        due_ns = self.now_ns + delay_ns
        if self._script.outlasts(exchange, due_ns):
            return
        self._put_off += 1
        heapq.heappush(self._ahead, (due_ns, self._put_off, exchange, pending))

    def _advance(self, until_ns: int) -> Iterator[Left]:
        """Let everything that is due before a record happen, in order."""
        for _ in range(MAX_STEPS):
            due_ns, exchange = self._next_deadline()
            answer_ns = self._ahead[0][0] if self._ahead else None
            if answer_ns is not None and (due_ns is None or answer_ns <= due_ns):
                due_ns, _, exchange, pending = self._ahead[0]
            else:
                pending = None
            if due_ns is None or due_ns > until_ns:
                return
            self.now_ns = max(self.now_ns, due_ns)
            if pending is not None:
                heapq.heappop(self._ahead)
            session = self._sessions.get(exchange)
            if session is None:
                continue
            if pending is None:
                frames = session.wake(self.now_ns)
            else:
                frames = session.answer(pending, Answer(), self.now_ns)
            yield Left(exchange, None, frames)
            yield from self._asks(exchange)

    def _next_deadline(self) -> tuple[int | None, int]:
        serves = self._script.serves
        due = [(at, number) for number, at in self._deadlines.items() if not serves(number, at)]
        return min(due, default=(None, 0))

    def _note_deadline(self, exchange: int) -> None:
        session = self._sessions.get(exchange)
        due_ns = None if session is None else session.deadline_ns
        if due_ns is None:
            self._deadlines.pop(exchange, None)
        else:
            self._deadlines[exchange] = due_ns


def _readable(value: object) -> object:
    return text(value) if isinstance(value, bytes) else value
