"""What the repair remembers: of one socket, and of the chat that all sockets share."""

from typing import Any

import msgspec

from midstream.core import raw
from midstream.core.frames import Frame
from midstream.dialects.cloudflare_chat import ToolResult
from midstream.dialects.cloudflare_transcript import Place, Transcript
from midstream_addons.replay_overlap.offered import Mended, Offer

MAX_RESULTS = 256
MAX_PAGES = 1024
MAX_RESULT_BYTES = 1 << 20
MAX_STREAMS = 16
"""How many streams of one socket are remembered: one runs at a time, so these are the last ones."""
MAX_MENDED = 2
"""The same for those that it was offered: each holds its message."""


def keep_last(known: dict[str, Any], count: int) -> None:
    while len(known) > count:
        del known[next(iter(known))]


class Chat(msgspec.Struct):
    """The chat: its transcript, and what the client's tools have answered, as members of parts.

    `waiting_pages` are the pages (by `_pk`) that answered a tool and have not yet attached to the
    continuation it starts: their AI SDK has already taken its snapshot. `is_unfinished` tells that
    a socket broke while a stream was running on it, or while a reset stood: a page may show less
    than the server has.
    """

    transcript: Transcript
    results: dict[str, dict[str, bytes]] = msgspec.field(default_factory=dict)
    pages: dict[str, None] = msgspec.field(default_factory=dict)
    waiting_pages: dict[str, None] = msgspec.field(default_factory=dict)
    sockets: int = 0
    generation: int = 0
    is_unfinished: bool = False

    def forget(self) -> None:
        """Forget everything of before: the chat was emptied."""
        self.transcript.clear()
        self.results.clear()
        self.waiting_pages.clear()
        self.generation += 1
        self.is_unfinished = False

    def note_page(self, page: str) -> None:
        self.pages[page] = None
        keep_last(self.pages, MAX_PAGES)

    def note_waiting(self, page: str) -> None:
        self.waiting_pages[page] = None
        keep_last(self.waiting_pages, MAX_PAGES)

    def note_result(self, result: ToolResult) -> None:
        self.results[result.toolCallId] = {
            "state": raw.quote(result.state),
            "output": bytes(result.output),
            "errorText": raw.quote(result.errorText),
        }
        while len(self.results) > MAX_RESULTS or self.result_bytes > MAX_RESULT_BYTES:
            del self.results[next(iter(self.results))]

    @property
    def result_bytes(self) -> int:
        return sum(len(outcome["output"]) for outcome in self.results.values())


class Socket(msgspec.Struct):
    """One WebSocket of a page.

    `generation` tells which life of the chat its memory is of. `ended_ns` is when a stream ended on
    it, the client silent since.
    """

    page: str = ""
    generation: int = 0
    is_again: bool = False
    is_known_page: bool = False
    has_asked: bool = False
    probe: bytes | None = None
    has_answered_tool: bool = False
    chats: int = 0
    places: dict[str, Place] = msgspec.field(default_factory=dict)
    acked: set[str] = msgspec.field(default_factory=set)
    mended: dict[str, Mended] = msgspec.field(default_factory=dict)
    offers: int = 0
    offer: Offer | None = None
    ended_ns: int | None = None
    ended_stream: str = ""
    is_healing: bool = False
    heal_fetches: int = 0
    healed: list[bytes] | None = None
    closing_list: Frame | None = None
    relist_chats: int = 0

    def note_mended(self, stream: str, mended: Mended) -> None:
        self.mended.pop(stream, None)
        self.mended[stream] = mended
        keep_last(self.mended, MAX_MENDED)

    def bound_places(self) -> None:
        """Remember only the last of the streams whose end never came."""
        keep_last(self.places, MAX_STREAMS)

    def forget(self, generation: int) -> None:
        """Forget everything of before: the chat was emptied."""
        self.generation = generation
        self.offer = self.closing_list = self.healed = None
        self.is_healing = False
        self.mended.clear()
        self.places.clear()
        self.acked.clear()
