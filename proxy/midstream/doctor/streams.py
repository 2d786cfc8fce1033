"""What goes wrong with any stream: it is broken off, falls silent, or lacks in the capture."""

from collections import Counter
from typing import Final

from midstream.adapters.capture_format import StoredRecord
from midstream.core.exchange import Transport
from midstream.core.frames import Kind, Side
from midstream.doctor.looking import Opened, Sight
from midstream.doctor.report import Finding, Level, Seen
from midstream.doctor.words import shown

STALL_SECONDS: Final = 30
"""How long an event stream is silent when it counts as stalled, as the gateway counts it."""

NS_PER_S: Final = 1_000_000_000


class Broken:
    """WebSockets and event streams that were broken off."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._codes: Counter[str] = Counter()

    def see(self, sight: Sight) -> None:
        """A frame tells nothing of an end."""

    def closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        if exchange.ending.startswith("aborted"):
            self._codes[exchange.ending.removeprefix("aborted").strip() or "without a code"] += 1
            self._seen.note(exchange.capture, exchange.number, seq, wall_ns)

    def findings(self) -> list[Finding]:
        if not self._codes:
            return []
        detail = ", ".join(f"{shown(code, 40)}: {n}" for code, n in self._codes.most_common(5))
        return [_note("broken-off", "exchanges were broken off", "exchanges", detail, self._seen)]


class Stalled:
    """Event streams that fell silent for 30 s; a keepalive comment is no sign of life."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._heard: dict[tuple[int, int], int] = {}
        self._longest_ns = 0

    def see(self, sight: Sight) -> None:
        exchange, frame = sight.exchange, sight.frame
        if frame.kind is Kind.SSE and frame.sender is Side.SERVER and frame.payload:
            self._check(exchange, sight.mono_ns, sight.seq, sight.wall_ns)
            self._heard[exchange.capture, exchange.number] = sight.mono_ns

    def closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        if exchange.end_ns is not None:
            self._check(exchange, exchange.end_ns, seq, wall_ns)
        self._heard.pop((exchange.capture, exchange.number), None)

    def findings(self) -> list[Finding]:
        if not self._seen.places:
            return []
        detail = f"the longest for {self._longest_ns / NS_PER_S:,.0f} s"
        return [_note("stalled", "event streams fell silent", "silences", detail, self._seen)]

    def _check(self, exchange: Opened, now_ns: int, seq: int, wall_ns: int) -> None:
        if exchange.transport is not Transport.SSE:
            return
        since = self._heard.get((exchange.capture, exchange.number), exchange.begin_ns)
        if now_ns - since >= STALL_SECONDS * NS_PER_S:
            self._longest_ns = max(self._longest_ns, now_ns - since)
            self._seen.note(exchange.capture, exchange.number, seq, wall_ns)


class Gaps:
    """Records that the capture lacks. What follows a gap may be judged without its beginning."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._reasons: Counter[str] = Counter()

    def lacks(self, capture: int, record: StoredRecord) -> None:
        """Take a record that tells of a gap."""
        count = record.meta.get("count", 1)
        count = count if isinstance(count, int) and count > 0 else 1
        self._reasons[str(record.meta.get("reason", ""))] += count
        self._seen.note(capture, record.exchange, record.seq, record.wall_ns, count)

    def findings(self) -> list[Finding]:
        if not self._reasons:
            return []
        detail = ", ".join(
            f"{shown(r, 40) or 'lost'}: {n}" for r, n in self._reasons.most_common(5)
        )
        return [_note("gap", "the capture lacks records", "records", detail, self._seen)]


def _note(name: str, title: str, unit: str, detail: str, seen: Seen) -> Finding:
    meanings = {
        "broken-off": "a connection was lost; what was under way is cut",
        "stalled": "the server or the model behind it said nothing for 30 s or longer",
        "gap": "the recorder was overrun; faults in the gap are not seen",
    }
    return Finding(name, title, Level.NOTE, unit, meanings[name], detail, "", "", seen)
