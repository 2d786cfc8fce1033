"""One exchange inside mitmproxy: its session, what the session asked for, and what waits to leave.

Rules of this file:
- Nothing here raises into mitmproxy. When a session fails, what it had not given back and
  everything after it leave as they came.
- What leaves goes into `out`, one queue for each sender: frames of the message at hand, of an
  answer and of a timer keep one order. Whoever can send takes from there.
- Into an HTTP body nothing can be sent at will, because mitmproxy has no way to: what an answer or
  a timer made leaves with the next chunk, or at the end.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final

from midstream.core import metrics
from midstream.core.addon import Answer, Fetch
from midstream.core.chain import Pending
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.session import Reading, Session, State

logger = logging.getLogger(__name__)

type Fetcher = Callable[[str], Awaitable[Answer]]
type Leaving = Frame | Original

FAILED: Final = "a session failed; the rest of its exchange passes as it came"
NS_PER_S: Final = 1_000_000_000
EVENT_ENDS: Final = (b"\n\n", b"\n\r\n", b"\r\r")


class Original(Enum):
    """In a queue of frames: the WebSocket message at hand, with its own fragmentation."""

    MESSAGE = "message"


class Lane:
    """How many frames have left towards one side."""

    def __init__(self) -> None:
        self.sent = 0


class Live:
    """One exchange. `on_ready` is called when frames wait that no message at hand will carry."""

    def __init__(
        self,
        session: Session,
        counts: Counts,
        fetch: Fetcher,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        self.session = session
        self.out: dict[Side, deque[Leaving]] = {side: deque() for side in Side}
        self.received = dict.fromkeys(Side, 0)
        self.lanes = {side: Lane() for side in Side}
        self._counts = counts
        self._fetch = fetch
        self._on_ready = on_ready
        self._kept: dict[Side, list[bytes]] = {side: [] for side in Side}
        self._failed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits: dict[int, asyncio.TimerHandle] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ns: int | None = None

    @property
    def is_closed(self) -> bool:
        """Tell whether the session takes nothing more: what comes passes as it came."""
        return self._failed or self.session.state is State.CLOSED

    @property
    def has_chain(self) -> bool:
        """Tell whether any addon reads this exchange."""
        return not self._failed and self.session.state in (State.OPEN, State.HALF_CLOSED)

    # --- what arrives ---------------------------------------------------------------------------

    def open(self) -> None:
        self._drive(self.session.open)

    def respond(self, head: ResponseHead) -> Reading:
        """Take the response head and tell how the body is read."""
        if self.is_closed:
            return Reading.UNREAD
        try:
            return self.session.respond(head, time.monotonic_ns())
        except Exception:
            logger.exception(FAILED)
            self._let_go()
            return Reading.UNREAD

    def receive(self, side: Side, data: bytes) -> None:
        """Take bytes of a body or an event stream."""
        self._due()
        began_ns, before, frames = time.monotonic_ns(), len(self.out[side]), self._frames(side)
        if self.is_closed or not self._drive(
            lambda now_ns: self.session.receive(side, data, now_ns)
        ):
            self._pass(side, data)
            return
        self._keep(side, data, gave=len(self.out[side]) > before)
        self.received[side] += self._frames(side) - frames
        self._observe(side, began_ns)

    def receive_message(self, side: Side, kind: Kind, message: bytes) -> None:
        """Take a WebSocket message."""
        self._due()
        began_ns = time.monotonic_ns()
        if self.is_closed or not self._drive(
            lambda now_ns: self.session.receive_message(side, kind, message, now_ns), message
        ):
            self.out[side].append(Original.MESSAGE)
            return
        self.received[side] += 1
        self._observe(side, began_ns)

    def give_up(self, side: Side, reason: str) -> None:
        """Read this side no more; `reason` is counted."""
        if not self.is_closed:
            self._drive(lambda now_ns: self.session.give_up(side, reason, now_ns))

    def end(self, side: Side, **meta: object) -> None:
        """Take the end of what a side sends."""
        self._due()
        if not self.is_closed:
            self._drive(lambda now_ns: self.session.end(side, now_ns, **meta))
            self._kept[side] = []

    def abort(self, **meta: object) -> None:
        """Take a break, or the end of mitmproxy; what was waiting is let go."""
        if not self.is_closed:
            self._drive(lambda now_ns: self.session.abort(now_ns, **meta))
            self._kept = {side: [] for side in Side}

    def take(self, side: Side) -> list[bytes]:
        """Return what leaves an HTTP body now. No piece is empty: that would end the body."""
        queue = self.out[side]
        pieces = [frame.wire for frame in queue if isinstance(frame, Frame) and frame.wire]
        queue.clear()
        return pieces

    # --- the session, guarded -------------------------------------------------------------------

    def _drive(self, step: Callable[[int], list[Frame]], message: bytes | None = None) -> bool:
        """Take one step, queue what leaves, start what was asked for; tell whether it went well."""
        try:
            for frame in step(time.monotonic_ns()):
                as_it_came = message is not None and frame.wire is message
                self.out[frame.sender].append(Original.MESSAGE if as_it_came else frame)
                self.lanes[frame.sender.other].sent += 1
            asks = self.session.take_asks()
        except Exception:
            logger.exception(FAILED)
            self._let_go()
            return False
        for pending in asks:
            self._carry_out(pending)
        if self.session.state is State.CLOSED:
            self._rest()
        elif self._on_ready is not None:
            self._set_alarm()
        return True

    def _let_go(self) -> None:
        """Let everything go as it came: frames that were held, and bytes that were no frame yet."""
        self._failed = True
        self._rest()
        try:
            held = self.session.abort(time.monotonic_ns())
        except Exception:
            logger.exception("a failed session could not be aborted")
            held = []
        for frame in held:
            if frame.kind is not Kind.BODY:  # bytes of no frame are in `_kept`
                self.out[frame.sender].append(frame)
        for side in Side:
            kept = b"".join(self._kept[side])
            self._kept[side] = []
            self._pass(side, kept)

    def _pass(self, side: Side, data: bytes) -> None:
        if data:
            self.out[side].append(Frame(side, Kind.BODY, data))

    def _keep(self, side: Side, data: bytes, *, gave: bool) -> None:
        """Remember what the session may still have in hand, to let it go should it fail."""
        reading = self.session.reads(side)
        kept = self._kept[side]
        if reading is Reading.EVENTS:
            rest = _after_last_event(data)
            if gave or len(rest) < len(data):
                kept.clear()
            kept.append(rest)
        elif gave or reading is Reading.UNREAD:
            kept.clear()
        else:
            kept.append(data)

    def _frames(self, side: Side) -> int:
        labels = (self.session.exchange.route, self.session.transport.value, side.value)
        return int(self._counts.get(metrics.FRAMES, labels))

    def _observe(self, side: Side, began_ns: int) -> None:
        seconds = (time.monotonic_ns() - began_ns) / NS_PER_S
        self._counts.observe(metrics.ADDED_LATENCY, (side.value,), seconds)

    # --- time and asks --------------------------------------------------------------------------

    def _due(self) -> None:
        """Do what time has brought, before anything that arrives now."""
        if not self.is_closed:
            due_ns = self.session.deadline_ns
            if due_ns is not None and due_ns <= time.monotonic_ns():
                self._drive(self.session.wake)

    def _set_alarm(self) -> None:
        due_ns = self.session.deadline_ns
        if due_ns == self._alarm_ns:
            return
        self._disarm()
        if due_ns is not None:
            self._alarm_ns = due_ns
            delay_s = max(0.0, (due_ns - time.monotonic_ns()) / NS_PER_S)
            self._alarm = asyncio.get_running_loop().call_later(delay_s, self._ring)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_ns = None

    def _ring(self) -> None:
        # The loop's timers may fire a little early by the clock that the session is told.
        due_ns = self._alarm_ns or 0
        self._disarm()
        if not self.is_closed:
            self._drive(lambda now_ns: self.session.wake(max(now_ns, due_ns)))
            self._tell()

    def _carry_out(self, pending: Pending) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(pending.ask, Fetch):
            task = loop.create_task(self._bring(pending, pending.ask.target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._waits[pending.number] = loop.call_later(
                pending.ask.ms / 1000, self._answer, pending, Answer()
            )

    async def _bring(self, pending: Pending, target: str) -> None:
        try:
            answer = await self._fetch(target)
        except Exception:
            logger.exception("a fetch failed")
            answer = Answer()
        self._answer(pending, answer)

    def _answer(self, pending: Pending, answer: Answer) -> None:
        self._waits.pop(pending.number, None)
        if not self.is_closed:
            self._drive(lambda now_ns: self.session.answer(pending, answer, now_ns))
            self._tell()

    def _tell(self) -> None:
        if self._on_ready is not None and any(self.out.values()):
            self._on_ready()

    def _rest(self) -> None:
        """Let go of every task and timer."""
        for task in self._tasks:
            task.cancel()
        for handle in self._waits.values():
            handle.cancel()
        self._waits.clear()
        self._disarm()


def _after_last_event(data: bytes) -> bytes:
    """Return what follows the last end of an event; all of it where no event ends."""
    ends = [at + len(mark) for mark in EVENT_ENDS if (at := data.rfind(mark)) >= 0]
    return data[max(ends) :] if ends else data
