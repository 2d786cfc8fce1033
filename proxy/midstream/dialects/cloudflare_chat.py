"""The chat protocol of Cloudflare agents: JSON envelopes in WebSocket text messages.

Frames are recognised by their `type`, never by the path. A reader returns None for whatever is not
of this protocol, and `Unreadable` for a frame of it that has the wrong shape: such a frame passes.

Source: cloudflare/agents `packages/agents/src/chat/parse-protocol.ts` and `wire-types.ts` at
03cdc828 (agents 0.17.4), ffc2d958 (0.19.0), and the published agents 0.24.0 and 0.32.0.
"""

from functools import cached_property
from typing import Final, cast

import msgspec

from midstream.core import edit, raw
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side

HISTORY_SUFFIX: Final = "/get-messages"
BODY_TYPES: Final = (
    "application/json", "application/msgpack", "application/x-msgpack", "application/vnd.msgpack",
)  # fmt: skip
_PREFIX: Final = "cf_agent_"
_PREFIX_BYTES: Final = b'"cf_agent_'


class Init(msgspec.Struct):
    method: str = "GET"
    body: str = ""


class ChatRequest(msgspec.Struct, tag_field="type", tag="cf_agent_use_chat_request", dict=True):
    """A turn: `init.body` is JSON text that holds the client's messages and the trigger.

    It is large, so it is read once (`upload`); a turn whose upload is given has no text of it.
    """

    id: str
    init: Init

    @classmethod
    def holding(cls, request: str, upload: "Upload") -> "ChatRequest":
        """Return a turn as `read` would after a change of its body, without decoding it again."""
        turn = cls(request, Init("POST"))
        turn.__dict__["upload"] = upload
        return turn

    @cached_property
    def upload(self) -> "Upload | None":
        if self.init.method != "POST":
            return None
        return read_upload_body(self.init.body.encode("utf-8", "surrogatepass"))


class ResumeRequest(msgspec.Struct, tag_field="type", tag="cf_agent_stream_resume_request"):
    """The client asks whether a stream is running."""

    probeId: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ResumeAck(msgspec.Struct, tag_field="type", tag="cf_agent_stream_resume_ack"):
    """The client takes an offer: the server answers with the whole stream so far."""

    id: str


class ToolResult(msgspec.Struct, tag_field="type", tag="cf_agent_tool_result"):
    """The outcome of a tool that the client ran."""

    toolCallId: str
    output: msgspec.Raw = msgspec.Raw(b"null")
    state: str = "output-available"
    errorText: str = ""
    autoContinue: bool = True


class ToolApproval(msgspec.Struct, tag_field="type", tag="cf_agent_tool_approval"):
    """A person's answer to a tool that asked for approval."""

    toolCallId: str
    autoContinue: bool = True


class Clear(msgspec.Struct, tag_field="type", tag="cf_agent_chat_clear"):
    """The chat is emptied; either side may say so."""


class MessageList(msgspec.Struct, tag_field="type", tag="cf_agent_chat_messages"):
    """All messages of the chat; either side may send it."""

    messages: list[msgspec.Raw]


class MessageUpdated(msgspec.Struct, tag_field="type", tag="cf_agent_message_updated"):
    """One message that replaces the one with its id."""

    message: msgspec.Raw


class Response(msgspec.Struct, tag_field="type", tag="cf_agent_use_chat_response"):
    """One chunk of a stream (`body` is its JSON text), its end, or an error in prose."""

    id: str
    body: str = ""
    done: bool = False
    error: bool = False
    continuation: bool = False
    replay: bool = False
    replayComplete: bool = False


class Resuming(msgspec.Struct, tag_field="type", tag="cf_agent_stream_resuming"):
    """The server offers a running stream."""

    id: str


class ResumeNone(msgspec.Struct, tag_field="type", tag="cf_agent_stream_resume_none"):
    """The server has no stream to offer."""


class Identity(msgspec.Struct, tag_field="type", tag="cf_agent_identity"):
    """The server's greeting; an offer of a running stream comes before it."""


class Unreadable(msgspec.Struct):
    """A frame of this protocol that has the wrong shape."""

    type: str


type Message = (
    ChatRequest | ResumeRequest | ResumeAck | ToolResult | ToolApproval | Clear | MessageList
    | MessageUpdated | Response | Resuming | ResumeNone | Identity | Unreadable
)  # fmt: skip

_KNOWN = (
    ChatRequest, ResumeRequest, ResumeAck, ToolResult, ToolApproval, Clear, MessageList,
    MessageUpdated, Response, Resuming, ResumeNone, Identity,
)  # fmt: skip
_TAGS: Final = frozenset(str(known.__struct_config__.tag) for known in _KNOWN)
_DECODER: Final = msgspec.json.Decoder(
    ChatRequest | ResumeRequest | ResumeAck | ToolResult | ToolApproval | Clear | MessageList
    | MessageUpdated | Response | Resuming | ResumeNone | Identity
)  # fmt: skip


class _Typed(msgspec.Struct):
    type: str


_TYPED: Final = msgspec.json.Decoder(_Typed)


def read(frame: Frame) -> Message | None:
    """Read a WebSocket text message once; later calls return what the first one read."""
    if frame.kind is not Kind.WS_TEXT or frame.wire.find(_PREFIX_BYTES) < 0:
        return None
    if frame.reading is None:
        frame.remember(_decode(frame.wire) or False)
    return cast("Message | None", frame.reading or None)  # only this function remembers here


def _decode(wire: bytes) -> Message | None:
    try:
        return cast("Message", _DECODER.decode(wire))
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_leniently(wire)
    try:
        name = _TYPED.decode(wire).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Unreadable(name) if name in _TAGS else None


def _decode_leniently(wire: bytes) -> Message | None:
    """Read a list or an update with a lone surrogate in it, which msgspec refuses."""
    try:
        fields = raw.members(wire)
        name = raw.text_of(fields.get("type")) or ""
        if name == "cf_agent_chat_messages":
            return MessageList([msgspec.Raw(m) for m in raw.elements(fields["messages"])])
        if name == "cf_agent_message_updated":
            return MessageUpdated(msgspec.Raw(fields["message"]))
    except (raw.Malformed, KeyError):
        return None
    return Unreadable(name) if name in _TAGS else None


# --- what the frames hold ------------------------------------------------------------------------


class Upload(msgspec.Struct):
    """The JSON text of a turn's body: its messages as raw JSON, and what triggered it."""

    messages: list[bytes]
    trigger: str


def read_upload(request: ChatRequest) -> Upload | None:
    """Read the body of a turn once, or return None if it holds no list of messages."""
    return request.upload


class _UploadBody(msgspec.Struct):
    messages: list[msgspec.Raw]
    trigger: str = ""


_UPLOAD: Final = msgspec.json.Decoder(_UploadBody)


def read_upload_body(body: bytes) -> Upload | None:
    """Read a request body of the same shape, or return None."""
    try:
        decoded = _UPLOAD.decode(body)
        return Upload([bytes(message) for message in decoded.messages], decoded.trigger)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        fields = raw.members(body)
        messages = raw.elements(fields["messages"])
        return Upload(messages, raw.text_of(fields.get("trigger")) or "")
    except (raw.Malformed, KeyError):
        return None


class MessageHead(msgspec.Struct):
    """What a message is known by."""

    id: str = ""
    role: str = ""


_HEAD: Final = msgspec.json.Decoder(MessageHead)


def read_message_head(message: bytes) -> MessageHead | None:
    """Read id and role of a message, or return None if it has none that are text."""
    try:
        return _HEAD.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        fields = raw.members(message)
    except raw.Malformed:
        return None
    identifier, role = raw.text_of(fields.get("id")), raw.text_of(fields.get("role"))
    return None if identifier is None or role is None else MessageHead(identifier, role)


def read_chunk(response: Response) -> dict[str, bytes] | None:
    """Read the chunk in a response, or return None if its body is no JSON object."""
    if response.error or not response.body:
        return None
    try:
        return raw.members(response.body.encode("utf-8", "surrogatepass"))
    except raw.Malformed:
        return None


# --- frames the proxy makes -----------------------------------------------------------------------


def text_frame(sender: Side, fields: dict[str, bytes]) -> Frame:
    """Return a text message with these members, in ASCII but for what `fields` hold raw."""
    return Frame(sender, Kind.WS_TEXT, raw.document(fields))


def message_list(messages: list[bytes]) -> Frame:
    """Return the server's list of all messages."""
    return text_frame(
        Side.SERVER,
        {"type": b'"cf_agent_chat_messages"', "messages": raw.array(messages)},
    )


def message_updated(message: bytes) -> Frame:
    """Return the server's replacement of one message."""
    return text_frame(Side.SERVER, {"type": b'"cf_agent_message_updated"', "message": message})


def resume_ack(stream: str) -> Frame:
    """Return the client's acceptance of an offer."""
    return text_frame(
        Side.CLIENT, {"type": b'"cf_agent_stream_resume_ack"', "id": raw.quote(stream)}
    )


def resuming(stream: str, probe: bytes | None) -> Frame:
    """Return the server's offer of a stream."""
    fields = {"type": b'"cf_agent_stream_resuming"', "id": raw.quote(stream)}
    return text_frame(Side.SERVER, fields if probe is None else {**fields, "probeId": probe})


def resume_none(probe: bytes | None) -> Frame:
    """Return the server's answer that no stream is running."""
    fields = {"type": b'"cf_agent_stream_resume_none"'}
    return text_frame(Side.SERVER, fields if probe is None else {**fields, "probeId": probe})


def with_chunk(frame: Frame, chunk: dict[str, bytes], *edits: edit.Set | edit.Delete) -> Frame:
    """Return a response like this one that carries another chunk; the rest keeps its bytes.

    Raises EditError.
    """
    body = raw.quote(raw.document(chunk).decode("utf-8", "surrogateescape"))
    return frame.with_payload(edit.apply(frame.wire, edit.Set(("body",), body), *edits))


class CloudflareChat:
    """The dialect: any WebSocket, a GET of a chat's messages, or a POST of JSON or msgpack."""

    name: Final = "cloudflare_chat"

    def reads(self, head: RequestHead) -> bool:
        if head.is_websocket:
            return True
        if head.method == "GET":
            return head.path.endswith(HISTORY_SUFFIX)
        return head.method == "POST" and head.content_type in BODY_TYPES

    def reads_response(self, head: RequestHead, response: ResponseHead) -> bool:
        return (
            head.method == "GET"
            and head.path.endswith(HISTORY_SUFFIX)
            and response.status == 200
            and response.content_type == "application/json"
        )

    def conversation_path(self, head: RequestHead) -> str:
        return head.path.removesuffix(HISTORY_SUFFIX)


DIALECT: Final = CloudflareChat()
