"""What the wire has told about one chat: its messages, and the streams that extend them.

The transcript is shared by all sockets of a chat. A stream is folded once, however many sockets
carry it: each socket knows how far it is in the stream (`Place`), and only what is beyond that of
the socket that is furthest is applied. When a stream starts, the message it extends is remembered
as it was: the baseline, from which a replay of the whole stream gives the true message again.

Rules of this file:
- The baseline of a stream never changes, but for the outcome of a tool that was waiting in it.
- A transcript that may have missed something says so (`is_known`, `Stream.exact`) and is not used.
- Nothing here decides what is sent.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from midstream.core import raw
from midstream.dialects import cloudflare_chat as chat
from midstream.dialects.cloudflare_compaction import PREFIX
from midstream.dialects.ui_stream import (
    Chunk,
    Fold,
    Part,
    chunk_type,
    copies,
    length,
    merge,
    read_part,
    without_head,
)

STORED_CHUNK_BYTES: Final = 1_800_000
"""A larger chunk is broadcast but not stored: no replay has it (resumable-stream.ts:357)."""
MAX_DONE_STREAMS: Final = 32


class Message(msgspec.Struct):
    """One message as last seen, as raw JSON."""

    id: str
    role: str
    document: bytes


class Snapshot(msgspec.Struct):
    """A message taken apart: its parts, and its other members raw."""

    fields: dict[str, bytes]
    parts: list[Part]

    def json(self, parts: Iterable[Part], metadata: bytes | None = None) -> bytes:
        """Return this message with other parts, and with metadata merged in."""
        fields = dict(self.fields)
        if metadata is not None:
            fields["metadata"] = merge(fields.get("metadata"), metadata)
        return raw.document({**fields, "parts": raw.array([part.json() for part in parts])})


def take_apart(document: bytes) -> Snapshot:
    """Read a message down to its parts. Raises raw.Malformed."""
    fields = raw.members(document)
    parts = raw.elements(fields.pop("parts", b"[]"))
    return Snapshot(fields, [read_part(part) for part in parts])


class Unstored(msgspec.Struct):
    """A chunk that no replay has: the frame as it came live, and how much came before it."""

    position: int
    wire: bytes
    chunk: Chunk


class Place(msgspec.Struct):
    """How far a socket is in a stream: `length` of all chunks since its `start`.

    `unstored` is how many of the chunks that no replay has and that came at this length it has got.
    """

    length: int = 0
    unstored: int = 0


class Stream(msgspec.Struct):
    """A running stream: what it extends, and what has become of it so far.

    `applied` is the length of what was applied to the fold, `size_bytes` that of its JSON.
    `is_over` tells that its end was seen, though chunks may follow. `is_listed` tells that the
    server has sent its list of messages since the last chunk: that list then holds the outcome,
    which some servers file under another message than the client shows.
    """

    id: str
    is_continuation: bool
    target: str
    base: Snapshot
    fold: Fold
    applied: int = 0
    size_bytes: int = 0
    is_over: bool = False
    is_listed: bool = False
    unstored: list[Unstored] = msgspec.field(default_factory=list)

    @property
    def exact(self) -> bool:
        return self.fold.exact

    def json(self) -> bytes:
        """Return the target as it is now."""
        return self.base.json(self.fold.parts, self.fold.metadata)


class Transcript(msgspec.Struct):
    """The messages of a chat and its running streams. `max_bytes` bounds what is kept of either."""

    max_bytes: int = 8 << 20
    messages: list[Message] = msgspec.field(default_factory=list)
    streams: dict[str, Stream] = msgspec.field(default_factory=dict)
    done: dict[str, None] = msgspec.field(default_factory=dict)
    is_known: bool = False
    size_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """About how many bytes are kept."""
        parts = (p for s in self.streams.values() for f in (s.base, s.fold) for p in f.parts)
        return self.size_bytes + sum(part.size_bytes for part in parts)

    # --- whole messages ---------------------------------------------------------------------------

    def set_list(self, documents: list[bytes], *, from_server: bool) -> None:
        """Take a list of all messages. A running stream's target stays what it has grown to."""
        messages = []
        for document in documents:
            head = chat.read_message_head(document)
            if head is None:
                self.forget_messages()
                return
            messages.append(Message(head.id, head.role, document))
        if not from_server:
            self._put_back_summaries(messages)
        self.size_bytes = sum(len(message.document) for message in messages)
        if self.size_bytes > self.max_bytes:
            self.forget_messages()
            return
        self.messages, self.is_known = messages, True
        for stream in self.streams.values():
            stream.is_listed = from_server
            if self.find(stream.target) is None:
                self.messages.append(Message(stream.target, "assistant", stream.json()))

    def _put_back_summaries(self, messages: list[Message]) -> None:
        """Put back the summaries that were cut from an upload: the client still shows them."""
        there = {message.id: index for index, message in enumerate(messages)}
        missing = [
            (there.get(before.id if before else "", -1), message)
            for before, message in zip([None, *self.messages], self.messages, strict=False)
            if message.id.startswith(PREFIX) and message.id not in there
        ]
        for index, message in reversed(missing):
            messages.insert(index + 1, message)

    def update(self, document: bytes) -> None:
        """Take one message that replaces the one with its id."""
        head = chat.read_message_head(document)
        if head is None:
            return
        running = next((s for s in self.streams.values() if s.target == head.id), None)
        if running is not None:
            self._take_outcomes(running, document)
            return
        message = self.find(head.id)
        if message is not None:
            self.size_bytes += len(document) - len(message.document)
            message.document = document

    def forget_messages(self) -> None:
        """Forget the messages: they are too large, or not what a chat's messages look like."""
        self.messages, self.is_known, self.size_bytes = [], False, 0

    def clear(self) -> None:
        """Forget everything: the chat was emptied."""
        self.messages, self.size_bytes = [], 0
        self.done |= dict.fromkeys(self.streams)
        self.streams.clear()

    def find(self, identifier: str) -> Message | None:
        return next((m for m in self.messages if m.id == identifier), None)

    def last_assistant(self) -> Message | None:
        return next((m for m in reversed(self.messages) if m.role == "assistant"), None)

    def current(self, message: Message) -> bytes:
        """Return a message as it is now, a running stream's growth included."""
        for stream in self.streams.values():
            if stream.target == message.id and not stream.is_listed:
                return stream.json()
        return message.document

    @staticmethod
    def _take_outcomes(stream: Stream, document: bytes) -> None:
        """Give the tools in the baseline the outcome the server has noted for them."""
        try:
            update = take_apart(document)
        except raw.Malformed:
            return
        for part in update.parts:
            for known in (stream.base.parts, stream.fold.parts):
                for other in known:
                    if part.call and other.call == part.call:
                        other.fields = dict(part.fields)

    # --- streams ----------------------------------------------------------------------------------

    def respond(self, response: chat.Response, wire: bytes, places: dict[str, Place]) -> None:
        """Take the chunk of a response that a socket got; `places` are that socket's.

        The end of a stream is taken apart from it, by `end`: it may overtake the chunks.
        """
        chunk = chat.read_chunk(response)
        stream = self.streams.get(response.id)
        if chunk is not None:
            self._take_chunk(response, chunk, wire, places)
        elif stream is not None and response.body and not response.error:
            stream.fold.exact = False

    def refold(self, identifier: str, responses: list[chat.Response]) -> None:
        """Take a whole replay for true: a stream may have begun anew under the same id.

        One that lags behind what other sockets have got says nothing new.
        """
        stream = self.streams.get(identifier)
        chunks = [chunk for chunk in map(chat.read_chunk, responses) if chunk is not None]
        total = sum(map(length, chunks))
        if stream is None or (stream.exact and total < stream.applied):
            return
        if stream.size_bytes > self.max_bytes:
            return
        stream.fold, stream.applied = Fold(copies(stream.base.parts)), 0
        unstored = list(stream.unstored)
        for chunk in chunks:
            while unstored and unstored[0].position <= stream.applied:
                stream.fold.apply(unstored.pop(0).chunk)
            if chunk_type(chunk) == "start":
                self._take_start(responses[0], chunk)
            stream.applied += length(chunk)
            stream.fold.apply(chunk)
        for other in unstored:
            stream.fold.apply(other.chunk)

    def end(self, identifier: str) -> None:
        """Note that a stream is over: its target is now what it has grown to."""
        stream = self.streams.pop(identifier, None)
        if stream is None:
            return
        self.done[identifier] = None
        while len(self.done) > MAX_DONE_STREAMS:
            del self.done[next(iter(self.done))]
        message = self.find(stream.target)
        if message is not None and not stream.is_listed:
            document = stream.json()
            self.size_bytes += len(document) - len(message.document)
            message.document = document
        if not stream.exact or self.size_bytes > self.max_bytes:
            self.forget_messages()

    def _take_chunk(
        self, response: chat.Response, chunk: Chunk, wire: bytes, places: dict[str, Place]
    ) -> None:
        identifier = response.id
        if chunk_type(chunk) == "start":
            places[identifier] = Place()
            self._take_start(response, chunk)
        place = places.get(identifier)
        if place is None:
            return
        stream = self.streams.get(identifier)
        if len(response.body) > STORED_CHUNK_BYTES // 4 and self._is_unstored(response):
            if stream is not None and not response.replay:
                self._take_unstored(stream, chunk, wire, place)
            return
        before = place.length
        place.length, place.unstored = before + length(chunk), 0
        if stream is None or place.length <= stream.applied:
            return
        if before > stream.applied:  # something in between was never seen
            stream.fold.exact = False
        elif before < stream.applied:
            chunk = without_head(chunk, stream.applied - before)
        stream.applied = place.length
        stream.is_listed = stream.is_listed and stream.is_over
        stream.size_bytes += len(response.body)
        if stream.size_bytes > self.max_bytes:
            stream.fold = Fold(exact=False)
        if stream.exact:
            stream.fold.apply(chunk)

    def _take_start(self, response: chat.Response, chunk: Chunk) -> None:
        if response.id not in self.streams and response.id not in self.done:
            self._start(response, chunk)
        stream = self.streams.get(response.id)
        if stream is not None and stream.is_continuation and "messageId" in chunk:
            stream.fold.exact = False  # no server names it: another repair has built it whole

    def _start(self, response: chat.Response, chunk: Chunk) -> None:
        for running in list(self.streams):  # one stream runs at a time: the others ended unseen
            self.streams[running].fold.exact = False
            self.end(running)
        identifier = raw.text_of(chunk.get("messageId"))
        is_continuation = identifier is None or response.continuation
        message = self.find(identifier) if identifier is not None else self.last_assistant()
        if message is None:
            if identifier is None or not self.is_known:
                return
            fields = {"id": raw.quote(identifier), "role": b'"assistant"'}
            message = Message(identifier, "assistant", raw.document({**fields, "parts": b"[]"}))
            self.messages.append(message)
        try:
            base = take_apart(message.document)
        except raw.Malformed:
            return
        if not is_continuation:
            base.parts = []
        fold = Fold(copies(base.parts))
        self.streams[response.id] = Stream(response.id, is_continuation, message.id, base, fold)

    @staticmethod
    def _is_unstored(response: chat.Response) -> bool:
        return len(response.body.encode("utf-8", "surrogatepass")) > STORED_CHUNK_BYTES

    def _take_unstored(self, stream: Stream, chunk: Chunk, wire: bytes, place: Place) -> None:
        """Take a chunk once, though every socket gets it; two may say the same."""
        here = [u.wire for u in stream.unstored if u.position == place.length]
        if wire in here[place.unstored :]:
            place.unstored = here.index(wire, place.unstored) + 1
            return
        place.unstored = len(here) + 1
        stream.unstored.append(Unstored(place.length, wire, chunk))
        if sum(2 * len(u.wire) for u in stream.unstored) > self.max_bytes:
            stream.unstored.clear()
            stream.fold.exact = False
        if stream.exact:
            stream.fold.apply(chunk)
