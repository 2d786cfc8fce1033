"""The table of history pairs: how many could be compared, and how many were inverted.

A pair is an assistant text and a later client call of its turn; it is inverted where a request has
the call first. The counts are those of `midstream_history_pairs_total`, by conversation.
"""

import msgspec

from midstream.core import metrics
from midstream.doctor.observe import Note
from midstream.doctor.report import Finding, Level, PairRow, Seen, Talk
from midstream.doctor.words import mend

HISTORY = "history-order"


class Request(msgspec.Struct):
    """The pairs of one request; `after` are those that stay inverted when it is mended."""

    capture: int
    exchange: int
    comparable: int = 0
    inverted: int = 0
    after: int = 0


class PairTable:
    """The requests in which pairs could be compared."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._seen = Seen()

    def note(self, capture: int, exchange: int, seq: int, wall_ns: int, notes: list[Note]) -> None:
        """Take what was counted for one request."""
        counted = {
            note.words[0]: note.amount for note in notes if note.metric is metrics.HISTORY_PAIRS
        }
        if not counted:
            return
        inverted = counted.get("inverted_in", 0)
        self._requests.append(
            Request(
                capture,
                exchange,
                counted.get("comparable", 0),
                inverted,
                counted.get("inverted_out", 0),
            )
        )
        if inverted:
            self._seen.note(capture, exchange, seq, wall_ns, inverted)

    def rows(self, talks: list[Talk]) -> list[PairRow]:
        """Return one row for each conversation that has comparable pairs."""
        owners = {
            (talk.capture, exchange.number): (number, talk)
            for number, talk in enumerate(talks)
            for exchange in talk.exchanges
        }
        rows: dict[int, PairRow] = {}
        for request in self._requests:
            number, talk = owners[request.capture, request.exchange]
            row = rows.setdefault(number, PairRow(talk.capture, talk.title))
            row.requests += 1
            row.comparable += request.comparable
            row.inverted += request.inverted
            row.after += request.after
            if request.comparable > row.largest:
                row.largest, row.largest_inverted = request.comparable, request.inverted
        return list(rows.values())

    def findings(self) -> list[Finding]:
        comparable = sum(request.comparable for request in self._requests)
        inverted = sum(request.inverted for request in self._requests)
        if not inverted:
            return []
        return [
            Finding(
                "inverted-history",
                "requests to a model have a text behind a call that came after it",
                Level.FAULT,
                "pairs",
                "the model reads a history that never happened",
                f"{inverted:,} of {comparable:,} comparable pairs",
                HISTORY,
                mend(HISTORY),
                self._seen,
            )
        ]
