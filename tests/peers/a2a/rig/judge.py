"""What a client holds in the end, against what it should hold: one word.

once    the true text, once
twice   all of it is there, and something again
lost    something is missing, and nothing is there twice
mixed   neither of these
error   the client gave up, and the text is not right
once+error   the text is right so far, and the client reports an error
"""

from collections.abc import Iterable

from tests.peers.a2a.scenarios import SCENARIOS, SCRIPTS

WITH_MESSAGE = ("app", "unary")
"""Views that show the message of the last status beside the artifacts."""


def verdict(scenario: str, view: str, held: dict[str, str], message: str, error: str) -> str:
    """Return the word for one row; an empty one where nothing is due and nothing was shown."""
    if view == "url":
        return held["url"]
    word = text_word(scenario, view, held, message)
    if error and word:
        return "once+error" if word == "once" else "error"
    return word


def text_word(scenario: str, view: str, held: dict[str, str], message: str) -> str:
    shown = message if view in WITH_MESSAGE else ""
    if scenario in SCRIPTS:
        # ids are the framework's own, and strands puts a newline behind its answer
        text = "".join(SCRIPTS[scenario])
        return compare(text.strip(), ("".join(held.values()) + shown).strip())
    found = SCENARIOS[scenario]
    if view not in ("app", "appender", "manager", "stored", "unary"):
        if found.kind == "interleaved":
            return ""  # one text of two artifacts: any order of their pieces is right
        return compare(found.whole, "".join(held.values()) + message)
    due = dict(found.truth)
    if not due and not held and view not in WITH_MESSAGE:
        return ""
    names = [*due, *(name for name in held if name not in due)]
    words = [compare(due.get(name, ""), held.get(name, "")) for name in names]
    if view in WITH_MESSAGE:
        words.append(compare(found.message, shown))
    return together(words)


def compare(truth: str, held: str) -> str:
    if held == truth:
        return "once"
    if within(truth, held):
        return "twice"
    if within(held, truth):
        return "lost"
    return "mixed"


def within(small: str, large: str) -> bool:
    """Whether `large` is `small` with something put in."""
    rest = iter(large)
    return all(letter in rest for letter in small)


def together(words: Iterable[str]) -> str:
    worse = {word for word in words if word != "once"}
    if not worse:
        return "once"
    return worse.pop() if len(worse) == 1 else "mixed"
