"""Counts one exchange inside mitmproxy: request, stream, outcome.

Frames and repairs are counted below the host; this is what only a host sees.
"""

import time
from typing import cast

from midstream.core import metrics
from midstream.core.exchange import Transport
from midstream.core.metrics import Counts
from midstream.hosts.gateway_call import Stream, Streams
from midstream.hosts.gateway_drive import NS_PER_S, Drive
from midstream.hosts.mitm_live import Live


class Account:
    """The counts of one exchange. Every method may be called twice; the first call counts."""

    def __init__(self, counts: Counts, streams: Streams, live: Live) -> None:
        self._counts = counts
        self._streams = streams
        self._live = live
        self._exchange = live.session.exchange
        self._is_answered = False

    def answered(self, status: int) -> None:
        """Count the request, now that its transport and status are known, and open its stream."""
        if self._is_answered:
            return
        self._is_answered = True
        session, route = self._live.session, self._exchange.route
        code_class = f"{min(max(status // 100, 1), 5)}xx"
        self._counts.add(metrics.REQUESTS, (route, session.transport.value, code_class))
        if session.transport is not Transport.HTTP:
            drive = cast("Drive", self._live)  # only its two counters are looked at
            stream = Stream(route, session.transport, session, drive, time.monotonic_ns())
            self._streams.open[self._exchange.number] = stream
            self._counts.add(metrics.STREAMS_OPENED, (route, session.transport.value))
            self._counts.add(metrics.STREAMS_ACTIVE, (route, session.transport.value))

    def upstream_failed(self, reason: str) -> None:
        """Count an upstream that broke, and the 502 that mitmproxy answers where nothing came."""
        self._counts.add(metrics.UPSTREAM_ERRORS, (self._exchange.route, reason))
        if not self._is_answered:
            self._is_answered = True
            labels = (self._exchange.route, self._live.session.transport.value, "5xx")
            self._counts.add(metrics.REQUESTS, labels)

    def refused(self, reason: str) -> None:
        self._counts.add(metrics.REJECTED, (reason,))

    def closed(self, outcome: str) -> None:
        stream = self._streams.open.pop(self._exchange.number, None)
        if stream is None:
            return
        labels = (stream.route, stream.transport.value)
        self._counts.add(metrics.STREAMS_ACTIVE, labels, -1)
        self._counts.add(metrics.STREAMS_CLOSED, (*labels, outcome))
        seconds = (time.monotonic_ns() - stream.opened_ns) / NS_PER_S
        self._counts.observe(metrics.STREAM_DURATION, labels, seconds)
