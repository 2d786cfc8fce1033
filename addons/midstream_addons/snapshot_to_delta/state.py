"""What is remembered: of one exchange, and of an agent between exchanges."""

import msgspec

from midstream.dialects.a2a import Asked
from midstream_addons.snapshot_to_delta.artifact import Artifact
from midstream_addons.snapshot_to_delta.lane import Lane

MAX_DIGESTS = 1_024
AGENT_BYTES = 512
ENTRY_BYTES = 160
"""About what one digest takes with its key."""


class Stream:
    """The state of one exchange: its artifacts by task and id, in the order they came.

    Those of turns that are over are remembered while there is room; `has_forgotten` tells that some
    are not, so that an update that is the first one known of its artifact need not be the first.
    `keeps_last`: the client keeps of an artifact only what comes with `lastChunk`.
    """

    __slots__ = (
        "artifacts", "asked", "has_forgotten", "is_waiting", "keeps_last", "size_bytes", "statuses",
    )  # fmt: skip

    def __init__(self) -> None:
        self.artifacts: dict[tuple[str, str], Artifact] = {}
        self.statuses: dict[str, StatusText] = {}
        self.asked: Asked | None = None
        self.has_forgotten = False
        self.keeps_last = False
        self.is_waiting = False
        self.size_bytes = 0

    def has_room(self, max_artifacts: int) -> bool:
        """Tell whether one more artifact can be remembered, if need be in the place of old ones."""
        if len(self.artifacts) >= max_artifacts:
            self.has_forgotten = True
            for key in [key for key, artifact in self.artifacts.items() if artifact.is_over]:
                self.size_bytes -= self.artifacts.pop(key).counted_bytes
        return len(self.artifacts) < max_artifacts

    def close(self, artifact: Artifact) -> None:
        """Edit no more of an artifact, and forget its text."""
        artifact.close()
        self.size_bytes -= artifact.counted_bytes
        artifact.counted_bytes = 0


class StatusText:
    """The text that a task has said in its working statuses, one after the other.

    `is_repeated`: an artifact has said it, too; `is_lifted`: it became one.
    """

    __slots__ = ("is_lifted", "is_repeated", "lane", "message_id")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.message_id = ""
        self.is_lifted = False
        self.is_repeated = False


class Agent(msgspec.Struct):
    """What is known of an agent: how its last answers were to be read, and what they came to.

    `streak` answers in a row were read as `reading`. `digests` are of the text of artifacts, by
    task and id, so that a task that is read later can be checked against what was streamed;
    `snapshots` names those of them that came as snapshots.
    """

    card: str = ""
    reading: str = ""
    streak: int = 0
    digests: dict[str, bytes] = msgspec.field(default_factory=dict)
    snapshots: set[str] = msgspec.field(default_factory=set)

    @property
    def size_bytes(self) -> int:
        return AGENT_BYTES + ENTRY_BYTES * len(self.digests)
