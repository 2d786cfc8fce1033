"""Cleans records of secrets, many at a time.

Most records are frames of text that hold no secret. One search of all of them together costs a
fraction of a search of each, and only those that hold one are redacted one by one.
"""

from collections.abc import Iterable, Sequence

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

    def unclean(self, records: Sequence[Record]) -> Iterable[int]:
        """Return the indexes of the records that `record` may change, in order."""
        if not self._is_by_shape:
            return range(len(records))
        unclean = [
            index
            for index, record in enumerate(records)
            if (frame := record.frame) is None
            or record.meta
            or record.sent is not None
            or frame.kind not in _TEXT
        ]
        if not unclean:
            return sorted(holding([record.frame.wire for record in records if record.frame]))
        rest = sorted(set(range(len(records))).difference(unclean))
        frames = [records[index].frame for index in rest]
        found = holding([frame.wire for frame in frames if frame is not None])
        return sorted([*unclean, *(rest[at] for at in found)])
