"""Takes secrets out of the records of a moment, and encodes them, all together.

Most records are frames of text that left as they came and hold no secret. One search looks for
secrets in all of these, and each is encoded into memory that is used again: that costs a fraction
of redacting and encoding one by one (measured: a third). All others are redacted one by one.
"""

import logging
import time
from collections.abc import Sequence
from typing import Final

from midstream.adapters.capture_format import StoredRecord, encode, encode_passed
from midstream.adapters.capture_redact import redactor
from midstream.adapters.capture_ring import Trail
from midstream.adapters.capture_secrets import holding
from midstream.adapters.capture_selfcheck import SelfCheck
from midstream.config.schema import CaptureTable
from midstream.core.frames import Kind
from midstream.core.ports import Record

logger = logging.getLogger(__name__)

_TEXT: Final = (Kind.SSE, Kind.WS_TEXT)


class Batches:
    """Encodes records as `[capture]` says. `check` knows the secrets that were taken out."""

    def __init__(self, table: CaptureTable) -> None:
        self._redactor = redactor(table)
        self._is_by_shape = table.content == "full" and not table.redact_paths
        self.check: SelfCheck = self._redactor.check
        self._buffer = bytearray()

    def encoded(
        self, records: Sequence[Record], trails: Sequence[Trail]
    ) -> tuple[bytes, list[int]]:
        """Return the bytes of records without secrets, and the indexes of those that are left out.

        They cannot be redacted, or not be encoded.
        """
        offset_ns = time.time_ns() - time.monotonic_ns()
        buffer = self._buffer
        buffer.clear()
        left_out: list[int] = []
        at = 0
        for index in sorted(self._others(records)):
            if at < index:
                routes = [trail.route for trail in trails[at:index]]
                encode_passed(buffer, records[at:index], offset_ns, routes)
            block = self._cleaned(records[index], trails[index], offset_ns)
            buffer += block
            if not block:
                left_out.append(index)
            at = index + 1
        encode_passed(buffer, records[at:], offset_ns, [trail.route for trail in trails[at:]])
        return bytes(buffer), left_out

    def _others(self, records: Sequence[Record]) -> set[int]:
        """Return the indexes of all records but clean frames that left as they came."""
        if not self._is_by_shape:
            return set(range(len(records)))
        others = {
            index
            for index, record in enumerate(records)
            if (frame := record.frame) is None
            or record.sent is not None
            or record.meta
            or record.rules
            or record.skips
            or frame.kind not in _TEXT
        }
        if not others:
            return holding([record.frame.wire for record in records if record.frame])
        rest = [index for index in range(len(records)) if index not in others]
        wires = [frame.wire for index in rest if (frame := records[index].frame)]
        return others.union(rest[at] for at in holding(wires))

    def _cleaned(self, record: Record, trail: Trail, offset_ns: int) -> bytes:
        try:
            clean = self._redactor.record(record)
            return encode(StoredRecord.of(clean, record.mono_ns + offset_ns, trail.route))
        except Exception as error:  # noqa: BLE001 - what is wrong with one stops no other
            kind = type(error).__name__
            logger.warning("a record of kind %s is not captured: %s", record.kind, kind)
            return b""
