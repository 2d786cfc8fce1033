"""Plays a capture over real sockets, in the order and at the virtual pace of its records.

After each record the conductor waits until everything it caused has happened: the host has taken
the frame, fetches are answered, timers that are due have run, and every message that left has
arrived. Only then it goes on, so the order between the two sides is that of the capture.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from itertools import count

from tests.conformance.clock import Clock
from tests.conformance.upstream import Upstream
from tests.conformance.watch import Watch
from tests.conformance.wire import EXCHANGE_HEADER, Received, Wire, connect, websocket_key

from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_heads import request_head, response_head
from midstream.core.exchange import RequestHead
from midstream.core.frames import Kind, Side
from midstream.core.ports import RecordKind

PATIENCE_S = 30
SPINS = 20
NAP_S = 0.0005

type Arrived = dict[tuple[int, Side], list[Received]]
"""What arrived, by exchange and sender: messages, or one body. No entry where nothing did."""


class Conductor:
    """Plays one capture through whatever listens on a port. `watch` is None for no proxy at all.

    `wakes_http` tells whether the host serves timers of an HTTP exchange when they are due.
    """

    def __init__(
        self,
        port: int,
        upstream: Upstream,
        clock: Clock,
        rng: random.Random,
        watch: Watch | None,
        *,
        wakes_http: bool = True,
    ) -> None:
        self._port = port
        self._upstream = upstream
        self._clock = clock
        self._rng = rng
        self._watch = watch
        self._wakes_http = wakes_http
        self._clients: dict[int, Wire] = {}
        self._heads: dict[int, RequestHead] = {}
        self._sent: dict[tuple[int, Side], int] = {}
        self._over: set[int] = set()
        self._offset_ns = 0
        self._plays: dict[RecordKind, Callable[[StoredRecord], Awaitable[None]]] = {
            RecordKind.OPEN: self._open,
            RecordKind.HEADERS: self._respond,
            RecordKind.FRAME: self._frame,
            RecordKind.CLOSE: self._close,
        }

    async def play(self, records: list[StoredRecord]) -> Arrived:
        """Play the records, and return what arrived."""
        bodies = _request_bodies(records)
        async with asyncio.TaskGroup() as pumps:
            self._pumps = pumps
            self._bodies = bodies
            with self._clock.frozen():
                self._offset_ns = self._clock.monotonic_ns() - records[0].mono_ns
                for record in records:
                    await self._advance(record.mono_ns + self._offset_ns)
                    await self._plays[record.kind](record)
                    await self._until(self._is_quiet, f"record {record.exchange}:{record.seq}")
            for client in self._clients.values():
                await client.shut()
            for wire in self._upstream.wires.values():
                await wire.shut()
        return self._arrived()

    # --- records --------------------------------------------------------------------------------

    async def _open(self, record: StoredRecord) -> None:
        number, head = record.exchange, request_head(record)
        self._heads[number] = head
        client = self._clients[number] = await connect(self._port, self._rng)
        self._pumps.create_task(client.pump())
        headers = (*head.headers, (EXCHANGE_HEADER, str(number)))
        if head.is_websocket:
            headers = (*headers, ("Sec-WebSocket-Key", websocket_key(self._rng)))
        elif number in self._bodies:
            headers = (*headers, ("Content-Length", str(self._bodies[number])))
        client.send_request(head.method, head.target, headers)
        if head.is_websocket:
            await self._until(lambda: number in self._upstream.wires, "the upgrade arriving")

    async def _respond(self, record: StoredRecord) -> None:
        number, head = record.exchange, response_head(record)
        upstream, client = self._upstream.wires[number], self._clients[number]
        if self._heads[number].is_websocket:
            upstream.accept()
            await self._until(lambda: client.is_websocket, "the upgrade answered")
        else:
            upstream.send_response(head.status, head.headers)

    async def _frame(self, record: StoredRecord) -> None:
        number, side, kind = record.exchange, record.side, record.frame
        assert side is not None
        assert kind is not None
        wire = self._end_of(number, side)
        if not self._heads[number].is_websocket:
            await wire.send_body(record.data)
            return
        sent = self._sent[number, side] = self._sent.get((number, side), 0) + 1
        await wire.send_message(kind, record.data)
        watch = self._watch
        if watch is not None:
            await self._until(
                lambda: watch.taken.get((number, side), 0) >= sent, "the message taken"
            )

    async def _close(self, record: StoredRecord) -> None:
        number, side = record.exchange, record.side
        client, upstream = self._clients[number], self._upstream.wires.get(number)
        if record.meta.get("ending") == "aborted":
            await self._abort(number, Side(record.meta["side"]))
        elif side is None or number in self._over:
            return
        elif self._heads[number].is_websocket:
            self._over.add(number)
            assert upstream is not None
            await self._close_websocket(record, client, upstream)
        elif side is Side.CLIENT:
            client.complete()
            await self._until(lambda: self._is_requested(number), "the request arriving")
        else:
            assert upstream is not None
            upstream.complete()
            await self._until(lambda: client.is_complete, "the response arriving")
            await self._ended(number)

    async def _close_websocket(self, record: StoredRecord, client: Wire, upstream: Wire) -> None:
        sender = client if record.side is Side.CLIENT else upstream
        sender.send_close(record.meta["code"], record.meta["reason"])
        await self._until(
            lambda: None not in (client.close_code, upstream.close_code), "the close arriving"
        )
        await upstream.shut()
        await client.shut()
        await self._ended(record.exchange)

    async def _abort(self, number: int, side: Side) -> None:
        self._over.add(number)
        self._end_of(number, side).abort()
        other = self._end_of(number, side.other)
        await self._until(lambda: other.is_gone, "the break arriving")
        assert other.close_code is None, "an abnormal end has no close frame on the other side"
        await self._ended(number)

    async def _ended(self, number: int) -> None:
        watch = self._watch
        if watch is not None:
            await self._until(lambda: number in watch.closed, "the exchange closing")

    # --- waiting --------------------------------------------------------------------------------

    async def _advance(self, to_ns: int) -> None:
        """Move time on, from one timer to the next."""
        for _ in range(100_000):
            due_ns = self._next_due_ns()
            if due_ns is None or due_ns > to_ns:
                break
            self._clock.advance(due_ns)
            await self._until(self._is_quiet, "a timer")
        self._clock.advance(to_ns)

    def _next_due_ns(self) -> int | None:
        watch = self._watch
        return None if watch is None else watch.next_due_ns(self._counts_for_time)

    def _counts_for_time(self, number: int) -> bool:
        return self._wakes_http or self._heads[number].is_websocket

    def _is_quiet(self) -> bool:
        """Tell whether all that was caused so far has happened."""
        if self._watch is None:
            return all(self._has_arrived(key, sent) for key, sent in self._sent.items())
        due_ns = self._next_due_ns()
        if self._watch.fetches or (due_ns is not None and due_ns <= self._clock.monotonic_ns()):
            return False
        return all(self._has_arrived(key, left) for key, left in self._watch.left.items())

    def _has_arrived(self, key: tuple[int, Side], count: int) -> bool:
        number, sender = key
        if not self._heads[number].is_websocket or number in self._over:
            return True
        return len(self._end_of(number, sender.other).frames) >= count

    def _is_requested(self, number: int) -> bool:
        wire = self._upstream.wires.get(number)
        return wire is not None and wire.is_complete

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait in real time: the loop's own timers stand still."""
        deadline = time.monotonic() + PATIENCE_S
        for turn in count():
            if holds():
                return
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
            if turn < SPINS:
                await asyncio.sleep(0)
            else:
                await asyncio.get_running_loop().run_in_executor(None, time.sleep, NAP_S)

    # --- results --------------------------------------------------------------------------------

    def _end_of(self, number: int, side: Side) -> Wire:
        return self._clients[number] if side is Side.CLIENT else self._upstream.wires[number]

    def _arrived(self) -> Arrived:
        arrived: Arrived = {}
        for number, head in self._heads.items():
            for sender in Side:
                wire = self._end_of(number, sender.other)
                if head.is_websocket:
                    received = wire.frames
                else:
                    received = [(Kind.BODY, bytes(wire.body))] if wire.body else []
                if received:
                    arrived[number, sender] = received
        return arrived


def _request_bodies(records: list[StoredRecord]) -> dict[int, int]:
    """Return how many bytes of a request body each exchange has."""
    sizes: dict[int, int] = {}
    for record in records:
        if record.frame is Kind.BODY and record.side is Side.CLIENT:
            sizes[record.exchange] = sizes.get(record.exchange, 0) + len(record.data)
    return sizes
