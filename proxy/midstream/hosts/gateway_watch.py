"""What the gateway looks after once in a while: stalled streams and the lag of its event loop."""

import asyncio
import time

from midstream.core import metrics
from midstream.core.metrics import Counts
from midstream.hosts.gateway_call import Streams
from midstream.hosts.gateway_drive import NS_PER_S

SWEEP_SECONDS = 1.0
STALL_SECONDS = 30
LAG_SECONDS = 0.25


class Watch:
    """Sweeps the open streams, and measures how late its own timers run."""

    def __init__(self, counts: Counts, streams: Streams) -> None:
        self._counts = counts
        self._streams = streams
        self._timer: asyncio.TimerHandle | None = None
        self._sweep_at = 0.0

    def start(self) -> None:
        """Begin, in the running loop."""
        self._schedule(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def sweep(self, now_ns: int) -> None:
        """Count the streams that have just been found silent."""
        for stream in self._streams.open.values():
            if stream.session.stalled(now_ns, STALL_SECONDS * NS_PER_S):
                self._counts.add(metrics.STALLS, (stream.route,))

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + LAG_SECONDS
        self._timer = loop.call_at(due, self._tick, loop, due)

    def _tick(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = loop.time()
        self._counts.observe(metrics.LOOP_LAG, (), max(now - due, 0.0))
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_SECONDS
            self.sweep(time.monotonic_ns())
        self._schedule(loop)
