"""What the agents do, told by the beginning of the message's id.

`tck-` and `test-` are what the kit demands of an agent under test: its conditions, in our form.
`own-` are streams with the faults that midstream mends; the kit has no such stream.
"""

from dataclasses import dataclass
from typing import Literal

WHOLE = "Hi Mira, which region should I query?"
GROWING = ("Hi", "Hi Mira, which", WHOLE)
PIECES = ("Hi", " Mira, which", " region should I query?")

type PartKind = Literal["text", "raw", "url", "data"]


@dataclass(frozen=True)
class Status:
    """A status update; an empty text: without a message."""

    state: str
    text: str = ""


@dataclass(frozen=True)
class Artifact:
    """An artifact update with one part. The flags are left out where they are None."""

    content: str
    kind: PartKind = "text"
    append: bool | None = None
    last: bool | None = None


@dataclass(frozen=True)
class Reply:
    """A message instead of a task."""

    text: str


@dataclass(frozen=True)
class Wait:
    """Time passes, in seconds."""

    seconds: float


type Step = Status | Artifact | Reply | Wait

WORKING, COMPLETED = Status("working"), Status("completed")


def streamed(*artifacts: Artifact) -> tuple[Step, ...]:
    """Return a task that works, says this, and is done."""
    return (WORKING, *artifacts, COMPLETED)


def appended(*texts: str) -> tuple[Artifact, ...]:
    """Return one artifact in several updates, all but the first marked as appended."""
    return tuple(Artifact(text, append=number > 0) for number, text in enumerate(texts))


STEPS: dict[str, tuple[Step, ...]] = {
    "tck-complete-task": (Status("completed", "Done."),),
    "tck-artifact-text": (Artifact("Generated text content"), COMPLETED),
    "tck-artifact-file": (Artifact("Done.\n", "raw"), COMPLETED),
    "tck-artifact-file-url": (Artifact("https://example.com/output.txt", "url"), COMPLETED),
    "tck-artifact-data": (Artifact('{"key": "value", "count": 42}', "data"), COMPLETED),
    "tck-message-response": (Reply("Direct message response"),),
    "tck-input-required": (Status("input-required"),),
    "tck-reject-task": (Status("rejected"),),
    "tck-stream-001": streamed(Artifact("One artifact.")),
    "tck-stream-002": (COMPLETED,),
    "tck-stream-003": streamed(Artifact("One artifact.")),
    "tck-stream-ordering-001": streamed(Artifact("One artifact.")),
    "tck-stream-artifact-text": streamed(Artifact("One artifact.")),
    "tck-stream-artifact-file": streamed(Artifact("Done.\n", "raw")),
    "tck-stream-artifact-chunked": streamed(
        Artifact("One artifact, ", append=False), Artifact("twice.", append=True, last=True)
    ),
    "test-resubscribe-message-id": (*(WORKING, Wait(0.5)) * 9, COMPLETED),
    "own-pieces": streamed(*appended(*PIECES)),
    "own-growing": streamed(*appended(*GROWING)),
    "own-growing-replaced": streamed(*(Artifact(text, append=False) for text in GROWING)),
    "own-pieces-then-whole": streamed(*appended(*PIECES, WHOLE)),
    "own-pieces-then-replaced": streamed(
        *appended(*PIECES), Artifact(WHOLE, append=False, last=True)
    ),
    "own-growing-with-answer": (WORKING, *appended("Hi", WHOLE), Status("completed", WHOLE)),
}

OWN = tuple(name for name in STEPS if name.startswith("own-"))

OTHERWISE: tuple[Step, ...] = (Status("completed", "Done."),)
"""What a 1.0 agent does with any other message."""

SLOWLY: tuple[Step, ...] = (
    Status("submitted"),
    Wait(0.5),
    WORKING,
    Wait(0.5),
    Artifact("One artifact.", append=False, last=True),
    Status("input-required", "What else?"),
)
"""What a 0.3 agent does: that kit goes on with tasks, and cancels them."""


def steps_for(message_id: str, otherwise: tuple[Step, ...] = OTHERWISE) -> tuple[Step, ...]:
    """Return the steps of the longest name that the id begins with."""
    names = [name for name in STEPS if message_id.startswith(name)]
    return STEPS[max(names, key=len)] if names else otherwise
