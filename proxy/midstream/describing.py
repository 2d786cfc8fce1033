"""Says in a few words what a frame means: in the words of its dialect, else of its shape.

For people who look at traffic. Counts, kinds and ids, and at most 40 characters of a text. Nothing
here raises, whatever the frame holds.
"""

import functools
from collections.abc import Callable

import msgspec

from midstream import registry
from midstream.core.dialect import Dialect
from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Kind
from midstream.dialects import a2a_words, cloudflare_words, provider_words

WORDS: dict[str, Callable[[Frame], str | None]] = {
    "openai_responses": provider_words.describe,
    "openai_chat": provider_words.describe,
    "anthropic_messages": provider_words.describe,
    "gemini": provider_words.describe,
    "cloudflare_chat": cloudflare_words.describe,
    "a2a": a2a_words.describe,
}
"""How the frames of a dialect are described, by its name; the most particular come first."""

MAX_KEYS = 6
MAX_TEXT = 40
MAX_WORDS = 200
"""Characters of a whole description."""


@functools.cache
def _dialects() -> tuple[Dialect, ...]:
    return registry.dialects()  # which looks into folders: too slow for every exchange


def dialects_of(head: RequestHead | None) -> list[str]:
    """Return the names of the dialects that may read an exchange."""
    if head is None:
        return []
    found = []
    for dialect in _dialects():
        try:
            if dialect.reads(head):
                found.append(dialect.name)
        except Exception:  # noqa: BLE001, S112 - a dialect that fails says nothing
            continue
    return found


def describe(head: RequestHead | None, frame: Frame) -> str:
    """Return what a frame of the exchange with this request head means."""
    return in_words(dialects_of(head), frame)


def in_words(dialects: list[str], frame: Frame) -> str:
    """Return what a frame means, by the first of these dialects that knows it."""
    words = _known(dialects, frame) or _shape(frame)
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"  # ids have no bound


def is_known(dialects: list[str], frame: Frame) -> bool:
    """Tell whether a dialect knows the frame."""
    return _known(dialects, frame) is not None


def _known(dialects: list[str], frame: Frame) -> str | None:
    for name, describe_as in WORDS.items():
        if name in dialects:
            try:
                words = describe_as(frame)
            except Exception:  # noqa: BLE001 - what nobody can read has a shape all the same
                words = None
            if words is not None:
                return words
    return None


def _shape(frame: Frame) -> str:
    payload = frame.payload
    if frame.kind is Kind.SSE and not payload:
        return "comment" if frame.wire[:1] == b":" else "event without data"
    if not payload:
        return "empty"
    if frame.kind is Kind.SSE and payload == b"[DONE]":
        return "end of the stream"
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"{len(payload):,} bytes" if frame.kind is Kind.WS_BINARY else _text(payload)
    if isinstance(found, dict):
        kind = found.get("type")
        if isinstance(kind, str) and isinstance(found.get("delta"), str):
            return f"{kind} {_shown(found['delta'])}"  # of the AI SDK's UI stream, and its like
        keys = ", ".join(list(found)[:MAX_KEYS]) + (", …" if len(found) > MAX_KEYS else "")
        return f"{kind}" if isinstance(kind, str) and kind else f"JSON object: {keys}"
    if isinstance(found, list):
        return f"JSON array of {len(found)}"
    return f"JSON {type(found).__name__}"


def _text(payload: bytes) -> str:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return f"{len(payload):,} bytes"
    return f"text of {len(text):,} characters"


def _shown(text: str) -> str:
    cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
    return f"'{cut}'" if cut.isprintable() else ascii(cut)
