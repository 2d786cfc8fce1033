"""Server-sent events as bytes: cut a stream into events, read one, write one.

- An event is what the grammar calls one: any number of comment and field lines, then one empty
  line. So a block of comments is an event, and an empty line too many is an event without lines.
- The pieces put together are the stream: line endings, the byte order mark and unknown fields
  leave as they came. Where the cuts are depends on the bytes alone, not on how they were chunked.
- LF LF and CRLF CRLF end an event at their last byte. A CR at the end of what has arrived may be
  half a CRLF, so an event that ends in a bare CR waits for one byte more.
- Each byte is searched a bounded number of times: 1 MiB in 1460-byte chunks took 1154 ms with a
  splitter that searched from the start again, 13 ms with the remembered offset.

Source: WHATWG HTML 9.2.5 (grammar) and 9.2.6 (interpreting an event stream).
"""

import re

from midstream.core.errors import FrameTooLarge

BOM = b"\xef\xbb\xbf"

# Possessive, so that the CR of a CRLF never counts as a line ending of its own.
_LINE_END = re.compile(rb"\n|\r\n|\r(?!\Z)")
_EVENT_END = re.compile(rb"(?:\n|\r\n?+)(?:\n|\r\n|\r(?!\Z))")
_LONGEST_END = 4
_BREAK = re.compile(rb"\r\n|\n|\r")
_CR_LF = b"\r\n"


class SseSplitter:
    """Cuts a byte stream into events.

    When an event exceeds the limit, `receive` raises, and so does every later call. Nothing is
    lost: the events before it, which that call did not return, are in `completed()`, and `flush()`
    hands out everything that was not taken, in order.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._pending = bytearray()
        self._completed: list[bytes] = []
        self._at_start = True
        self._too_large = ""

    @property
    def pending_bytes(self) -> int:
        """How many bytes have come in and not gone out."""
        return len(self._pending) + sum(map(len, self._completed))

    def receive(self, data: bytes) -> list[bytes]:
        """Take a chunk and return the events it completes, as exact wire bytes.

        Raises:
            FrameTooLarge: an event is over the limit, finished or not.
        """
        if self._too_large:
            self._pending += data
            raise FrameTooLarge(self._too_large)
        searched = len(self._pending)
        if searched:
            self._pending += data
            events, rest = self._split(self._pending, searched)
            del self._pending[:rest]
        else:
            events, rest = self._split(data, 0)
            self._pending += data[rest:]
        if self._too_large or len(self._pending) > self._max_event_bytes:
            self._completed = events
            self._too_large = self._too_large or self._complaint(len(self._pending))
            raise FrameTooLarge(self._too_large)
        return events

    def completed(self) -> list[bytes]:
        """Take the events that were complete when `receive` raised."""
        events, self._completed = self._completed, []
        return events

    def flush(self) -> bytes:
        """Take all that is left, as it came: an unfinished event at the end of the stream."""
        left = b"".join(self.completed()) + self._pending
        self._pending.clear()
        return left

    def _split(self, buffer: bytes | bytearray, searched: int) -> tuple[list[bytes], int]:
        """Return the complete events of a buffer and the offset behind them."""
        events: list[bytes] = []
        start = 0
        search_from = max(searched - _LONGEST_END + 1, 0)
        while start < len(buffer):
            first_line = start + (len(BOM) if self._at_start and buffer.startswith(BOM) else 0)
            end = _LINE_END.match(buffer, first_line) or _EVENT_END.search(buffer, search_from)
            if end is None:
                break
            if end.end() - start > self._max_event_bytes:
                self._too_large = self._complaint(end.end() - start)
                break
            events.append(bytes(buffer[start : end.end()]))
            start = search_from = end.end()
            self._at_start = False
        return events, start

    def _complaint(self, size: int) -> str:
        return f"SSE event is {size} bytes, limit is {self._max_event_bytes}"


def fields_of(wire: bytes) -> list[tuple[bytes, bytes]]:
    """List the fields of an event in order, comments left out."""
    fields = []
    for line in wire.removeprefix(BOM).splitlines():
        name, _, value = line.partition(b":")
        if name:
            fields.append((name, value.removeprefix(b" ")))
    return fields


def field_of(wire: bytes, name: bytes) -> bytes | None:
    """Return the value of a field; the last one counts, as with `event`, `id` and `retry`."""
    found = None
    for field, value in fields_of(wire):
        if field == name:
            found = value
    return found


def data_of(wire: bytes) -> bytes:
    """Return the payload of an event: its data lines, joined by LF."""
    return b"\n".join(
        [
            line[6:] if line.startswith(b"data: ") else line[5:]
            for line in wire.removeprefix(BOM).splitlines()
            if _is_data(line)
        ]
    )


def with_data(wire: bytes, data: bytes) -> bytes:
    """Return the event with other data; every line that is not data keeps its bytes.

    The new lines stand where the first data line stood and have its spelling and line ending. An
    event without data gets them in front of its empty line.
    """
    mark = BOM if wire.startswith(BOM) else b""
    lines = wire[len(mark) :].splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if _is_data(line.rstrip(_CR_LF))]
    if places:
        at, model = places[0], lines[places[0]]
    else:
        at = len(lines) - bool(lines and not lines[-1].strip(_CR_LF))
        model = b"data: " + (_ending(lines[0]) if lines else b"")
    spaced = model.startswith(b"data: ") or not model.startswith(b"data:")
    new = _data_lines(data, _ending(model) or b"\n", spaced=spaced)
    replaced = set(places)
    rest = [lines[i] for i in range(at, len(lines)) if i not in replaced]
    return mark + _joined([*lines[:at], *new, *rest])


def event(data: bytes, *, event: str | None = None, id: str | None = None) -> bytes:
    """Build an event.

    Raises:
        ValueError: a field value with a line break, which would begin another field.
    """
    lines = []
    for name, value in ((b"event: ", event), (b"id: ", id)):
        if value is not None:
            if "\n" in value or "\r" in value:
                raise ValueError(f"SSE field with a line break: {value!r}")
            lines.append(name + value.encode() + b"\n")
    return b"".join([*lines, *_data_lines(data, b"\n"), b"\n"])


def _is_data(line: bytes) -> bool:
    return line.startswith(b"data:") or line == b"data"


def _ending(line: bytes) -> bytes:
    return line[len(line.rstrip(_CR_LF)) :]


def _data_lines(data: bytes, ending: bytes, *, spaced: bool = True) -> list[bytes]:
    lines = _BREAK.split(data)
    # One space behind the colon is no part of the value, so a value that begins with one needs two.
    spaced = spaced or any(line.startswith(b" ") for line in lines)
    return [(b"data: " if spaced else b"data:") + line + ending for line in lines]


def _joined(lines: list[bytes]) -> bytes:
    """Join lines; a CR and an LF that were apart may now meet, and would be one line ending."""
    for i in range(len(lines) - 1):
        after = b"\n" if lines[i + 1].startswith(b"\n") else b""
        if not _ending(lines[i]) or (after and lines[i].endswith(b"\r")):
            lines[i] += b"\n"
    return b"".join(lines)
