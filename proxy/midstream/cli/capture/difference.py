"""A mended frame before and after, so that a person sees what changed."""

import difflib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from midstream.cli.capture.output import styled
from midstream.core.sse import data_of

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord
    from midstream.core.frames import Frame

CONTEXT_LINES = 2
MAX_LINES = 400
NESTED = ("body",)
"""Members whose text is JSON of its own in the dialects that are mended."""


def before_and_after(record: "StoredRecord") -> Iterator[str]:
    """Return the lines that differ between what came and what left instead."""
    received = record.received
    before = [] if received is None else _lines(received)
    after = [line for frame in record.left for line in _lines(frame)]
    count = 0
    for line in difflib.unified_diff(before, after, lineterm="", n=CONTEXT_LINES):
        if line.startswith(("---", "+++", "@@")):
            continue
        count += 1
        if count > MAX_LINES:
            yield "      …"
            return
        style = {"-": "red", "+": "green"}.get(line[:1])
        yield f"      {styled(line, style) if style else line}"
    if not count:
        yield "      (the same text; the bytes differ)"


def _lines(frame: "Frame") -> list[str]:
    wire = data_of(frame.wire) if frame.kind.value == "sse" else frame.wire
    try:
        document = json.loads(wire)
    except (ValueError, RecursionError):
        return wire.decode("utf-8", "backslashreplace").splitlines() or [""]
    return json.dumps(_opened(document), indent=1, ensure_ascii=False).splitlines()


def _opened(value: object) -> object:
    """Return JSON whose nested JSON is shown as such."""
    if isinstance(value, list):
        return [_opened(item) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, object] = {}
    for key, member in value.items():
        if key in NESTED and isinstance(member, str) and member[:1] in "{[":
            try:
                found[key] = _opened(json.loads(member))
                continue
            except (ValueError, RecursionError):
                pass
        found[key] = _opened(member)
    return found
