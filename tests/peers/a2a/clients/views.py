"""What applications hold of a stream, told in events that are free of any SDK.

Standard library only. Two applications:
`App` honours the flags (append, or replace), puts a Task in the place of all it had, shows no
status message while the agent works, and adds the message of the status that ends the turn.
`Appender` appends the text of every artifact update, whatever its flags, and shows nothing else.
"""

from dataclasses import dataclass, field

ENDS = ("completed", "input-required", "auth-required", "failed", "rejected")


@dataclass(frozen=True)
class Update:
    id: str
    text: str
    append: bool


@dataclass(frozen=True)
class Status:
    state: str
    text: str = ""


@dataclass(frozen=True)
class Task:
    state: str
    artifacts: dict[str, str] = field(default_factory=dict)
    text: str = ""
    """Of the message of its status."""


type Event = Update | Status | Task


def state_word(name: str) -> str:
    """The word of 0.3 for a state in either spelling."""
    return name.removeprefix("TASK_STATE_").lower().replace("_", "-")


class App:
    def __init__(self) -> None:
        self.lanes: dict[str, str] = {}
        self.message = ""

    def feed(self, event: Event) -> None:
        match event:
            case Update(name, text, append):
                self.lanes[name] = (self.lanes.get(name, "") if append else "") + text
            case Status(state, text):
                if state in ENDS:
                    self.message = text
            case Task(state, artifacts, text):
                self.lanes = dict(artifacts)
                if state in ENDS:
                    self.message = text


class Appender:
    def __init__(self) -> None:
        self.lanes: dict[str, str] = {}
        self.message = ""

    def feed(self, event: Event) -> None:
        if isinstance(event, Update):
            self.lanes[event.id] = self.lanes.get(event.id, "") + event.text
