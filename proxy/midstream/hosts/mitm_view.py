"""A contentview of mitmproxy that shows frames by dialect: one line each, and what was mended.

mitmproxy keeps a streamed body as it left and a WebSocket message as it came, so the view of a body
begins with what was mended in it, and that of a message tells what left in its place.
"""

import json
from collections.abc import Iterator, Sequence

from mitmproxy import contentviews, http
from mitmproxy.contentviews import Contentview, Metadata, SyntaxHighlight

from midstream import describing
from midstream.core.errors import WireError
from midstream.core.exchange import RequestHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.sse import SseSplitter
from midstream.hosts.gateway_heads import decoded
from midstream.hosts.mitm_notes import KEY, Note, digest, notes_of

EVENT_STREAM = "text/event-stream"
MAX_EVENT_BYTES = 1 << 20
MAX_EVENTS = 2_000
MAX_INLINE_BYTES = 4_096
"""A longer payload of an event is cut here; mitmproxy's raw view has all of it."""


class MidstreamContentview(Contentview):
    """SSE bodies event by event; WebSocket messages and JSON bodies of known dialects."""

    @property
    def name(self) -> str:
        return KEY

    @property
    def syntax_highlight(self) -> SyntaxHighlight:
        return "yaml"

    def render_priority(self, data: bytes, metadata: Metadata) -> float:
        flow = metadata.flow
        if not data or not isinstance(flow, http.HTTPFlow):
            return -1
        if metadata.content_type == EVENT_STREAM:
            return 2
        is_json = data[:1] in b"[{" and (metadata.content_type or "").endswith("json")
        if metadata.websocket_message is None and not is_json:
            return -1
        return 2 if flow.metadata.get(KEY) or _is_known(data, metadata, flow) else -1

    def prettify(self, data: bytes, metadata: Metadata) -> str:
        flow = metadata.flow
        if not isinstance(flow, http.HTTPFlow):
            raise ValueError("midstream shows HTTP and WebSocket flows")
        return "\n".join(_lines(data, metadata, flow))


def install() -> None:
    """Add the view to mitmproxy's; one that is there already is replaced."""
    contentviews.add(MidstreamContentview())


def _lines(data: bytes, metadata: Metadata, flow: http.HTTPFlow) -> Iterator[str]:
    dialects = describing.dialects_of(_head(flow))
    notes, dropped = notes_of(flow)
    frame = _frame(data, metadata)
    side = frame.sender
    if metadata.websocket_message is not None:
        yield from _message(dialects, frame, notes)
        return
    mine = [note for note in notes if note.rules and note.side in (side.value, "")]
    if mine:
        yield f"# {len(mine)} mended here" + (f", {dropped} more notes dropped" if dropped else "")
        for note in mine:
            yield from _mended(note)
        yield ""
    if metadata.content_type == EVENT_STREAM:
        yield from _events(dialects, side, data, notes)
    else:
        yield from _message(dialects, frame, [])


def _message(dialects: list[str], frame: Frame, notes: Sequence[Note]) -> Iterator[str]:
    """Return a message or body: what it means, what became of it, and its JSON laid out."""
    yield f"# from the {frame.sender.value}: {describing.in_words(dialects, frame)}"
    known = digest(frame.sender, frame.payload)
    for note in notes:
        if note.frame == known:
            yield from _mended(note) if note.rules else _declined(note)
    yield _laid_out(frame)


def _events(dialects: list[str], side: Side, data: bytes, notes: Sequence[Note]) -> Iterator[str]:
    made = {known: note for note in notes if note.rules for known in note.sent}
    alone = {note.frame: note for note in notes if not note.rules}
    for number, wire in enumerate(_split(data), 1):
        if number > MAX_EVENTS:
            yield f"# more than {MAX_EVENTS} events: the raw view has the rest"
            return
        frame = Frame(side, Kind.SSE, wire)
        known = digest(side, frame.payload)
        yield f"# {number}: {describing.in_words(dialects, frame)}"
        if known in made:
            yield f"#    {_words(made[known].rules)}"
        elif known in alone:
            yield from _declined(alone[known])
        payload = frame.payload or wire.strip()
        cut = " ..." if len(payload) > MAX_INLINE_BYTES else ""
        yield payload[:MAX_INLINE_BYTES].decode("utf-8", "replace") + cut


def _mended(note: Note) -> Iterator[str]:
    yield f"# MENDED #{note.seq}  {_words(note.rules)}"
    yield from (f"#   {line}" for line in note.why)
    for text in note.before:
        yield f"#   before: {text}"
    if note.count < 0:
        yield "#   it went on as it came"
    elif note.count == 0:
        yield "#   nothing left"
    for number, text in enumerate(note.after, 1):
        yield f"#   after{f' {number} of {note.count}' if note.count > 1 else ''}: {text}"


def _declined(note: Note) -> Iterator[str]:
    yield f"# left alone: {_words(note.skips)}"
    yield from (f"#   {line}" for line in note.why)


def _words(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(dict.fromkeys(f"{addon}: {word}" for addon, word in pairs))


def _laid_out(frame: Frame) -> str:
    """Return a payload as JSON in lines; the text as it is where it is not JSON."""
    text = frame.payload.decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _split(data: bytes) -> list[bytes]:
    """Return the events of a body; what is behind the last one, or too large, as it is."""
    splitter = SseSplitter(MAX_EVENT_BYTES)
    try:
        events = list(splitter.receive(data))
    except WireError:
        events = list(splitter.completed())
    rest = splitter.flush()
    return [*events, rest] if rest else events


def _head(flow: http.HTTPFlow) -> RequestHead:
    request = flow.request
    target = request.data.path.decode("utf-8", "surrogateescape")
    return RequestHead(request.method, target, decoded(request.headers.fields))


def _is_known(data: bytes, metadata: Metadata, flow: http.HTTPFlow) -> bool:
    return describing.is_known(describing.dialects_of(_head(flow)), _frame(data, metadata))


def _frame(data: bytes, metadata: Metadata) -> Frame:
    """Return a message or body as a frame."""
    if (message := metadata.websocket_message) is not None:
        side = Side.CLIENT if message.from_client else Side.SERVER
        return Frame(side, Kind.WS_TEXT if message.is_text else Kind.WS_BINARY, data)
    is_request = isinstance(metadata.http_message, http.Request)
    return Frame(Side.CLIENT if is_request else Side.SERVER, Kind.BODY, data)
