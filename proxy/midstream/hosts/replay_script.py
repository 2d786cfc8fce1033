"""What has to be known of a capture before it is played: its answers, its timers, its ends."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from midstream.adapters.capture_format import StoredRecord
from midstream.adapters.capture_heads import asked
from midstream.core.chain import Pending
from midstream.core.ports import RecordKind

LATE_NS: Final = 250_000_000
"""How much later than its deadline a recorded timer may have run to be taken for that deadline."""


class Script:
    """The part of a capture that lies ahead. `is_mended`: addons ran while it was made."""

    def __init__(self, records: Iterable[StoredRecord] = ()) -> None:
        self.answers: dict[int, list[Pending]] = {}
        self.timers: dict[int, deque[int]] = {}
        self.last_ns: dict[int, int] = {}
        self.is_mended = False
        for record in records:
            if record.kind is RecordKind.ASK:
                self.answers.setdefault(record.exchange, []).append(asked(record)[0])
            elif record.kind is RecordKind.REPAIR:
                self.timers.setdefault(record.exchange, deque()).append(record.mono_ns)
            self.last_ns[record.exchange] = record.mono_ns
            self.is_mended = self.is_mended or _is_mended(record)

    def claim(self, exchange: int, pending: Pending) -> int | None:
        """Return the number under which the capture will answer an ask, or None."""
        answers = self.answers.get(exchange, [])
        same = [known for known in answers if known.ask == pending.ask]
        found = next((known for known in same if known.number == pending.number), None)
        found = found or next(iter(same), None)
        if found is None:
            return None
        answers.remove(found)
        return found.number

    def passed(self, record: StoredRecord) -> None:
        """Forget what lies behind."""
        if record.kind is RecordKind.REPAIR:
            self.timers[record.exchange].popleft()
        elif record.kind is RecordKind.ASK:
            gone = asked(record)[0]
            known = self.answers.get(record.exchange, [])
            if gone in known:
                known.remove(gone)

    def serves(self, exchange: int, deadline_ns: int) -> bool:
        """Tell whether to leave a deadline to the records.

        Where addons ran, a timer that let anything leave has a record, a little later than the
        deadline.
        """
        ahead = self.timers.get(exchange)
        if self.is_mended and ahead and deadline_ns <= ahead[0] <= deadline_ns + LATE_NS:
            return True
        return self.outlasts(exchange, deadline_ns)

    def outlasts(self, exchange: int, due_ns: int) -> bool:
        """Tell whether the exchange was over so soon that a live timer may have been too late."""
        return self.is_mended and self.last_ns[exchange] <= due_ns + LATE_NS


def _is_mended(record: StoredRecord) -> bool:
    if record.kind in (RecordKind.ASK, RecordKind.REPAIR):
        return True
    return record.sent is not None or bool(record.rules or record.skips)
