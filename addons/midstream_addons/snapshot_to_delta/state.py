"""What is remembered: of one exchange, and of an agent between exchanges."""

import hashlib
from collections import OrderedDict

import msgspec

from midstream.core.frames import Frame
from midstream.dialects.a2a import ArtifactUpdate, Asked, StatusUpdate
from midstream_addons.snapshot_to_delta.lane import Lane
from midstream_addons.snapshot_to_delta.step import Reading

MAX_DIGESTS = 1_024
DIGEST_SIZE = 16
AGENT_BYTES = 512
DIGEST_BYTES = 160


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
    closed, its updates pass; those known to hold the whole text leave as replacements. `received`
    digests all that its server has sent, repeats and all.
    """

    __slots__ = (
        "ahead", "counted_bytes", "data", "held", "is_closed", "is_open", "is_plain", "is_sealed",
        "lanes", "message_id", "model", "received", "renamed", "replaces", "segment",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.data: list[bytes] = []
        self.held: Waiting | None = None
        self.ahead: Waiting | None = None
        self.model: Model | None = None
        self.message_id = ""
        self.segment = ""
        self.is_open = False
        self.is_plain = True
        self.is_sealed = False
        self.is_closed = False
        self.replaces = False
        self.renamed = 0
        self.received = hashlib.blake2b(digest_size=DIGEST_SIZE)
        self.counted_bytes = 0

    @property
    def size_bytes(self) -> int:
        return sum(lane.size_bytes for lane in self.lanes.values())

    def close(self) -> None:
        """Edit no more of this artifact, and forget its text."""
        self.is_closed = True
        self.replaces = self.is_plain and any(
            lane.reading is Reading.SNAPSHOT for lane in self.lanes.values()
        )
        self.lanes.clear()
        self.data.clear()

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
            self.received = hashlib.blake2b(digest_size=DIGEST_SIZE)
        self.received.update(text)

    def not_plain(self) -> None:
        self.is_plain = False
        for lane in self.lanes.values():
            lane.can_reset = False


class Stream:
    """The state of one exchange: its artifacts by task and id, in the order they came.

    `over` are tasks whose turn has ended; they are remembered while there is room.
    """

    __slots__ = ("artifacts", "asked", "is_waiting", "over", "size_bytes", "statuses")

    def __init__(self) -> None:
        self.artifacts: dict[tuple[str, str], Artifact] = {}
        self.statuses: dict[str, StatusText] = {}
        self.over: set[str] = set()
        self.asked: Asked | None = None
        self.is_waiting = False
        self.size_bytes = 0

    def has_room(self, max_artifacts: int) -> bool:
        """Tell whether one more artifact can be remembered, if need be in the place of old ones."""
        if len(self.artifacts) >= max_artifacts:
            for key in [key for key in self.artifacts if key[0] in self.over]:
                self.size_bytes -= self.artifacts.pop(key).counted_bytes
            self.over.clear()
        return len(self.artifacts) < max_artifacts


class StatusText:
    """The text that a task has said in its working statuses, one after the other."""

    __slots__ = ("lane", "lifted", "message_id")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.message_id = ""
        self.lifted: tuple[Frame, StatusUpdate] | None = None


class Agent(msgspec.Struct):
    """What is known of an agent: how its last answers were to be read, and what they came to.

    `streak` answers in a row were read as `reading`. `digests` are of the text of artifacts, by
    task and id, so that a task that is read later can be checked against what was streamed.
    """

    card: str = ""
    reading: str = ""
    streak: int = 0
    digests: OrderedDict[str, bytes] = msgspec.field(default_factory=OrderedDict)

    @property
    def size_bytes(self) -> int:
        return AGENT_BYTES + DIGEST_BYTES * len(self.digests)
