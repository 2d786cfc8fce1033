"""Counts what an exchange receives, and notices when a running answer falls silent."""

from midstream.core import metrics
from midstream.core.exchange import Exchange, Transport
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts

_MAY_BE_COMMENT = (b":", b"\n", b"\r")


class Traffic:
    """What one exchange has received so far, as its metrics see it."""

    def __init__(self, exchange: Exchange, counts: Counts) -> None:
        self.transport = Transport.HTTP
        self.last_frame_ns = 0
        self._exchange = exchange
        self._counts = counts
        self._opened_ns = 0
        self._is_answered = False
        self._is_stall_told = False
        self.carry(Transport.WS if exchange.head.is_websocket else Transport.HTTP)

    def open(self, now_ns: int) -> None:
        self._opened_ns = self.last_frame_ns = now_ns

    def carry(self, transport: Transport) -> None:
        """Label what comes from here on with a transport."""
        self.transport = transport
        self._keys = {}
        for side in Side:
            labels = (self._exchange.route, transport.value, side.value)
            self._keys[side] = (
                self._counts.key(metrics.FRAMES, labels),
                self._counts.key(metrics.FRAME_BYTES, labels),
            )

    def frame(self, frame: Frame, now_ns: int) -> None:
        """Count a frame. An event of comments only is a keepalive, and no sign of an answer."""
        frames, frame_bytes = self._keys[frame.sender]
        values = self._counts.values
        values[frames] += 1
        values[frame_bytes] += len(frame.wire)
        if frame.kind is not Kind.SSE or frame.wire[:1] not in _MAY_BE_COMMENT or frame.payload:
            self._heard(frame.sender, now_ns)

    def unread(self, side: Side, size_bytes: int, now_ns: int) -> None:
        """Count bytes that pass unread."""
        self._counts.values[self._keys[side][1]] += size_bytes
        self._heard(side, now_ns)

    def stalled(self, now_ns: int, after_ns: int) -> bool:
        """Tell the onset of a silence of `after_ns` in an event stream: True once for each.

        A WebSocket is silent whenever nobody says anything, which is no fault.
        """
        is_silent = now_ns - self.last_frame_ns >= after_ns
        if self._is_stall_told or not is_silent or self.transport is not Transport.SSE:
            return False
        self._is_stall_told = True
        return True

    def _heard(self, side: Side, now_ns: int) -> None:
        self.last_frame_ns = now_ns
        self._is_stall_told = False
        if self._is_answered or side is Side.CLIENT:
            return
        self._is_answered = True
        if self.transport is not Transport.HTTP:
            labels = (self._exchange.route, self.transport.value)
            self._counts.observe(metrics.FIRST_EVENT, labels, (now_ns - self._opened_ns) / 1e9)
