"""Feeds one page with what happens: a stream of events, read from the ring at the page's own pace.

Rules of this file:
- A page has no queue. It has a place in the ring, and what it was too slow to read there is gone
  and counted: a slow page costs a stream nothing, and the process no memory.
- Putting records into words takes time on the event loop. It is done in slices of a few
  milliseconds, with a pause as long as the slice behind each.
"""

import asyncio
import time
from collections.abc import Iterator

import msgspec
from aiohttp import web

from midstream.hosts.inspector import Trail
from midstream.hosts.inspector_view import View

MAX_LISTED = 500
"""How many exchanges a page is shown, newest first."""
MAX_BATCH_RECORDS = 200
SLICE_SECONDS = 0.004
TICK_SECONDS = 0.08
LIST_SECONDS = 0.25
ALIVE_SECONDS = 10.0
SLOW_SECONDS = 30.0
"""A page that takes nothing for so long is let go; it comes back by itself when it can."""


class Place(msgspec.Struct):
    """Where a page is: in which run of the process, at which exchange, behind which record."""

    run: str
    exchange: int = 0
    seq: int = 0

    @classmethod
    def of(cls, run: str, exchange: str, last_event_id: str) -> "Place":
        """Return where a page begins, or goes on after a break. Unreadable numbers begin at 0."""
        place = cls(run, number(exchange))
        last = last_event_id.split(":")
        if len(last) == 3 and last[0] == run and number(last[1]) == place.exchange:
            place.seq = number(last[2])
        return place

    def __str__(self) -> str:
        return f"{self.run}:{self.exchange}:{self.seq}"


class Feed:
    """What one page is told. `state` is what the page shows of the process."""

    def __init__(self, view: View, place: Place, state: dict[str, object]) -> None:
        self._view = view
        self._ring = view.ring
        self._place = place
        self._state = state
        self._revision = 0
        self._list_at = 0.0
        self._said_at = 0.0
        self._is_behind = False

    async def run(
        self, request: web.Request, response: web.StreamResponse, over: asyncio.Event
    ) -> None:
        """Write until the page is gone or `over` is set. Raises what writing raises."""
        await self._write(response, _event("hello", self._state, self._place))
        while not over.is_set() and request.transport is not None:
            began = time.monotonic()
            data = b"".join(self._news(began))
            took = time.monotonic() - began
            if data or began - self._said_at > ALIVE_SECONDS:
                await self._write(response, data or b": alive\n\n")
            try:
                async with asyncio.timeout(took if self._is_behind else TICK_SECONDS):
                    await over.wait()
            except TimeoutError:
                continue

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(SLOW_SECONDS):
            await response.write(data)
        self._said_at = time.monotonic()

    def _news(self, now: float) -> Iterator[bytes]:
        if now - self._list_at >= LIST_SECONDS and self._ring.revision > self._revision:
            self._list_at = now
            yield self._exchanges()
        if self._place.exchange:
            yield self._records()

    def _exchanges(self) -> bytes:
        """Return the rows of the exchanges in which something happened since the last time."""
        since, self._revision = self._revision, self._ring.revision
        rows = [
            self._view.exchange(trail)
            for trail in self._ring.newest(MAX_LISTED)
            if trail.revision > since
        ]
        return _event("exchanges", rows, self._place)

    def _records(self) -> bytes:
        """Return the next rows of the exchange that the page shows."""
        trail = self._ring.trails.get(self._place.exchange)
        self._is_behind = False
        if trail is None:
            gone, self._place.exchange = self._place.exchange, 0
            return _event("gone", gone, self._place)
        lost = max(0, trail.lost - self._place.seq)
        rows = self._rows(trail)
        if not rows:
            return b""
        news = {"exchange": trail.number, "lost": lost, "rows": rows}
        return _event("records", news, self._place)

    def _rows(self, trail: Trail) -> list[dict[str, object]]:
        until = time.monotonic() + SLICE_SECONDS
        rows = []
        for record in trail.after(self._place.seq, MAX_BATCH_RECORDS):
            rows.append(self._view.row(trail, record))
            self._place.seq = record.seq
            if time.monotonic() > until:
                break
        self._is_behind = bool(trail.records) and trail.records[-1].seq > self._place.seq
        return rows


def _event(name: str, data: object, place: Place) -> bytes:
    body = msgspec.json.encode(data)  # it has no line breaks: JSON escapes those in strings
    return b"event: %s\nid: %s\ndata: %s\n\n" % (name.encode(), str(place).encode(), body)


def number(text: str) -> int:
    """Read a number that a page sent; 0 where it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
