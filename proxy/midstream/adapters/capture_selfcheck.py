"""Makes sure that no secret is written that was taken out of another place.

The secrets are in memory only, a bounded number of the latest ones. The writer asks about whole
batches, in its own thread: one search for all of them at once.
"""

from collections import OrderedDict
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation

from midstream.adapters.capture_shapes import Span, is_credential

MAX_SECRETS: Final = 256
MAX_SECRET_BYTES: Final = 512
"""Of a longer one, this much of its end is looked for."""
MIN_SECRET_BYTES: Final = 12
"""A shorter one may stand elsewhere by chance."""


class SelfCheck:
    """Remembers the latest secrets, and looks for them in what is about to be written."""

    def __init__(self) -> None:
        self._secrets: OrderedDict[bytes, None] = OrderedDict()
        self.latest: tuple[bytes, ...] = ()
        """Replaced as a whole by the thread that remembers, read by the one that writes."""
        self._compiled: tuple[bytes, ...] = ()
        self._finder = BytesAhoCorasick([])

    def remember(self, secret: bytes) -> None:
        """Keep a secret in mind, unless it is too short or too plain to tell it from other text."""
        secret = secret[-MAX_SECRET_BYTES:]
        if secret in self._secrets or len(secret) < MIN_SECRET_BYTES or not is_credential(secret):
            return
        self._secrets[secret] = None
        if len(self._secrets) > MAX_SECRETS:
            self._secrets.popitem(last=False)
        self.latest = tuple(self._secrets)

    def is_clean(self, encoded: bytes) -> bool:
        """Tell whether none of the latest secrets stands in what is about to be written."""
        return not (self.latest and self._matches(encoded))

    def spans(self, data: bytes) -> list[Span]:
        """Return where the latest secrets stand in some bytes."""
        if not self.latest:
            return []
        return [(start, end, "known") for _, start, end in self._matches(data)]

    def _matches(self, data: bytes) -> list[tuple[int, int, int]]:
        latest = self.latest
        if latest is not self._compiled:
            self._finder = BytesAhoCorasick(
                list(latest), implementation=Implementation.NoncontiguousNFA
            )
            self._compiled = latest
        return self._finder.find_matches_as_indexes(data)
