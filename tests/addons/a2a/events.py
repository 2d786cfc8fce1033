"""What an A2A server says, without its wire form: artifact updates, statuses, tasks, messages.

`notation` prints a stream on one line: `R"Hi"` replaces (append false or absent), `A"Hi"` appends,
`!` is lastChunk or final, `S` a status, `T` a task, `M` a message; `b1:` names an artifact that is
not the first one; `|` stands between parts.
"""

from collections.abc import Iterable

import msgspec

TASK, CONTEXT, FIRST = "task-1", "context-1", "a1"
METADATA_KEYS = ("_agentscope_block_type", "_agentscope_msg_id", "_agentscope_stream_chunk")


class Part(msgspec.Struct, frozen=True):
    """A text part, or with `data` a data part. The metadata is AgentScope's."""

    text: str = ""
    data: object = None
    metadata: dict[str, object] = {}

    @property
    def is_text(self) -> bool:
        return self.data is None


class Event(msgspec.Struct, frozen=True):
    """One of those below."""


class Update(Event, frozen=True):
    """An artifact update. `append` None: the key is absent, which means false."""

    artifact: str
    parts: tuple[Part, ...]
    append: bool | None = None
    last: bool | None = None
    metadata: dict[str, object] = {}

    @property
    def text(self) -> str:
        return joined(self.parts)


class Status(Event, frozen=True):
    """A status update; `final` is told in the forms that have it."""

    state: str
    parts: tuple[Part, ...] | None = None
    message_id: str = "m1"
    final: bool = False

    @property
    def text(self) -> str:
        return joined(self.parts or ())


class Task(Event, frozen=True):
    """A task with its artifacts, by id."""

    state: str
    artifacts: tuple[tuple[str, tuple[Part, ...]], ...] = ()
    history: tuple[str, ...] = ()


class Said(Event, frozen=True):
    """A message that is no part of a status."""

    parts: tuple[Part, ...]
    message_id: str = "m1"


def parts(*texts: str) -> tuple[Part, ...]:
    return tuple(Part(text) for text in texts)


def joined(found: Iterable[Part]) -> str:
    return whole("".join(part.text for part in found if part.is_text))


def whole(text: str) -> str:
    """Put surrogate pairs together that two frames shared."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def units(text: str) -> bytes:
    """Return UTF-16 code units, in which a pair can be cut."""
    return text.encode("utf-16-le", "surrogatepass")


def notation(events: Iterable[Event]) -> str:
    return " ".join(map(_one, events))


def _one(event: Event) -> str:
    match event:
        case Update():
            name = "" if event.artifact == FIRST else f"{event.artifact}:"
            letter = "A" if event.append else "R"
            return f"{name}{letter}{'!' if event.last else ''}{_quoted(event.parts)}"
        case Status():
            text = "" if event.parts is None else _quoted(event.parts)
            return f"S{'!' if event.final else ''}{event.state}{text}"
        case Task():
            held = ",".join(f"{name}={_quoted(found)}" for name, found in event.artifacts)
            return f"T{event.state}[{held}]"
    assert isinstance(event, Said)
    return f"M{_quoted(event.parts)}"


def _quoted(found: Iterable[Part]) -> str:
    return "|".join(ascii_of(part) for part in found)


def ascii_of(part: Part) -> str:
    """Return a part in double quotes; the text of a lone surrogate is escaped."""
    if not part.is_text:
        return "{data}"
    text = part.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    mark = "".join("~" for key in METADATA_KEYS if key in part.metadata)
    return f'{mark}"{text.encode("utf-8", "backslashreplace").decode()}"'
