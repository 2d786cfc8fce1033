"""Says in a few words what a message of the chat means."""

from midstream.core import raw
from midstream.core.frames import Frame, Kind
from midstream.dialects import cloudflare_chat as chat

MAX_TEXT = 40
MAX_KEYS = 6
AGENT = "cf_agent_"


def describe(frame: Frame) -> str | None:
    """Return the words, or None for what is no message of the chat."""
    if frame.kind is Kind.BODY:
        return _list_of_messages(frame.payload)
    message = chat.read(frame)
    if message is None:
        return _other(frame.payload)
    return _of_client(message) or _of_server(message)


def _of_client(message: chat.Message) -> str | None:
    match message:
        case chat.ChatRequest():
            upload = chat.read_upload(message)
            said = "" if upload is None else f": {_messages(upload.messages)}"
            return f"chat request {message.id}{said}"
        case chat.ResumeRequest():
            return "asks whether an answer is running"
        case chat.ResumeAck():
            return f"accepts the running answer {message.id}"
        case chat.ToolResult():
            return f"tool result {message.toolCallId} {message.state}"
        case chat.ToolApproval():
            return f"tool approval {message.toolCallId}"
        case chat.Clear():
            return "chat cleared"
    return None


def _of_server(message: chat.Message) -> str | None:
    match message:
        case chat.Response():
            return f"response {message.id}: {_chunk(message)}{_flags(message)}"
        case chat.Resuming():
            return f"offers the running answer {message.id}"
        case chat.ResumeNone():
            return "no answer is running"
        case chat.MessageList():
            return f"list: {_messages([bytes(m) for m in message.messages])}"
        case chat.MessageUpdated():
            return f"message updated: {_message(bytes(message.message))}"
        case chat.Identity():
            return "identity of the agent"
        case chat.Unreadable():
            return f"{message.type}, unreadable"
    return None


def _other(payload: bytes) -> str | None:
    """Name what the agent's protocol sends beside the chat: state, calls, servers."""
    try:
        found = raw.members(payload)
    except raw.Malformed:
        return None
    kind = raw.text_of(found.get("type"))
    if kind == "rpc":
        return _rpc(found)
    if kind is None or not kind.startswith(AGENT):
        return None
    name = kind.removeprefix(AGENT).replace("_", " ")
    try:
        keys = list(raw.members(found["state"])) if "state" in found else []
    except raw.Malformed:
        keys = []
    more = ", …" if len(keys) > MAX_KEYS else ""
    return f"{name}: {', '.join(keys[:MAX_KEYS])}{more}" if keys else name


def _rpc(found: dict[str, bytes]) -> str:
    number = raw.text_of(found.get("id")) or "?"
    method = raw.text_of(found.get("method"))
    if method is not None:
        return f"rpc {number} calls {method}"
    if found.get("success") == b"false":
        return f"rpc {number} failed"
    return f"rpc {number} answers{', more to come' if found.get('done') == b'false' else ''}"


def _list_of_messages(payload: bytes) -> str | None:
    try:
        return f"list: {_messages(raw.elements(payload))}"
    except raw.Malformed:
        return None


def _messages(messages: list[bytes]) -> str:
    count = f"{len(messages)} message{'' if len(messages) == 1 else 's'}"
    return f"{count}, the last {_message(messages[-1])}" if messages else count


def _message(document: bytes) -> str:
    head = chat.read_message_head(document)
    if head is None:
        return "unreadable"
    try:
        parts = raw.elements(raw.members(document).get("parts", b"[]"))
    except raw.Malformed:
        parts = []
    return f"{head.role} {head.id} with {len(parts)} part{'' if len(parts) == 1 else 's'}"


def _chunk(message: chat.Response) -> str:
    if not message.body:
        return "end" if message.done else "nothing"
    chunk = chat.read_chunk(message)
    if chunk is None:
        return f"{len(message.body)} characters"
    kind = raw.text_of(chunk.get("type")) or "?"
    text = raw.text_of(chunk.get("delta"))
    if text is not None:
        return f"{kind} {_shown(text)}"
    for key in ("toolName", "toolCallId", "messageId", "id"):
        name = raw.text_of(chunk.get(key))
        if name:
            return f"{kind} {name}"
    return kind


def _shown(text: str) -> str:
    cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
    return ascii(cut) if not cut.isprintable() else f"'{cut}'"


def _flags(message: chat.Response) -> str:
    flags = [
        name
        for name, is_set in (
            ("continuation", message.continuation),
            ("replay", message.replay),
            ("replay complete", message.replayComplete),
            ("error", message.error),
            ("done", message.done and bool(message.body)),
        )
        if is_set
    ]
    return f" ({', '.join(flags)})" if flags else ""
