"""Drives the session of one exchange: calls it, and sees that what comes out leaves in order.

Rules of this file:
- The session is only ever called from the event loop and never across an await, so two directions
  can share it without a lock.
- What the session returns goes to one lane for each side before anything is awaited. A lane is
  flushed by one task at a time, so frames never overtake or interleave, whoever made them.
- Whoever feeds the session then flushes the lanes it fed: a receiver that does not read stops
  the reading from its own sender, and with it the growth of the lane. It stops nobody else: what
  the receiver itself sends still goes the other way.
- Asks and deadlines run as tasks of the exchange and end with it.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Self

from midstream.core import metrics
from midstream.core.addon import Answer, Wait
from midstream.core.chain import Pending
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.session import Reading, Session

logger = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000

type Send = Callable[[list[Frame]], Awaitable[None]]
type Fetcher = Callable[[str], Awaitable[Answer]]

_LATENCY_LABELS = {side: (side.value,) for side in Side}


class Lane:
    """What waits to leave towards one side. It is shut until it is given a way to send."""

    __slots__ = ("_send", "_watchers", "is_broken", "is_busy", "sent", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Frame] = deque()
        self.is_broken = False
        self.is_busy = False
        """Something is being sent; whoever sends it sends also what comes to wait meanwhile."""
        self.sent = 0
        self._send: Send | None = None
        self._watchers: list[asyncio.Future[None]] = []

    @property
    def is_due(self) -> bool:
        """Tell whether something waits that nobody is about to send."""
        return bool(self.waiting) and self._send is not None and not self.is_busy

    @property
    def is_free(self) -> bool:
        """Tell whether a frame that comes now is the next to leave."""
        return not (self.is_busy or self.waiting or self.is_broken or self._send is None)

    def open(self, send: Send) -> None:
        self._send = send

    def break_off(self) -> None:
        """Give up: nobody is there to receive any more."""
        self.is_broken = True
        self.waiting.clear()

    def take(self) -> list[Frame]:
        """Take what waits, for a host that sends it itself."""
        taken = self._take()
        self.sent += len(taken)
        return taken

    async def flush(self) -> None:
        """Send all that waits; returns when it was handed to the transport within its bounds."""
        while self._send is not None and (self.waiting or self.is_busy):
            if self.is_busy:
                watcher = asyncio.get_running_loop().create_future()
                self._watchers.append(watcher)
                await watcher
                if not self.waiting:
                    return  # what waited when we came has left
            else:
                await self.send(self._take())

    async def send(self, frames: list[Frame]) -> None:
        """Send frames, and what comes to wait meanwhile. Only for a lane that is not busy."""
        if self._send is None:
            return
        self.is_busy = True
        try:
            while frames:
                self.sent += len(frames)
                await self._send(frames)
                frames = self._take() if self.waiting else []
        except ConnectionError:
            self.break_off()
        finally:
            self.is_busy = False
            if self._watchers:
                self._wake()

    def _take(self) -> list[Frame]:
        taken = list(self.waiting)
        self.waiting.clear()
        return taken

    def _wake(self) -> None:
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)
        self._watchers.clear()


def _is_busy(lane: Lane) -> bool:
    return lane.is_busy


class Drive:
    """One exchange at work. Use it as a context: what it started ends with it."""

    def __init__(self, session: Session, counts: Counts, fetch: Fetcher) -> None:
        self.session = session
        self.lanes = {Side.CLIENT: Lane(), Side.SERVER: Lane()}
        self._lane_from = {side: self.lanes[side.other] for side in Side}
        self.received = dict.fromkeys(Side, 0)
        self._counts = counts
        self._fetch = fetch
        self._fed: set[Lane] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ns: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._disarm()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- calls into the session: what comes out is in the lanes when they return -----------------

    def open(self) -> None:
        self._take(self.session.open(time.monotonic_ns()))

    def respond(self, head: ResponseHead) -> Reading:
        """Tell the session the response head, and return how the response body is read."""
        reading = self.session.respond(head, time.monotonic_ns())
        self._take([])
        return reading

    def give_up(self, side: Side, reason: str) -> None:
        """Read a side no more; `reason` is one of `metrics.CHAIN_REASONS`."""
        self._take(self.session.give_up(side, reason, time.monotonic_ns()))

    async def message(self, side: Side, kind: Kind, message: bytes) -> None:
        """Feed one WebSocket message, and send what comes of it."""
        began_ns = time.monotonic_ns()
        self.received[side] += 1
        frames = self.session.receive_message(side, kind, message, began_ns)
        lane = self._lane_from[side]
        if len(frames) == 1 and frames[0].sender is side and lane.is_free:
            self._take([])
            self._observe(side, began_ns)
            await lane.send(frames)
            return
        self._take(frames)
        self._observe(side, began_ns)
        await self.flush()

    def data(self, side: Side, data: bytes) -> None:
        """Feed bytes of a body or an event stream."""
        began_ns = time.monotonic_ns()
        labels = (self.session.exchange.route, self.session.transport.value, side.value)
        before = self._counts.get(metrics.FRAMES, labels)
        self._take(self.session.receive(side, data, began_ns))
        self.received[side] += int(self._counts.get(metrics.FRAMES, labels) - before)
        self._observe(side, began_ns)

    def end(self, side: Side, **meta: object) -> None:
        self._take(self.session.end(side, time.monotonic_ns(), **meta))

    def abort(self, **meta: object) -> None:
        self._disarm()
        self._take(self.session.abort(time.monotonic_ns(), **meta))

    async def flush(self) -> None:
        """Send what the calls since the last flush put into the lanes."""
        if not self._fed:
            return
        fed, self._fed = self._fed, set()
        for lane in sorted(fed, key=_is_busy) if len(fed) > 1 else fed:
            await lane.flush()

    # --- inside -----------------------------------------------------------------------------------

    def _observe(self, side: Side, began_ns: int) -> None:
        seconds = (time.monotonic_ns() - began_ns) / NS_PER_S
        self._counts.observe(metrics.ADDED_LATENCY, _LATENCY_LABELS[side], seconds)

    def _take(self, frames: list[Frame]) -> None:
        for frame in frames:
            lane = self._lane_from[frame.sender]
            if not lane.is_broken:
                lane.waiting.append(frame)
                self._fed.add(lane)
        for pending in self.session.take_asks():
            self._spawn(self._carry_out(pending))
        if self.session.deadline_ns != self._alarm_ns:
            self._arm()

    def _arm(self) -> None:
        self._disarm()
        self._alarm_ns = self.session.deadline_ns
        if self._alarm_ns is None:
            return
        delay_s = max(self._alarm_ns - time.monotonic_ns(), 0) / NS_PER_S
        self._alarm = asyncio.get_running_loop().call_later(delay_s, self._wake)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_ns = None

    def _wake(self) -> None:
        # The loop's timers may fire a little early by the clock that the session is told.
        now_ns = max(time.monotonic_ns(), self._alarm_ns or 0)
        self._alarm = self._alarm_ns = None
        self._take(self.session.wake(now_ns))
        for lane in self.lanes.values():
            if lane.is_due:
                self._spawn(lane.flush())

    async def _carry_out(self, pending: Pending) -> None:
        if isinstance(pending.ask, Wait):
            await asyncio.sleep(pending.ask.ms / 1000)
            answer = Answer()
        else:
            answer = await self._fetch(pending.ask.target)
        self._take(self.session.answer(pending, answer, time.monotonic_ns()))
        await self.flush()

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a task of an exchange failed", exc_info=error)
