"""The A2A protocol, 0.2 to 1.0: what the frames of an agent say, and which requests are its own.

The same objects come as SSE events, response bodies and WebSocket messages, as JSON text or msgpack
maps, bare or as the result of a JSON-RPC response. The style of the envelope, of the enumerations
and of the parts is found out one by one, because servers mix them. A frame of this protocol with
the wrong shape is `Unreadable`, whatever is not of this protocol None: both pass.

Reading is here, writing in `a2a_write`, agent cards in `a2a_card`.

Source: a2aproject/A2A v0.2.6, v0.3.0 (`types/src/types.ts`), v1.0.1 (`specification/a2a.proto`).
"""

from typing import Final, cast

from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.sse import BOM
from midstream.dialects.a2a_events import INTERRUPTED as INTERRUPTED
from midstream.dialects.a2a_events import STATES as STATES
from midstream.dialects.a2a_events import TERMINAL as TERMINAL
from midstream.dialects.a2a_events import Artifact as Artifact
from midstream.dialects.a2a_events import ArtifactUpdate as ArtifactUpdate
from midstream.dialects.a2a_events import Event as Event
from midstream.dialects.a2a_events import Failure as Failure
from midstream.dialects.a2a_events import Message as Message
from midstream.dialects.a2a_events import Part as Part
from midstream.dialects.a2a_events import Reading
from midstream.dialects.a2a_events import StatusUpdate as StatusUpdate
from midstream.dialects.a2a_events import Task as Task
from midstream.dialects.a2a_events import Unreadable as Unreadable
from midstream.dialects.a2a_events import ends_turn as ends_turn
from midstream.dialects.a2a_heads import JSON_TYPES, base_path
from midstream.dialects.a2a_heads import Asked as Asked
from midstream.dialects.a2a_heads import asked_by_path as asked_by_path
from midstream.dialects.a2a_heads import card_path as card_path
from midstream.dialects.a2a_heads import keeps_only_last as keeps_only_last
from midstream.dialects.a2a_heads import read_request as read_request
from midstream.dialects.a2a_read import essence as essence
from midstream.dialects.a2a_read import read_payload

_NAMES: Final = (b"artifact", b"jsonrpc", b"status", b"messageId", b"error")


def read(frame: Frame) -> Event | Unreadable | None:
    """Read a frame of the server once; later calls return what the first one read."""
    reading = frame.reading
    if isinstance(reading, Reading):
        return cast("Event | Unreadable", reading)  # nothing else is a Reading
    if frame.sender is not Side.SERVER or not _has_mark(frame.wire):
        return None
    payload = frame.payload.removeprefix(BOM)
    found = read_payload(payload, is_body=frame.kind is Kind.BODY)
    if found is not None and reading is None:
        frame.remember(found)
    return found


def _has_mark(wire: bytes) -> bool:
    """Tell whether a frame may be of this protocol: every event of every stream is asked this.

    One of these names is in each frame that is. Five searches cost less than one regular expression
    of all the names (measured). Only in msgpack the names have no quotes.
    """
    if wire[:1] < b"\x80":
        return (
            wire.find(b'"artifact') >= 0
            or wire.find(b'"jsonrpc"') >= 0
            or wire.find(b'"status') >= 0
            or wire.find(b'"messageId"') >= 0
            or wire.find(b'"error"') >= 0
        )
    return any(map(wire.__contains__, _NAMES))


class A2A:
    """The dialect: any WebSocket, a POST of JSON, a GET of a card, of a task or of its stream."""

    name: Final = "a2a"

    def reads(self, head: RequestHead) -> bool:
        if head.is_websocket:
            return True
        if head.method == "POST":
            return head.content_type in JSON_TYPES or asked_by_path(head) is Asked.SUBSCRIBE
        return head.method == "GET" and asked_by_path(head) in _GETS

    def reads_response(self, head: RequestHead, response: ResponseHead) -> bool:
        if response.status != 200:
            return False
        return response.is_event_stream or response.content_type in JSON_TYPES

    def conversation_path(self, head: RequestHead) -> str:
        return base_path(head)


_GETS: Final = (Asked.CARD, Asked.GET, Asked.SUBSCRIBE)
DIALECT: Final = A2A()
