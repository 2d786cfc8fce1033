"""Cleans records of secrets, many at a time.

Most records are frames of text that left as they came and hold no secret. One search of all of
them together costs a fraction of a search of each, and only those that hold one are redacted.
"""

from collections.abc import Sequence

from midstream.adapters.capture_redact import redactor
from midstream.adapters.capture_secrets import holding
from midstream.adapters.capture_selfcheck import SelfCheck
from midstream.config.schema import CaptureTable
from midstream.core.frames import Kind
from midstream.core.ports import Record

_TEXT = (Kind.SSE, Kind.WS_TEXT)


class Cleaning:
    """Cleans records as `[capture]` says. `check` knows the last secrets that were taken out."""

    def __init__(self, table: CaptureTable) -> None:
        self._redactor = redactor(table)
        self._is_by_shape = table.content == "full" and not table.redact_paths
        self.record = self._redactor.record
        self.check: SelfCheck = self._redactor.check

    def suspects(self, records: Sequence[Record]) -> set[int]:
        """Return the indexes of the records that are not surely clean frames that just passed."""
        others = {
            index
            for index, record in enumerate(records)
            if (frame := record.frame) is None
            or record.sent is not None
            or record.meta
            or record.rules
            or record.skips
            or not frame.wire
            or frame.kind not in _TEXT
        }
        if not self._is_by_shape:
            return set(range(len(records)))
        if not others:
            return holding([record.frame.wire for record in records if record.frame])
        rest = [index for index in range(len(records)) if index not in others]
        wires = [frame.wire for index in rest if (frame := records[index].frame)]
        return others.union(rest[at] for at in holding(wires))
