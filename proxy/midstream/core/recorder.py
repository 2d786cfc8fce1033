"""Writes the records of one exchange to the sink, and keeps a failing sink away from the stream."""

import logging

from midstream.core import metrics
from midstream.core.addon import Facts
from midstream.core.chain import Chain
from midstream.core.exchange import Exchange
from midstream.core.frames import Frame, Side
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind, Sink

logger = logging.getLogger(__name__)

type Meta = dict[str, object]
type Words = tuple[tuple[str, str], ...]

MAX_FACT_CHARS = 80
"""Of one text among the facts of a verdict: an id comes from outside, and may be of any length."""


class Recorder:
    """Numbers the records of an exchange, and adds what its addons counted since the last one."""

    def __init__(
        self, exchange: Exchange, chain: Chain | None, sink: Sink | None, counts: Counts
    ) -> None:
        self._exchange = exchange
        self._chain = chain
        self._sink = sink
        self._counts = counts
        self._seq = 0
        self._failed = False

    def open(self, now_ns: int) -> None:
        """Record the request head."""
        exchange, head = self._exchange, self._exchange.head
        meta: Meta = {
            "route": exchange.route,
            "upstream": exchange.upstream,
            "origin": exchange.origin,
            "method": head.method,
            "target": head.target,
            "headers": head.headers,
            "addons": [] if self._chain is None else self._chain.modes,
        }
        self.write(RecordKind.OPEN, now_ns, meta=meta)

    def received(self, frame: Frame, out: list[Frame], now_ns: int) -> None:
        """Record a received frame and what left for it: None where it left as it came."""
        if self._sink is None:
            self._forget()
            return
        sent = None if len(out) == 1 and out[0] is frame else tuple(out)
        self.write(RecordKind.FRAME, now_ns, frame.sender, frame, sent)

    def left(self, out: list[Frame], now_ns: int) -> None:
        """Record frames that left, or words that were counted, without a frame at hand."""
        if out or (self._chain is not None and (self._chain.rules or self._chain.skips)):
            self.write(RecordKind.REPAIR, now_ns, sent=tuple(out))

    def write(
        self,
        kind: RecordKind,
        now_ns: int,
        side: Side | None = None,
        frame: Frame | None = None,
        sent: tuple[Frame, ...] | None = None,
        meta: Meta | None = None,
    ) -> None:
        """Write one record, if there is a sink."""
        rules, skips, why = self._forget()
        if self._sink is None:
            return
        self._seq += 1
        number, meta = self._exchange.number, meta or {}
        if why:
            meta = {**meta, "why": why}
        record = Record(now_ns, number, self._seq, kind, side, frame, sent, rules, skips, meta)
        try:
            self._sink.write(record)
        except Exception as error:  # noqa: BLE001 - a sink stops no stream
            self._counts.add(metrics.CAPTURE_DROPPED, ("unwritable",))
            if not self._failed:
                logger.error("a sink failed: %s", type(error).__name__)
            self._failed = True

    def _forget(self) -> tuple[Words, Words, list[list[object]]]:
        """Take the words that the addons counted since the last record, and their facts."""
        chain = self._chain
        if chain is None or not (chain.rules or chain.skips):
            return (), (), []
        why: list[list[object]] = []
        if chain.why and self._sink is not None:
            why = [[addon, word, _short(facts)] for addon, word, facts in chain.why]
        words = tuple(chain.rules), tuple(chain.skips), why
        chain.rules.clear()
        chain.skips.clear()
        chain.why.clear()
        return words


def _short(facts: Facts) -> dict[str, object]:
    """Return facts that any sink can store: texts are short, half a surrogate pair is escaped."""
    return {
        name: value[:MAX_FACT_CHARS].encode(errors="backslashreplace").decode()
        if isinstance(value, str)
        else value
        for name, value in facts.items()
    }
