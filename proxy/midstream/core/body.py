"""One HTTP body, collected whole within a limit."""

from midstream.core.errors import FrameTooLarge


class BodyCollector:
    """Keeps the chunks of a body until it is complete or too large.

    Over the limit every further `receive` raises; the chunk it was given is kept all the same, so
    that `drain` has everything that was not handed out yet.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._chunks: list[bytes] = []
        self._size = 0

    def receive(self, data: bytes) -> None:
        """Take a chunk.

        Raises:
            FrameTooLarge: the body is over the limit.
        """
        self._chunks.append(data)
        self._size += len(data)
        if self._size > self._max_bytes:
            raise FrameTooLarge(f"body is at least {self._size} bytes, limit is {self._max_bytes}")

    def drain(self) -> bytes:
        """Take what has been collected and not been taken."""
        collected = b"".join(self._chunks)
        self._chunks.clear()
        return collected
