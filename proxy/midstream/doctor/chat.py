"""What goes wrong in a chat, read from its frames: repeated ids, second ACKs, replay bursts.

Source: cloudflare/agents#1951 and #1984.
"""

from collections import Counter

import msgspec

from midstream.core import raw
from midstream.core.exchange import Transport
from midstream.core.frames import Kind, Side
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_listing import Listing, read_listing
from midstream.doctor.looking import Opened, Sight
from midstream.doctor.report import Finding, Level, Seen
from midstream.doctor.words import mend, shown

REPLAY = "replay-overlap"
STRIP = "strip-compaction"
MAX_IDS = 5
MAX_ID_CHARS = 40
MADE_BY_SERVER = "compaction_"


class RepeatedIds:
    """Lists of messages in which an id stands twice."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._ids: Counter[str] = Counter()

    def see(self, sight: Sight) -> None:
        if sight.exchange.transport is Transport.SSE or not _may_list(sight):
            return
        listing = read_listing(sight.frame)
        if not isinstance(listing, Listing):
            return
        counted = Counter(identifier for identifier in _ids(listing) if identifier)
        repeated = [identifier for identifier, count in counted.items() if count > 1]
        if repeated:
            exchange = sight.exchange
            self._ids.update(repeated)
            self._seen.note(exchange.capture, exchange.number, sight.seq, sight.wall_ns)

    def closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        """Nothing is left to be told."""

    def findings(self) -> list[Finding]:
        if not self._ids:
            return []
        named = [shown(i, MAX_ID_CHARS) for i, _ in self._ids.most_common(MAX_IDS)]
        more = len(self._ids) - len(named)
        is_known = all(i.startswith(MADE_BY_SERVER) for i in self._ids)
        return [
            Finding(
                "duplicate-ids",
                "a list of messages has an id twice",
                Level.FAULT,
                "lists",
                "a page shows the message twice, or one of the two at random",
                ", ".join(named) + (f" and {more} more" if more else ""),
                STRIP if is_known else "",
                mend(STRIP) if is_known else "",
                self._seen,
            )
        ]


def _may_list(sight: Sight) -> bool:
    if sight.frame.kind is not Kind.BODY:
        return True
    return chat.DIALECT.reads(sight.exchange.head)


def _ids(listing: Listing) -> list[str]:
    if listing.is_packed:
        outlines = [listing.read_outline(message) for message in listing.messages]
        return [outline.id for outline in outlines if outline is not None]
    heads = [chat.read_message_head(message) for message in listing.messages]
    return [head.id for head in heads if head is not None]


class SecondAcks:
    """Offers of a stream that a client takes more than once on one socket."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._taken: dict[tuple[int, int], Counter[str]] = {}

    def see(self, sight: Sight) -> None:
        if sight.frame.sender is Side.SERVER:
            return
        message = chat.read(sight.frame)
        if not isinstance(message, chat.ResumeAck):
            return
        exchange = sight.exchange
        taken = self._taken.setdefault((exchange.capture, exchange.number), Counter())
        taken[message.id] += 1
        if taken[message.id] > 1:
            self._seen.note(exchange.capture, exchange.number, sight.seq, sight.wall_ns)

    def closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        self._taken.pop((exchange.capture, exchange.number), None)

    def findings(self) -> list[Finding]:
        if not self._seen.places:
            return []
        return [
            Finding(
                "second-ack",
                "a client takes one offer twice",
                Level.FAULT,
                "ACKs",
                "the server replays the answer once for each ACK, and the page appends both",
                f"on {len(self._seen.places)} sockets",
                REPLAY,
                mend(REPLAY),
                self._seen,
            )
        ]


class Burst(msgspec.Struct):
    """Chunks of a stream that a socket was sent, their bytes, and the text in them."""

    begin_ns: int = 0
    end_ns: int = 0
    chunks: int = 0
    size: int = 0
    chars: int = 0

    def add(self, message: chat.Response, size: int, mono_ns: int) -> None:
        self.begin_ns = self.begin_ns or mono_ns
        self.end_ns = mono_ns
        self.chunks += bool(message.body)
        self.size += size
        self.chars += _chars(message)


class ReplayBursts:
    """Replays after a reconnect, and how much of each the same page had been sent before."""

    def __init__(self) -> None:
        self._again, self._fresh = Seen(), Seen()
        self._bursts: dict[tuple[int, int, str], Burst] = {}
        self._sent: dict[tuple[str, str, str], dict[int, Burst]] = {}
        self._sizes: list[tuple[Burst, int]] = []
        self._first: list[Burst] = []

    def see(self, sight: Sight) -> None:
        frame = sight.frame
        message = None if frame.sender is Side.CLIENT else chat.read(frame)
        if not isinstance(message, chat.Response):
            return
        exchange = sight.exchange
        place = exchange.capture, exchange.number, message.id
        if message.replay:
            self._bursts.setdefault(place, Burst()).add(message, len(frame.wire), sight.mono_ns)
        if place in self._bursts and (not message.replay or message.replayComplete or message.done):
            self._over(exchange, message.id, sight.seq, sight.wall_ns)
        sent = self._sent.setdefault(_stream(exchange, message.id), {})
        # what is replayed counts for a later socket: the page has been sent it then
        sent.setdefault(exchange.number, Burst()).add(message, len(frame.wire), sight.mono_ns)

    def closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        for place in [place for place in self._bursts if place[:2] == _place(exchange)]:
            self._over(exchange, place[2], seq, wall_ns)

    def findings(self) -> list[Finding]:
        found = []
        if self._sizes:
            chars = sum(min(burst.chars, before) for burst, before in self._sizes)
            more = f", {chars:,} characters were there before"
            found.append(_burst(self._again, [burst for burst, _ in self._sizes], more))
        if self._first:
            found.append(_burst(self._fresh, self._first, ""))
        return found

    def _over(self, exchange: Opened, stream: str, seq: int, wall_ns: int) -> None:
        """Judge a burst: the first socket of a page that gets a stream is no reconnect."""
        burst = self._bursts.pop((*_place(exchange), stream))
        sent = self._sent.get(_stream(exchange, stream), {})
        others = [one for number, one in sent.items() if number != exchange.number]
        if not burst.chunks or not (others or exchange.follows):
            return
        exchange.replays.append((burst.begin_ns, burst.end_ns, burst.chunks))
        if others:
            self._sizes.append((burst, max(one.chars for one in others)))
            self._again.note(*_place(exchange), seq, wall_ns)
        else:
            self._first.append(burst)
            self._fresh.note(*_place(exchange), seq, wall_ns)


def _place(exchange: Opened) -> tuple[int, int]:
    return exchange.capture, exchange.number


def _stream(exchange: Opened, stream: str) -> tuple[str, str, str]:
    return f"{exchange.capture} {exchange.key}", exchange.page, stream


def _chars(message: chat.Response) -> int:
    if '"text-delta"' not in message.body and '"reasoning-delta"' not in message.body:
        return 0
    chunk = chat.read_chunk(message) or {}
    return len(raw.text_of(chunk.get("delta")) or "")


def _burst(seen: Seen, bursts: list[Burst], more: str) -> Finding:
    chunks = [burst.chunks for burst in bursts]
    size = sum(burst.size for burst in bursts)
    detail = f"{sum(chunks)} chunks, the largest burst {max(chunks)}, {size:,} bytes{more}"
    if more:
        return Finding(
            "replay-burst",
            "after a reconnect an answer is replayed to a page that has it",
            Level.FAULT,
            "bursts",
            "a page that extends its last message shows the repeated text twice",
            detail,
            REPLAY,
            mend(REPLAY),
            seen,
        )
    return Finding(
        "replay-elsewhere",
        "after a reconnect an answer is replayed to a page of another name (_pk)",
        Level.NOTE,
        "bursts",
        "right for a page that was reloaded; the same page may have taken another name, too",
        detail,
        REPLAY,
        mend(REPLAY),
        seen,
    )
