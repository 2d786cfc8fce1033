"""What words mean, and what mends a fault: plain sentences for people.

The meaning of a rule or reason is the addon's own (`meanings`); what a fault looks like to a person
and what to write into a configuration is here, by addon. An addon that is not known here gets the
first line of its own description, and the same two lines of configuration.
"""

from collections.abc import Mapping
from typing import Final

from midstream.core.addon import AnyAddon

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


def word_meaning(addon: AnyAddon | None, word: str) -> str:
    """Return what a rule or reason means; the word itself where nobody says."""
    meanings = getattr(addon, "meanings", {})
    meaning = meanings.get(word, word) if isinstance(meanings, Mapping) else word
    return str(meaning)


def mend(name: str) -> str:
    """Return the lines of a configuration that mend a fault."""
    lines = [f"[addon.{name}]", 'mode = "repair"']
    if name in _HINTS:
        lines.append(f"# {_HINTS[name]}")
    return "\n".join(lines)


def reasons(meta: Mapping[str, object]) -> list[str]:
    """Return in words by which facts addons decided, as a record keeps them in `why`."""
    lines = []
    entries = meta.get("why", ())
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, list | tuple) and len(entry) == 3 and isinstance(entry[2], Mapping):
            addon, word, facts = entry
            said = ", ".join(f"{key} {value}" for key, value in facts.items())
            lines.append(shown(f"{addon} {word}: {said}"))
    return lines


def shown(value: str, limit: int = 200) -> str:
    """Return text of a capture as one printable line of at most `limit` characters."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in value[: limit + 1])
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
