"""The sans-I/O driver of one exchange: bytes in, frames out.

A host opens a session with the request head, feeds it what arrives from either side, and sends the
frames it returns: one whose sender is CLIENT to the server, one whose sender is SERVER to the
client. After each call the host carries out `take_asks()` and comes back with `answer`, and calls
`wake` when `deadline_ns` has come. Time is monotonic, in nanoseconds, and only ever an argument.

    state        event                       next          what happens
    NEW          open, a dialect reads it    OPEN          chain built, addons see the exchange
    NEW          open, none does             BYPASS        bytes pass unread
    OPEN         data(side)                  OPEN          split -> chain -> frames out
    OPEN         too large, not decodable    (same)        that side passes unread from here on
    OPEN         end(side)                   HALF_CLOSED   that side is flushed
    HALF_CLOSED  data(other side)            HALF_CLOSED   as in OPEN
    HALF_CLOSED  end(other side)             CLOSED        addons see the close
    any          abort                       CLOSED        addons see the close
    BYPASS       data / end / abort          BYPASS / CLOSED / CLOSED

What a side sends is read as messages (WebSocket), events (SSE), one body, or not at all.
"""

from collections.abc import Callable, Collection
from enum import StrEnum

from midstream.core.addon import Answer, Ending
from midstream.core.body import BodyCollector
from midstream.core.chain import Chain, Pending
from midstream.core.conversation import Conversation
from midstream.core.errors import Error, WireError
from midstream.core.exchange import Exchange, ResponseHead, Transport
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.ports import RecordKind, Sink
from midstream.core.recorder import Recorder
from midstream.core.sse import SseSplitter
from midstream.core.traffic import Traffic

SWITCHING_PROTOCOLS = 101


class State(StrEnum):
    NEW = "new"
    OPEN = "open"
    HALF_CLOSED = "half_closed"
    CLOSED = "closed"
    BYPASS = "bypass"


class Event(StrEnum):
    READ = "read"
    UNREAD = "unread"
    DATA = "data"
    END = "end"
    LAST_END = "last_end"
    ABORT = "abort"


TABLE: dict[tuple[State, Event], State] = {
    (State.NEW, Event.READ): State.OPEN,
    (State.NEW, Event.UNREAD): State.BYPASS,
    (State.NEW, Event.ABORT): State.CLOSED,
    (State.OPEN, Event.DATA): State.OPEN,
    (State.OPEN, Event.END): State.HALF_CLOSED,
    (State.OPEN, Event.ABORT): State.CLOSED,
    (State.HALF_CLOSED, Event.DATA): State.HALF_CLOSED,
    (State.HALF_CLOSED, Event.LAST_END): State.CLOSED,
    (State.HALF_CLOSED, Event.ABORT): State.CLOSED,
    (State.BYPASS, Event.DATA): State.BYPASS,
    (State.BYPASS, Event.END): State.BYPASS,
    (State.BYPASS, Event.LAST_END): State.CLOSED,
    (State.BYPASS, Event.ABORT): State.CLOSED,
}
"""In CLOSED, `end` and `abort` do nothing and data is illegal."""


class IllegalEvent(Error):
    """A host called a session out of order."""


class Reading(StrEnum):
    """How the bytes of one side are read."""

    MESSAGES = "messages"
    EVENTS = "events"
    BODY = "body"
    UNREAD = "unread"


class Session:
    """Drives one exchange. `chain` is None where no addon reads it: frames are only counted."""

    def __init__(
        self,
        exchange: Exchange,
        chain: Chain | None,
        counts: Counts,
        *,
        max_frame_bytes: int = 16 << 20,
        sink: Sink | None = None,
        readers: Callable[[ResponseHead], Collection[str]] = lambda _head: (),
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.exchange = exchange
        self.conversations: tuple[Conversation, ...] = ()
        """What it has in common with other exchanges."""
        self.state = State.NEW
        self._chain = chain
        self._traffic = Traffic(exchange, counts)
        self._readers = readers
        self._on_close = on_close
        self._recorder = Recorder(exchange, chain, sink, counts)
        self._reading = dict.fromkeys(Side, Reading.UNREAD)
        self._splitter = SseSplitter(max_frame_bytes)
        self._bodies = {side: BodyCollector(max_frame_bytes) for side in Side}
        self._ended: set[Side] = set()
        self._given_up: dict[Side, str] = {}

    @property
    def transport(self) -> Transport:
        """The transport, as metrics label it; it becomes SSE with the head of the response."""
        return self._traffic.transport

    @property
    def last_frame_ns(self) -> int:
        """When the last frame came that was more than a keepalive; at first, when it opened."""
        return self._traffic.last_frame_ns

    # --- the life of the exchange ---------------------------------------------------------------

    def open(self, now_ns: int) -> list[Frame]:
        """Begin. A WebSocket is read message by message, a request body as one frame."""
        self._step(Event.UNREAD if self._chain is None else Event.READ)
        self._traffic.open(now_ns)
        self._recorder.open(now_ns)
        if self._traffic.transport is Transport.WS:
            self._reading = dict.fromkeys(Side, Reading.MESSAGES)
        elif self._chain is not None:
            self._reading[Side.CLIENT] = Reading.BODY
        if self._chain is None:
            return []
        return self._left(self._chain.open(now_ns), now_ns)

    def reads(self, side: Side) -> Reading:
        """Tell how the bytes of a side are read from here on."""
        return self._reading[side]

    def respond(self, head: ResponseHead, now_ns: int) -> Reading:
        """Take the response head and tell how the response body is read.

        A body in a content coding that the host does not undo needs a `give_up` next.
        """
        if self.state is State.CLOSED:
            return Reading.UNREAD
        meta: dict[str, object] = {"status": head.status, "headers": head.headers}
        self._recorder.write(RecordKind.HEADERS, now_ns, Side.SERVER, meta=meta)
        if self._traffic.transport is Transport.WS:
            if head.status != SWITCHING_PROTOCOLS:  # refused: what follows is no message
                self._traffic.carry(Transport.HTTP)
                self._reading = dict.fromkeys(Side, Reading.UNREAD)
            return self._reading[Side.SERVER]
        is_read = self._chain is not None and self._chain.listen(self._readers(head), head, now_ns)
        if head.is_event_stream:
            self._traffic.carry(Transport.SSE)
            self._traffic.last_frame_ns = now_ns
            self._reading[Side.SERVER] = Reading.EVENTS
        elif is_read:
            self._reading[Side.SERVER] = Reading.BODY
        return self._reading[Side.SERVER]

    def edits_response(self, head: ResponseHead) -> bool:
        """Tell whether any addon reads this response, so that it must arrive uncompressed."""
        return self._chain is not None and bool(self._readers(head))

    def end(self, side: Side, now_ns: int, **meta: object) -> list[Frame]:
        """Take the end of what a side sends, and return what was waiting for it."""
        if side in self._ended or self.state is State.CLOSED:
            return []
        is_last = side.other in self._ended
        self._step(Event.LAST_END if is_last else Event.END)
        out = self._flush(side, now_ns)
        self._ended.add(side)
        freed = [] if self._chain is None else self._deliverable(self._chain.end(side, now_ns))
        sent = tuple(freed) or None
        self._recorder.write(RecordKind.CLOSE, now_ns, side, sent=sent, meta=meta)
        if is_last:
            self._close(Ending.COMPLETE, now_ns, None, {})
        return out + freed

    def abort(self, now_ns: int, **meta: object) -> list[Frame]:
        """Take a break of either side, and return what was waiting.

        The addons see the end of both sides first. The host may still send what they leave to the
        side that is there: without a proxy it would have arrived.
        """
        if self.state is State.CLOSED:
            return []
        self._step(Event.ABORT)
        out: list[Frame] = []
        if self._chain is not None:
            for side in Side:
                out += self._deliverable(self._chain.end(side, now_ns))
        for side in Side:
            if rest := self._rest(side):
                frame = Frame(side, Kind.BODY, rest)
                cut: dict[str, object] = {"cut": True}
                self._recorder.write(RecordKind.FRAME, now_ns, side, frame, (), cut)
                out.append(frame)
        self._close(Ending.ABORTED, now_ns, tuple(out) or None, meta)
        return out

    # --- what arrives ---------------------------------------------------------------------------

    def receive_message(self, side: Side, kind: Kind, message: bytes, now_ns: int) -> list[Frame]:
        """Take one whole WebSocket message."""
        self._take(side)
        frame = Frame(side, kind, message)
        return (
            [self._unread(frame, now_ns)] if side in self._given_up else self._pass(frame, now_ns)
        )

    def receive(self, side: Side, data: bytes, now_ns: int) -> list[Frame]:
        """Take bytes of a body or an event stream, cut anywhere."""
        self._take(side)
        if not data:
            return []
        reading = self._reading[side]
        if reading is Reading.EVENTS:
            return self._receive_events(side, data, now_ns)
        if reading is Reading.BODY:
            return self._receive_body(side, data, now_ns)
        return [self._unread(Frame(side, Kind.BODY, data), now_ns)]

    def give_up(self, side: Side, reason: str, now_ns: int) -> list[Frame]:
        """Read this side no more: what was collected leaves as it came, after what was held.

        `reason` is one of `metrics.CHAIN_REASONS`, and is counted for every addon.
        """
        if self.state is State.CLOSED or self._reading[side] is Reading.UNREAD:
            return []
        rest = self._rest(side)
        self._reading[side] = Reading.UNREAD
        out: list[Frame] = []
        if self._chain is not None:
            for name in self._chain.addons:
                self._chain.skip(name, reason)
            out = self._deliverable(self._chain.end(side, now_ns))
        meta: dict[str, object] = {"gave_up": reason}
        self._recorder.write(RecordKind.REPAIR, now_ns, side, sent=tuple(out), meta=meta)
        self._given_up[side] = reason
        return [*out, self._unread(Frame(side, Kind.BODY, rest), now_ns)] if rest else out

    # --- time and asks --------------------------------------------------------------------------

    @property
    def deadline_ns(self) -> int | None:
        """When `wake` is due, or None."""
        if self._chain is None or self.state is State.CLOSED:
            return None
        return self._chain.deadline_ns

    def wake(self, now_ns: int) -> list[Frame]:
        """Do what time has brought."""
        if self._chain is None or self.state is State.CLOSED:
            return []
        return self._left(self._chain.wake(now_ns), now_ns)

    def take_asks(self) -> list[Pending]:
        """Return what the addons asked of the host since the last call."""
        if self._chain is None or not self._chain.asks or self.state is State.CLOSED:
            return []
        asks, self._chain.asks = self._chain.asks, []
        return asks

    def answer(self, pending: Pending, answer: Answer, now_ns: int) -> list[Frame]:
        """Bring the answer to an ask; after the close nobody waits for it any more."""
        if self._chain is None or self.state is State.CLOSED:
            return []
        out = self._deliverable(self._chain.answer(pending.number, answer, now_ns))
        meta: dict[str, object] = {
            "number": pending.number,
            "ask": pending.ask,
            "answer": answer,
        }
        self._recorder.write(RecordKind.ASK, now_ns, sent=tuple(out), meta=meta)
        return out

    def stalled(self, now_ns: int, after_ns: int) -> bool:
        """Tell the onset of a stall: True once when a running answer was silent for `after_ns`.

        An answer runs while an event stream is open (its comments are no answer), and on a
        WebSocket while the server has had the last word: whether that word was its last is not
        known here. The host sweeps its sessions about once a second and counts.
        """
        if self.state in (State.NEW, State.CLOSED) or Side.SERVER in self._ended:
            return False
        return self._traffic.stalled(now_ns, after_ns)

    # --- inside ---------------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        try:
            self.state = TABLE[self.state, event]
        except KeyError:
            raise IllegalEvent(f"a session in state {self.state} got {event}") from None

    def _take(self, side: Side) -> None:
        if self.state is State.OPEN:  # where the table says that data changes nothing
            return
        self._step(Event.DATA)
        if side in self._ended:
            raise IllegalEvent(f"a session in state {self.state} got data from the ended {side}")

    def _receive_events(self, side: Side, data: bytes, now_ns: int) -> list[Frame]:
        is_too_large = False
        try:
            events = self._splitter.receive(data)
        except WireError:
            is_too_large = True
            events = self._splitter.completed()
        out: list[Frame] = []
        for wire in events:
            out += self._pass(Frame(side, Kind.SSE, wire), now_ns)
        return out + self.give_up(side, "too_large", now_ns) if is_too_large else out

    def _receive_body(self, side: Side, data: bytes, now_ns: int) -> list[Frame]:
        try:
            self._bodies[side].receive(data)
        except WireError:
            return self.give_up(side, "too_large", now_ns)
        return []

    def _rest(self, side: Side) -> bytes:
        """Return the bytes that were taken and are no whole frame yet."""
        reading = self._reading[side]
        if reading is Reading.EVENTS:
            return self._splitter.flush()
        return self._bodies[side].drain() if reading is Reading.BODY else b""

    def _flush(self, side: Side, now_ns: int) -> list[Frame]:
        kind = Kind.SSE if self._reading[side] is Reading.EVENTS else Kind.BODY
        rest = self._rest(side)
        return self._pass(Frame(side, kind, rest), now_ns) if rest else []

    def _deliverable(self, out: list[Frame]) -> list[Frame]:
        """Leave out what an addon makes for a stream of bytes that is no longer read.

        Everything received from that side has left by then; a frame of an addon's own could only
        land in the middle of something.
        """
        if not self._given_up:
            return out
        return [frame for frame in out if frame.sender not in self._given_up]

    def _unread(self, frame: Frame, now_ns: int) -> Frame:
        side = frame.sender
        self._traffic.unread(side, len(frame.wire), now_ns)
        reason = self._given_up.get(side)
        meta: dict[str, object] = {} if reason is None else {"unread": reason}
        self._recorder.write(RecordKind.FRAME, now_ns, side, frame, meta=meta)
        return frame

    def _pass(self, frame: Frame, now_ns: int) -> list[Frame]:
        """Count a frame, run it through the addons, and record both. The path of every frame."""
        self._traffic.frame(frame, now_ns)
        chain = self._chain
        out = [frame] if chain is None else self._deliverable(chain.run(frame, now_ns))
        self._recorder.received(frame, out, now_ns)
        return out

    def _left(self, out: list[Frame], now_ns: int) -> list[Frame]:
        """Record frames that left without a frame at hand."""
        out = self._deliverable(out)
        self._recorder.left(out, now_ns)
        return out

    def _close(
        self,
        ending: Ending,
        now_ns: int,
        sent: tuple[Frame, ...] | None,
        meta: dict[str, object],
    ) -> None:
        if self._chain is not None:
            self._chain.close(ending, now_ns)
        meta = {"ending": ending.value, **meta}
        self._recorder.write(RecordKind.CLOSE, now_ns, sent=sent, meta=meta)
        self._on_close()
