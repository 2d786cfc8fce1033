"""Puts tokens in the place of JSON values, also inside JSON strings, and keeps every other byte."""

from midstream.core.json_scan import Text, Value


class Splices:
    """Collects what goes where in one JSON document."""

    def __init__(self, document: bytes) -> None:
        self.text = Text(document)
        self._splices: list[tuple[int, int, bytes]] = []

    def put(self, value: Value, token: str) -> None:
        """Put a string in the place of a value; `token` needs no escapes. No two may overlap."""
        place = value.text.place(value.start, value.end, b'"' + token.encode() + b'"')
        self._splices.append(place)

    @property
    def count(self) -> int:
        return len(self._splices)

    def result(self) -> bytes:
        """Return the document with everything in its place."""
        document = self.text.content
        pieces: list[bytes] = []
        at = 0
        for start, end, text in sorted(self._splices):
            pieces += (document[at:start], text)
            at = end
        pieces.append(document[at:])
        return b"".join(pieces)
