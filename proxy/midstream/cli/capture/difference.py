"""A mended frame before and after, so that a person sees what changed."""

import difflib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from midstream.cli.capture.output import printable, styled

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord
    from midstream.core.frames import Frame

CONTEXT_LINES = 2
MAX_LINES = 400
MAX_COMPARED_LINES = 2_000
"""Of each side, where they begin to differ; comparing takes the square of that at worst."""

NESTED = ("body",)
"""Members whose text is JSON of its own in the dialects that are mended."""


def before_and_after(record: "StoredRecord") -> Iterator[str]:
    """Return the lines that differ between what came and what left instead."""
    received = record.received
    before = [] if received is None else _lines(received)
    after = [line for frame in record.left for line in _lines(frame)]
    count = 0
    before, after, is_cut = _differing(before, after)
    for line in difflib.unified_diff(before, after, lineterm="", n=CONTEXT_LINES):
        if line.startswith(("---", "+++", "@@")):
            continue
        count += 1
        if count > MAX_LINES:
            yield "      …"
            return
        style = {"-": "red", "+": "green"}.get(line[:1])
        line = printable(line)
        yield f"      {styled(line, style) if style else line}"
    if is_cut:
        yield "      …"
    elif not count:
        yield "      (the same text; the bytes differ)"


def _differing(before: list[str], after: list[str]) -> tuple[list[str], list[str], bool]:
    """Return both from shortly before they differ, as many lines as are compared, and if cut."""
    pairs = enumerate(zip(before, after, strict=False))
    first = next((at for at, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = max(first - CONTEXT_LINES, 0)
    stop = start + MAX_COMPARED_LINES
    is_cut = max(len(before), len(after)) > stop
    return before[start:stop], after[start:stop], is_cut


def _lines(frame: "Frame") -> list[str]:
    from midstream.core.sse import data_of

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
