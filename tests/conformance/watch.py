"""Follows the sessions of a host, so that a player knows when what it sent has had its effect."""

import time
from collections.abc import Callable

from tests.conformance.wire import EXCHANGE_HEADER

from midstream.core.addon import Fetch, Wait
from midstream.core.chain import Pending
from midstream.core.engine import Engine, Route
from midstream.core.exchange import RequestHead
from midstream.core.frames import Side
from midstream.core.ports import Record, RecordKind, Sink
from midstream.core.session import Session

NS_PER_MS = 1_000_000


class Watch:
    """A sink that counts by exchange of the capture and sender: frames taken, messages left.

    `fetches` and `waits` are the asks that have no answer yet, the latter with when it is due.
    `numbers` are the exchanges of the capture by the numbers that the engine gave them.
    """

    def __init__(self, also: Sink | None = None) -> None:
        self.numbers: dict[int, int] = {}
        self._also = also
        self.taken: dict[tuple[int, Side], int] = {}
        self.left: dict[tuple[int, Side], int] = {}
        self.closed: set[int] = set()
        self.fetches: set[tuple[int, int]] = set()
        self.waits: dict[tuple[int, int], int] = {}
        self.sessions: dict[int, Session] = {}

    def opened(self, session: Session) -> int:
        """Follow a session; which exchange it is, its request head says."""
        exchange = int(session.exchange.head.header(EXCHANGE_HEADER) or 0)
        self.numbers[session.exchange.number] = exchange
        self.sessions[exchange] = session
        return exchange

    def asked(self, exchange: int, pending: Pending, now_ns: int) -> None:
        if isinstance(pending.ask, Fetch):
            self.fetches.add((exchange, pending.number))
        elif isinstance(pending.ask, Wait):
            self.waits[exchange, pending.number] = now_ns + pending.ask.ms * NS_PER_MS

    def write(self, record: Record) -> None:
        if self._also is not None:
            self._also.write(record)
        exchange = self.numbers[record.exchange]
        if record.kind is RecordKind.FRAME and record.side is not None:
            key = (exchange, record.side)
            self.taken[key] = self.taken.get(key, 0) + 1
        elif record.kind is RecordKind.ASK:
            number = record.meta["number"]
            assert isinstance(number, int)
            self.fetches.discard((exchange, number))
            self.waits.pop((exchange, number), None)
        if record.kind is RecordKind.CLOSE and record.side is None:
            self._closed(exchange)
            return
        received = () if record.frame is None else (record.frame,)
        for frame in received if record.sent is None else record.sent:
            key = (exchange, frame.sender)
            self.left[key] = self.left.get(key, 0) + 1

    def next_due_ns(self, counts: Callable[[int], bool]) -> int | None:
        """Return when the next timer is due of those exchanges that count."""
        deadlines = [(number, open_.deadline_ns) for number, open_ in self.sessions.items()]
        due = [at for number, at in deadlines if at is not None and counts(number)]
        return min([*due, *self.waits.values()], default=None)

    def _closed(self, exchange: int) -> None:
        self.closed.add(exchange)
        self.fetches = {key for key in self.fetches if key[0] != exchange}
        self.waits = {key: at for key, at in self.waits.items() if key[0] != exchange}


class WatchedEngine(Engine):
    """An engine whose sessions are followed."""

    def __init__(self, engine: Engine, dialects: tuple[object, ...], watch: Watch) -> None:
        super().__init__(
            engine.routes,
            dialects,  # type: ignore[arg-type]  # the registry types them
            secret=b"conformance",
            sink=watch,
            limits=engine.limits,
        )
        self._watch = watch

    def open(self, head: RequestHead, route: Route, *, origin: str = "") -> Session:
        session = super().open(head, route, origin=origin)
        watch, take_asks = self._watch, session.take_asks
        exchange = watch.opened(session)

        def take_watched_asks() -> list[Pending]:
            asks = take_asks()
            for pending in asks:
                watch.asked(exchange, pending, time.monotonic_ns())
            return asks

        session.take_asks = take_watched_asks  # type: ignore[method-assign]  # to see them pass
        return session
