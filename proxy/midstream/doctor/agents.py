"""What goes wrong in the stream of an agent (A2A): snapshots, and answers that are said again.

That an update begins with all text so far is no proof of a snapshot (`ha`, `haha`), so streams are
named snapshots only where the addon counted them; here their size is added up. A final message that
is word for word the whole answer is found without it.

Source: agentscope-ai/agentscope-java#1378.
"""

import msgspec

from midstream.core.frames import Side
from midstream.dialects import a2a
from midstream.doctor.looking import Opened, Sight
from midstream.doctor.report import Finding, Level, Seen
from midstream.doctor.words import mend

SNAPSHOTS = "snapshot-to-delta"
FINAL = "final-message-once"
SNAPSHOT_RULES = frozenset(("snapshot", "stale", "correction", "contradiction"))
MAX_TEXT_CHARS = 1 << 20
"""More text of one artifact is not compared."""


class Told(msgspec.Struct):
    """What one stream has said: the text of each artifact added up, and its last update."""

    added: dict[str, str] = msgspec.field(default_factory=dict)
    last: dict[str, str] = msgspec.field(default_factory=dict)
    repeated: dict[str, int] = msgspec.field(default_factory=dict)
    updates: dict[str, int] = msgspec.field(default_factory=dict)
    first: tuple[int, int] = (0, 0)

    def update(self, event: a2a.ArtifactUpdate) -> None:
        """Take an update of an artifact."""
        name, text = event.artifact_id, _text(event.parts)
        before = self.last.get(name, "")
        if before and len(text) > len(before) and text.startswith(before):
            self.repeated[name] = self.repeated.get(name, 0) + len(before)
        self.updates[name] = self.updates.get(name, 0) + 1
        kept = self.added.get(name, "") if event.append else ""
        if len(kept) + len(text) <= MAX_TEXT_CHARS:
            self.added[name] = kept + text
            self.last[name] = text

    def said(self, text: str) -> bool:
        """Tell whether a text is the whole answer, of one artifact or of all together."""
        text = text.strip()
        answers = {"".join(self.added.values()).strip(), "".join(self.last.values()).strip()}
        answers |= {one.strip() for one in (*self.added.values(), *self.last.values())}
        return bool(text) and text in answers


class AgentStreams:
    """Streams of snapshots, and final messages and tasks that repeat the answer."""

    def __init__(self) -> None:
        self._told: dict[tuple[int, int], Told] = {}
        self._snapshots, self._messages, self._tasks = Seen(), Seen(), Seen()
        self._counted: set[tuple[int, int]] = set()
        self._again = 0

    def see(self, sight: Sight) -> None:
        if sight.frame.sender is Side.CLIENT or sight.frame.kind == "body":
            return
        event = a2a.read(sight.frame)
        exchange = sight.exchange
        place = exchange.capture, exchange.number
        if isinstance(event, a2a.ArtifactUpdate):
            told = self._told.setdefault(place, Told(first=(sight.seq, sight.wall_ns)))
            told.update(event)
        elif isinstance(event, a2a.StatusUpdate) and event.state == "completed":
            if event.message is not None and self._is_said(place, event.message.parts):
                self._messages.note(*place, sight.seq, sight.wall_ns)
        elif isinstance(event, a2a.Task) and a2a.ends_turn(event):
            parts = [part for artifact in event.artifacts for part in artifact.parts]
            if self._is_said(place, tuple(parts)):
                self._tasks.note(*place, sight.seq, sight.wall_ns)

    def counted(self, capture: int, exchange: int, rule: str) -> None:
        """Take what the addon counted: it tells which streams are snapshots."""
        if rule in SNAPSHOT_RULES:
            self._counted.add((capture, exchange))

    def closed(self, exchange: Opened, seq: int, wall_ns: int) -> None:
        place = exchange.capture, exchange.number
        told = self._told.pop(place, None)
        if told is not None and place in self._counted:
            streams = [name for name, chars in told.repeated.items() if chars]
            self._again += sum(told.repeated.values())
            self._snapshots.note(*place, *told.first, max(len(streams), 1))

    def findings(self) -> list[Finding]:
        found = []
        if self._snapshots.places:
            found.append(
                Finding(
                    "snapshot-stream",
                    "artifacts are streamed as the text so far",
                    Level.FAULT,
                    "artifacts",
                    "a client that appends updates shows the text again with every one of them",
                    f"{self._again:,} characters sent again",
                    SNAPSHOTS,
                    mend(SNAPSHOTS),
                    self._snapshots,
                )
            )
        if self._messages.places:
            found.append(_repeated_message(self._messages))
        if self._tasks.places:
            found.append(_repeated_task(self._tasks))
        return found

    def _is_said(self, place: tuple[int, int], parts: tuple[a2a.Part, ...]) -> bool:
        told = self._told.get(place)
        return told is not None and told.said(_text(parts))


def _text(parts: tuple[a2a.Part, ...]) -> str:
    return "".join(part.text for part in parts if part.text is not None)


def _repeated_message(seen: Seen) -> Finding:
    return Finding(
        "repeated-final",
        "the final message of a stream is the whole answer again",
        Level.FAULT,
        "messages",
        "a client that adds the message to what it shows has the answer twice",
        "",
        FINAL,
        mend(FINAL),
        seen,
    )


def _repeated_task(seen: Seen) -> Finding:
    return Finding(
        "final-task",
        "the task at the end of a stream holds the whole answer again",
        Level.NOTE,
        "tasks",
        "right by the protocol; a client that appends it has the answer twice",
        "",
        FINAL,
        f'[addon.{FINAL}]\nfinal_task = "dedupe"',
        seen,
    )
