"""What is remembered of one artifact in one exchange."""

from hashlib import blake2b

import msgspec

from midstream.core.frames import Frame
from midstream.dialects.a2a import ArtifactUpdate
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.step import Reading
from midstream_addons.snapshot_to_delta.text import DIGEST_BYTES, Digest


class Waiting(msgspec.Struct, frozen=True):
    """A received update: the lane it waits for, or what leaves for it and why."""

    frame: Frame
    update: ArtifactUpdate
    since_ns: int
    block: str = ""
    out: Frame | None = None
    rule: str = ""


class Model(msgspec.Struct, frozen=True):
    """An empty update that others are made after."""

    frame: Frame
    update: ArtifactUpdate


class Artifact:
    """One artifact as its client has it.

    `model` is there once it is mended; `ahead` waits only for its `lastChunk` to be known. Where it
    holds more than the text of one lane it cannot be replaced as a whole: `is_plain` tells. Once
    closed, its updates pass; `said` digests what its snapshots have come to, and those that go on
    from it leave as replacements. `ends_whole` tells that its client keeps only what comes with
    `lastChunk`, so that this has to hold the whole text. `received` digests all that its server has
    sent, repeats and all.
    """

    __slots__ = (
        "ahead", "counted_bytes", "data", "ends_whole", "held", "is_closed", "is_open", "is_over",
        "is_plain", "is_sealed", "lanes", "message_id", "model", "received", "renamed", "said",
        "segment",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.data: list[bytes] = []
        self.held: Waiting | None = None
        self.ahead: Waiting | None = None
        self.model: Model | None = None
        self.message_id = ""
        self.segment = ""
        self.ends_whole = False
        self.is_open = False
        self.is_over = False
        self.is_plain = True
        self.is_sealed = False
        self.is_closed = False
        self.said: Digest | None = None
        self.renamed = 0
        self.received = blake2b(digest_size=DIGEST_BYTES)
        self.counted_bytes = 0

    @property
    def size_bytes(self) -> int:
        return sum(lane.size_bytes for lane in self.lanes.values())

    def close(self) -> None:
        """Edit no more of this artifact, and forget its text."""
        snapshots = [lane for lane in self.lanes.values() if lane.reading is Reading.SNAPSHOT]
        if self.is_plain and snapshots and not snapshots[0].segment:
            self.said = Digest.of(bytes(snapshots[0].text))
        self.is_closed = True
        self.lanes.clear()
        self.data.clear()

    @property
    def has_snapshots(self) -> bool:
        return any(lane.reading is Reading.SNAPSHOT for lane in self.lanes.values())

    @property
    def is_quiet(self) -> bool:
        """Tell whether nothing waits, and updates leave with the artifact's own name."""
        return self.held is None and self.ahead is None and not (self.renamed or self.is_over)

    def new_id(self, update: ArtifactUpdate) -> str:
        """Return the id that its updates leave with, empty if it is their own."""
        return f"{update.artifact_id}-{self.renamed + 1}" if self.renamed else ""

    @property
    def text(self) -> bytes:
        """What the client has, if all of it is text of one lane and still remembered."""
        return self.spoken if self.is_plain else b""

    @property
    def spoken(self) -> bytes:
        """The text that the client has, other parts aside, if it is all of one lane."""
        is_known = len(self.lanes) == 1 and not self.is_closed
        return b"".join([bytes(lane.text) for lane in self.lanes.values()]) if is_known else b""

    def receive(self, text: bytes, *, replaces: bool) -> None:
        """Note what the server has sent, repeats and all."""
        if replaces:
            self.received = blake2b(digest_size=DIGEST_BYTES)
        self.received.update(text)

    def not_plain(self) -> None:
        self.is_plain = False
        for lane in self.lanes.values():
            lane.can_reset = False
