"""Which requests belong to A2A, what they ask for, and which agent they are sent to.

JSON-RPC names what it asks for in the body, HTTP+JSON in the path; version 0.3 puts `/v1` in front
of that path, 1.0 perhaps the name of a tenant. A target is never decoded, so a colon may also come
as `%3A`.

Source: a2aproject/A2A `docs/specification.md` v0.2.6, v0.3.0, v1.0.1.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

from midstream.core import raw
from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.sse import BOM
from midstream.dialects.a2a_codec import JSON, PACKED, REFUSED, codec_of

JSON_TYPES: Final = ("application/json", "application/a2a+json")


class Asked(StrEnum):
    """What a request asks for: a stream, the rest of one, one answer, a task, a card."""

    STREAM = "stream"
    SUBSCRIBE = "subscribe"
    SEND = "send"
    GET = "get"
    CARD = "card"
    OTHER = "other"


_METHODS: Final = {
    "message/stream": Asked.STREAM,
    "SendStreamingMessage": Asked.STREAM,
    "tasks/resubscribe": Asked.SUBSCRIBE,
    "SubscribeToTask": Asked.SUBSCRIBE,
    "message/send": Asked.SEND,
    "SendMessage": Asked.SEND,
    "tasks/get": Asked.GET,
    "GetTask": Asked.GET,
    "agent/getAuthenticatedExtendedCard": Asked.CARD,
    "GetExtendedAgentCard": Asked.CARD,
}
_OTHER_METHODS: Final = re.compile(
    r"tasks/(?:list|cancel|pushNotificationConfig/\w+)"
    r"|(?:ListTasks|CancelTask|(?:Create|Get|List|Delete)TaskPushNotificationConfigs?)"
)
_CARD: Final = re.compile(
    r"/\.well-known/agent(?:-card)?\.json|/agent/authenticatedExtendedCard|(?:/v1)?/card"
    r"|/extendedAgentCard"
)
_OPERATION: Final = re.compile(
    r"(?:/v1)?(?:/message(?::|%3[Aa])(?P<message>stream|send)"
    r"|/tasks(?:/(?P<task>[^/]+?)(?:(?::|%3[Aa])(?P<verb>subscribe|cancel)"
    r"|/(?P<config>pushNotificationConfigs(?:/[^/]+)?))?)?)"
)


def _suffix(pattern: re.Pattern[str], path: str) -> re.Match[str] | None:
    """Find the longest end of a path that a pattern matches, from a slash on."""
    at = path.find("/")
    while at >= 0:
        found = pattern.fullmatch(path, at)
        if found:
            return found
        at = path.find("/", at + 1)
    return None


def card_path(head: RequestHead) -> bool:
    """Tell whether the response to this GET is an agent card."""
    return head.method == "GET" and _suffix(_CARD, head.path) is not None


def asked_by_path(head: RequestHead) -> Asked | None:
    """Return what a request of the HTTP+JSON binding asks for, None if it is none."""
    if card_path(head):
        return Asked.CARD
    found = _suffix(_OPERATION, head.path)
    if found is None:
        return None
    if found["verb"] == "subscribe":
        return Asked.SUBSCRIBE if head.method in ("GET", "POST") else None
    if found["message"]:
        asked = Asked.STREAM if found["message"] == "stream" else Asked.SEND
        return asked if head.method == "POST" else None
    if found["task"] and not found["verb"] and not found["config"] and head.method == "GET":
        return Asked.GET
    return Asked.OTHER


def base_path(head: RequestHead) -> str:
    """Return the path of the agent: what stands in front of the known suffixes."""
    found = _suffix(_CARD, head.path) or _suffix(_OPERATION, head.path)
    return (head.path[: found.start()] if found else head.path).rstrip("/") or "/"


class _Call(msgspec.Struct):
    method: str


_CALLS: Final = {JSON: JSON.decoder(_Call), PACKED: PACKED.decoder(_Call)}


def read_request(frame: Frame, head: RequestHead) -> Asked | None:
    """Return what a frame of the client asks for, None if it asks nothing of this protocol."""
    if frame.sender is not Side.CLIENT:
        return None
    asked = _read_method(frame.payload) if b"method" in frame.wire else None
    if asked is None and frame.kind is Kind.BODY:
        return asked_by_path(head)
    return asked


def _read_method(payload: bytes) -> Asked | None:
    payload = payload.removeprefix(BOM)
    codec = codec_of(payload)
    try:
        method: object = _CALLS[codec].decode(payload).method
    except msgspec.ValidationError:
        return None  # it is sound, and has no method that is text
    except REFUSED:
        try:
            method = codec.scalar(codec.members(payload).get("method", codec.null))
        except raw.Malformed:
            return None
    if not isinstance(method, str):
        return None
    if _OTHER_METHODS.fullmatch(method):
        return Asked.OTHER
    return _METHODS.get(method)


# --- clients that keep only the end of an artifact ------------------------------------------------

_ADK_EXTENSION: Final = "google.github.io/adk-docs/a2a/a2a-extension"
_EXTENSION_HEADERS: Final = ("a2a-extensions", "x-a2a-extensions")
_ADK_MARK: Final = b"is_user_input"


class _Mark(msgspec.Struct):
    is_user_input: object = None


class _MarkedPart(msgspec.Struct):
    metadata: _Mark | None = None


class _MarkedMessage(msgspec.Struct):
    parts: list[_MarkedPart] = []
    content: list[_MarkedPart] = []


class _Sent(msgspec.Struct):
    """The message of a request: in its `params`, or by itself (HTTP+JSON)."""

    message: _MarkedMessage | None = None
    params: "_Sent | None" = None


_SENT: Final = {JSON: JSON.decoder(_Sent), PACKED: PACKED.decoder(_Sent)}


def keeps_only_last(frame: Frame, head: RequestHead) -> bool:
    """Tell whether the client of a request keeps of an artifact only its last update.

    ADK's RemoteA2aAgent does: all updates without `lastChunk` are partial to it, and the last one
    has to hold the whole text. It names ADK's extension, or marks the parts of its message.

    Source: google/adk-python v2.13.0 `a2a/converters/to_adk_event.py`, `a2a/agent/interceptors`.
    """
    named = (head.header(name) or "" for name in _EXTENSION_HEADERS)
    if any(_ADK_EXTENSION in names for names in named):
        return True
    if _ADK_MARK not in frame.wire:
        return False
    payload = frame.payload.removeprefix(BOM)
    try:
        sent = _SENT[codec_of(payload)].decode(payload)
    except REFUSED:
        return False
    message = sent.message or (sent.params.message if sent.params else None)
    parts = [*message.parts, *message.content] if message else []
    return any(part.metadata and part.metadata.is_user_input is True for part in parts)
