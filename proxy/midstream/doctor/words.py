"""What words mean, and what mends a fault: plain sentences for people.

The meaning of a rule or reason is the addon's own (`explaining`); what a fault looks like to people
and what to write into a configuration is here, by addon. An addon that is not known here gets the
first line of its own description, and the same two lines of configuration.
"""

from collections.abc import Mapping
from typing import Final

from midstream.adapters.capture_format import StoredRecord
from midstream.core.addon import AnyAddon
from midstream.core.ports import Record
from midstream.explaining import explain

MAX_REASON_CHARS: Final = 600

MEANINGS: Final[Mapping[str, str]] = {
    "replay-overlap": (
        "a client that reconnected during an answer is sent from its start what it already shows: "
        "people see text twice, or lose it"
    ),
    "strip-compaction": (
        "the client uploads summaries that the server made itself, and the server stores them as "
        "messages of the chat"
    ),
    "snapshot-to-delta": (
        "an agent sends the text so far as if it were new: clients that append show it again and "
        "again"
    ),
    "final-message-once": (
        "the end of an agent's stream repeats the whole answer: people see it twice"
    ),
    "history-order": (
        "requests to the model have a text behind a tool call that came after it: the model reads "
        "a history that never happened"
    ),
}
_HINTS: Final[Mapping[str, str]] = {
    "replay-overlap": (
        'client = "r3"       # if the page uses ai 6.0.250 or later: mends one case more'
    ),
    "final-message-once": (
        'final_task = "dedupe"   # if a task at the end repeats the answer, too'
    ),
}


def fault_meaning(addon: AnyAddon) -> str:
    """Return what a fault is to the people who have it."""
    described = next(iter((addon.__doc__ or "").strip().splitlines()), "").rstrip(".")
    return MEANINGS.get(addon.name) or described or addon.name


def mend(name: str) -> str:
    """Return the lines of a configuration that mend a fault."""
    lines = [f"[addon.{name}]", 'mode = "repair"']
    if name in _HINTS:
        lines.append(f"# {_HINTS[name]}")
    return "\n".join(lines)


def reasons(record: Record | StoredRecord) -> list[str]:
    """Return what addons did or declined at a record, what that means, and by which facts."""
    lines = explain(record.rules, record.skips, record.meta.get("why", ()))
    return [shown(line, MAX_REASON_CHARS) for line in lines]


def shown(value: str, limit: int = 200) -> str:
    """Return text of a capture as one printable line of at most `limit` characters."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in value[: limit + 1])
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
