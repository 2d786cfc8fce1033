"""Short ways to say a stream and to hear what a client makes of it."""

from collections.abc import Sequence

from tests.addons.a2a.client import Client
from tests.addons.a2a.events import Event, Part, Status, Update
from tests.addons.a2a.forms import RPC03, Form
from tests.addons.a2a.rig import GAP_MS, Rig, run

from midstream.core.frames import Frame

ANSWER = "Mira asked which region is meant, and the answer is the north of it."
PIECES = ["Mira asked ", "which region is meant, ", "and the answer is ", "the north of it."]
DONE = Status("completed", final=True)


def octets(frames: Sequence[Frame]) -> bytes:
    return b"".join(frame.wire for frame in frames)


def through(rig: Rig, wires: Sequence[bytes], form: Form = RPC03, gap_ms: int = GAP_MS) -> Client:
    """Return the client of what a proxy lets through."""
    return Client().takes(run(rig, wires, form, gap_ms))


def updates(*frames: tuple[str, bool], artifact: str = "a1") -> list[Update]:
    """Return updates by their text and whether they append."""
    return [Update(artifact, (Part(text),), append) for text, append in frames]


def deltas(pieces: Sequence[str]) -> list[Update]:
    return updates(*((piece, number > 0) for number, piece in enumerate(pieces)))


def wires(events: Sequence[Event], form: Form = RPC03) -> list[bytes]:
    return [form.wire(event) for event in events]
