"""What the live inspector page shows: the open streams, and what was mended of late and why.

Nothing of a payload, a target or a header is kept or shown: names from the configuration, words
that addons declare, numbers and times.
"""

import time
from collections import deque
from importlib import resources

import msgspec

from midstream.core.ports import Record, RecordKind
from midstream.hosts.gateway_call import Streams

MAX_EVENTS = 200
MAX_STREAMS = 200
MAX_RULES = 5
NS_PER_S = 1_000_000_000


class Happening(msgspec.Struct, frozen=True):
    """Something an addon did, or declined to do: `what` is a rule or a reason."""

    at_ns: int
    exchange: int
    addon: str
    what: str
    mended: bool


class Ring:
    """A sink that remembers the last happenings, of all exchanges and of each open one."""

    def __init__(self) -> None:
        self.happenings: deque[Happening] = deque(maxlen=MAX_EVENTS)
        self._last: dict[int, deque[str]] = {}

    def write(self, record: Record) -> None:
        if record.rules or record.skips:
            for addon, rule in record.rules:
                self._add(Happening(record.mono_ns, record.exchange, addon, rule, mended=True))
            for addon, reason in record.skips:
                self._add(Happening(record.mono_ns, record.exchange, addon, reason, mended=False))
        if record.kind is RecordKind.CLOSE and "ending" in record.meta:
            self._last.pop(record.exchange, None)

    def last_rules(self, exchange: int) -> list[str]:
        return list(self._last.get(exchange, ()))

    def _add(self, happening: Happening) -> None:
        self.happenings.append(happening)
        if happening.mended:
            rules = self._last.setdefault(happening.exchange, deque(maxlen=MAX_RULES))
            rules.append(f"{happening.addon}: {happening.what}")


def snapshot(streams: Streams, ring: Ring) -> dict[str, object]:
    """Return what the page shows, ready for JSON."""
    now_ns = time.monotonic_ns()
    newest = sorted(streams.open.items(), reverse=True)[:MAX_STREAMS]
    return {
        "draining": streams.is_draining,
        "open": len(streams.open),
        "streams": [
            {
                "exchange": number,
                "route": stream.route,
                "transport": stream.transport.value,
                "age_s": round((now_ns - stream.opened_ns) / NS_PER_S, 1),
                "in": {side.value: count for side, count in stream.frames_in.items()},
                "out": {side.value: count for side, count in stream.frames_out.items()},
                "rules": ring.last_rules(number),
            }
            for number, stream in newest
        ],
        "happenings": [
            {
                "age_s": round((now_ns - happening.at_ns) / NS_PER_S, 1),
                "exchange": happening.exchange,
                "addon": happening.addon,
                "what": happening.what,
                "mended": happening.mended,
            }
            for happening in reversed(ring.happenings)
        ],
    }


def page() -> bytes:
    """Return the page: one HTML document that needs nothing else."""
    return resources.files("midstream.hosts").joinpath("inspector.html").read_bytes()
