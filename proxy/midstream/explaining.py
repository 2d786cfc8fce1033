"""Says in words what the addons did at a record, why, and what their words mean."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from midstream import registry
from midstream.core.addon import Facts
from midstream.core.errors import Error

CHAIN_MEANINGS: Mapping[str, str] = {
    "hold_bound": "Frames were held for too long, or too many bytes of them, so they left as they "
    "came.",
    "too_large": "A frame is larger than the limit, so what this side sends passes unread from "
    "here on.",
    "bad_encoding": "The body is in a content coding that could not be undone, so it passes "
    "unread.",
}
"""What the reasons mean that are counted for every addon, beside the addon's own."""


@cache
def _meanings(addon: str) -> Mapping[str, str]:
    try:
        return {**CHAIN_MEANINGS, **registry.load_addon(addon).meanings}
    except Error:  # a capture of another installation: its addon is not here
        return CHAIN_MEANINGS


def meaning(addon: str, word: str) -> str:
    """Return in one sentence what a rule or reason means; nothing where nobody says."""
    return _meanings(addon).get(word, "")


def facts_in_words(facts: Facts) -> str:
    """Return facts as `name value` with commas between; a fact that holds is its name alone."""
    said = []
    for name, value in facts.items():
        words = _printable(name.replace("_", " "))
        if value is True:
            said.append(words)
        elif value is False:
            said.append(f"not {words}")
        else:
            shown = f"{value:,}" if isinstance(value, int) else _printable(str(value))
            said.append(f"{words} {shown}")
    return ", ".join(said)


def explain(
    rules: Iterable[Sequence[str]], skips: Iterable[Sequence[str]], why: object = ()
) -> list[str]:
    """Return a line for each word counted at a record: who, what, its meaning, the facts.

    `why` is that of the record's meta, as it is stored; what is not of its shape is left out.
    """
    facts = _facts(why)
    lines = []
    for verb, words in (("did", rules), ("declined", skips)):
        for addon, word in words:
            line = f"{addon} {verb} {word}"
            if sentence := meaning(addon, word):
                line += f": {sentence}"
            found = facts.get((addon, word))
            if found:
                line += f" ({facts_in_words(found.pop(0))})"
            lines.append(_printable(line))
    return lines


def _facts(why: object) -> dict[tuple[str, str], list[Facts]]:
    """Return the facts of each word, in the order they were counted."""
    found: dict[tuple[str, str], list[Facts]] = {}
    for entry in why if isinstance(why, list | tuple) else ():
        match entry:
            case [str(addon), str(word), Mapping() as facts]:
                found.setdefault((addon, word), []).append(
                    {str(name): value for name, value in facts.items()}
                )
    return found


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]
