"""The server's own messages: where to fetch them, and whether they hold what was seen."""

from midstream.core import raw
from midstream.core.addon import Answer
from midstream.core.exchange import RequestHead
from midstream.dialects.cloudflare_chat import HISTORY_SUFFIX, Response, read_chunk
from midstream.dialects.cloudflare_transcript import Transcript, take_apart
from midstream.dialects.ui_stream import Fold


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


def is_behind(documents: list[bytes], transcript: Transcript, least_bytes: int = 0) -> bool:
    """Tell whether these messages hold less text than has already passed."""
    seen = [transcript.current(m) for m in transcript.messages if m.role == "assistant"]
    return text_bytes(documents) < max(text_bytes(seen), least_bytes)


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


def streamed_bytes(responses: list[Response]) -> int:
    """Return how much text a replay holds."""
    fold = Fold()
    for chunk in map(read_chunk, responses):
        if chunk is not None:
            fold.apply(chunk)
    parts = raw.array([part.json() for part in fold.parts])
    return text_bytes([raw.document({"role": b'"assistant"', "parts": parts})])


def last_assistant(documents: list[bytes]) -> bytes | None:
    """Return the last assistant message of a list."""
    for document in reversed(documents):
        try:
            if raw.members(document).get("role") == b'"assistant"':
                return document
        except raw.Malformed:
            continue
    return None
