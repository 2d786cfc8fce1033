"""What A2A frames say: the events of a stream, in one form for all versions of the protocol.

Versions 0.2 and 0.3 name the kind of an object in `kind`, 1.0 in the key around it; states, roles
and parts differ too, and servers mix them. Here they are one: the words are those of 0.3.

`at` is the path to an object inside the payload of its frame, for edits.

Source: a2aproject/A2A `types/src/types.ts` (v0.2.6, v0.3.0) and `specification/a2a.proto` (v1.0.1).
"""

from typing import Final

import msgspec

from midstream.core.edit import Path


class Reading(msgspec.Struct, frozen=True):
    """Anything that `read` finds in a frame."""


class Part(msgspec.Struct, frozen=True):
    """One part of an artifact or a message.

    `text` is None where the part is none of text; lone surrogates are kept. `raw` are the bytes of
    a part that is not text, empty for one that is. `block` is what the server calls the kind of
    text (AgentScope's block type, or `thought` for ADK), `message_id` the message it belongs to;
    `is_chunk` tells that the server calls it a delta.
    """

    text: str | None
    raw: bytes = b""
    block: str = ""
    message_id: str = ""
    is_chunk: bool = False


class ArtifactUpdate(Reading, frozen=True):
    """A piece of an artifact, or all of it.

    `stream_mode` is `delta`, `snapshot` or empty; `segment` names the step of the agent that wrote
    it, where the server tells (ADK).
    """

    task_id: str
    context_id: str
    artifact_id: str
    name: str
    append: bool
    last: bool
    parts: tuple[Part, ...]
    stream_mode: str
    segment: str
    at: Path


class Message(Reading, frozen=True):
    """A message: an event of its own, or a part of a status or a task."""

    message_id: str
    role: str
    task_id: str
    parts: tuple[Part, ...]
    at: Path
    parts_key: str = "parts"


class StatusUpdate(Reading, frozen=True):
    """The state of a task; `final` is how 0.x marks the last one of a stream."""

    task_id: str
    context_id: str
    state: str
    final: bool
    message: Message | None
    at: Path


class Artifact(msgspec.Struct, frozen=True):
    """An artifact of a task; `index` is its place there."""

    artifact_id: str
    name: str
    parts: tuple[Part, ...]
    index: int


class Task(Reading, frozen=True):
    """A whole task."""

    task_id: str
    context_id: str
    state: str
    message: Message | None
    artifacts: tuple[Artifact, ...]
    history: tuple[Message, ...]
    at: Path


class Failure(Reading, frozen=True):
    """A JSON-RPC error, or that of the HTTP+JSON binding."""

    code: int


class Unreadable(Reading, frozen=True):
    """A frame of this protocol that has the wrong shape, and what is wrong."""

    reason: str


type Event = ArtifactUpdate | StatusUpdate | Task | Message | Failure

TERMINAL: Final = frozenset(("completed", "canceled", "failed", "rejected"))
INTERRUPTED: Final = frozenset(("input-required", "auth-required"))
STATES: Final = TERMINAL | INTERRUPTED | {"submitted", "working", "unknown"}


def ends_turn(event: Event) -> bool:
    """Tell whether the turn is over with this event: nothing more of the answer is due."""
    if isinstance(event, StatusUpdate):
        return event.final or event.state in TERMINAL or event.state in INTERRUPTED
    if isinstance(event, Task):
        return event.state in TERMINAL or event.state in INTERRUPTED
    return isinstance(event, Message)
