"""The server's own messages: where to fetch them, and whether they hold what was seen."""

from midstream.core import raw
from midstream.core.addon import Answer
from midstream.core.exchange import RequestHead
from midstream.dialects.cloudflare_chat import HISTORY_SUFFIX
from midstream.dialects.cloudflare_transcript import Transcript, take_apart


def history_target(head: RequestHead) -> str:
    """Return the target of the chat's messages: the socket's, without the page's `_pk`."""
    query = "&".join(p for p in head.query.split("&") if p and not p.startswith("_pk="))
    return head.path + HISTORY_SUFFIX + (f"?{query}" if query else "")


def read_history(answer: Answer) -> list[bytes] | None:
    """Return the messages fetched, or None if there are none to be had."""
    if answer.status != 200:
        return None
    try:
        return raw.elements(answer.body)
    except raw.Malformed:
        return None


def is_behind(documents: list[bytes], transcript: Transcript) -> bool:
    """Tell whether these messages hold less text than has already passed."""
    seen = [transcript.current(m) for m in transcript.messages if m.role == "assistant"]
    return text_bytes(documents) < text_bytes(seen)


def text_bytes(documents: list[bytes]) -> int:
    """Return how much text the assistant messages among these hold."""
    total = 0
    for document in documents:
        try:
            message = take_apart(document)
        except raw.Malformed:
            continue
        if message.fields.get("role") == b'"assistant"':
            texts = (raw.text_of(b'"' + bytes(p.text or b"") + b'"') for p in message.parts)
            total += sum(len(text or "") for text in texts)
    return total


def last_assistant(documents: list[bytes]) -> bytes | None:
    """Return the last assistant message of a list."""
    for document in reversed(documents):
        try:
            if raw.members(document).get("role") == b'"assistant"':
                return document
        except raw.Malformed:
            continue
    return None
