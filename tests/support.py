"""Builders and fakes for the tests: frames, heads, addons that do as told, a sink, a playbook."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from midstream.core.addon import KEEP, Addon, Answer, Ask, Context, Ending, Mode, Verdict
from midstream.core.chain import Bounds, Chain, Pending
from midstream.core.exchange import Exchange, RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.core.ports import Record, RecordKind, Sink
from midstream.core.session import Session

MS = 1_000_000
CLIENT, SERVER = Side.CLIENT, Side.SERVER
EVENT_STREAM = ResponseHead(200, (("Content-Type", "text/event-stream; charset=utf-8"),))
READ_TYPES = ("application/json", "text/event-stream")
UPGRADED = ResponseHead(101, (("Upgrade", "websocket"),))

# --- frames and heads ---------------------------------------------------------------------------


def ws(text: str, sender: Side = SERVER) -> Frame:
    """Return a WebSocket text message."""
    return Frame(sender, Kind.WS_TEXT, text.encode())


def sse(payload: str, sender: Side = SERVER) -> Frame:
    """Return an event with one data line."""
    return Frame(sender, Kind.SSE, f"data: {payload}\n\n".encode())


def texts(frames: Sequence[Frame]) -> list[str]:
    """Return what the frames carry, `> ` in front of what goes to the server, `< ` the client."""
    return [
        ("> " if frame.sender is CLIENT else "< ") + frame.wire.decode("utf-8", "replace")
        for frame in frames
    ]


def request(target: str = "/chat", method: str = "GET", **headers: str) -> RequestHead:
    """Return a request head; an underscore in a header's name is a hyphen."""
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return RequestHead(method, target, pairs)


def upgrade(target: str = "/chat", **headers: str) -> RequestHead:
    """Return the head of a WebSocket upgrade."""
    return request(target, Upgrade="websocket", **headers)


# --- fakes --------------------------------------------------------------------------------------


class Nothing(msgspec.Struct):
    """Options of a fake addon."""


class Seen(msgspec.Struct):
    """The state of a fake addon: what it was shown."""

    frames: list[str] = msgspec.field(default_factory=list)


class FakeAddon(Addon[Seen, Seen]):
    """An addon that does what its hooks are told; `calls` has each call with what it was given.

    A hook is a verdict, an exception to raise, or a function of what the hook is given.
    """

    dialects: ClassVar[tuple[str, ...]] = ("fake",)
    rules: ClassVar[tuple[str, ...]] = ("cut", "swap")
    reasons: ClassVar[tuple[str, ...]] = ("unsure",)
    Options = Nothing

    def __init__(self, name: str = "fake", /, **hooks: object) -> None:
        self.name = name  # type: ignore[misc]  # several fakes run in one chain
        self.hooks = hooks
        self.calls: list[tuple[str, object]] = []
        self.contexts: list[Context[Seen, Seen]] = []

    def new_state(self) -> Seen:
        return self._do("state", None, Seen())

    def new_conversation(self) -> Seen:
        return self._do("conversation", None, Seen())

    def conversation_bytes(self, conversation: Seen) -> int:
        return self._do("size", conversation, 0)

    def on_open(self, ctx: Context[Seen, Seen]) -> Verdict:
        return self._do("open", None, KEEP, ctx)

    def wants(self, response: ResponseHead, ctx: Context[Seen, Seen]) -> bool:
        return self._do("wants", response, True, response, ctx)

    def on_frame(self, frame: Frame, ctx: Context[Seen, Seen]) -> Verdict:
        return self._do("frame", frame, KEEP, frame, ctx)

    def on_answer(self, ask: Ask, answer: Answer, ctx: Context[Seen, Seen]) -> Verdict:
        return self._do("answer", (ask, answer), KEEP, ask, answer, ctx)

    def on_overdue(self, ctx: Context[Seen, Seen]) -> Verdict:
        return self._do("overdue", None, KEEP, ctx)

    def on_end(self, side: Side, ctx: Context[Seen, Seen]) -> Verdict:
        return self._do("end", side, KEEP, side, ctx)

    def on_close(self, ending: Ending, ctx: Context[Seen, Seen]) -> None:
        self._do("close", ending, None, ending, ctx)

    def called(self, hook: str) -> list[object]:
        """Return what a hook was given, call by call."""
        return [given for name, given in self.calls if name == hook]

    def _do[T](self, name: str, given: object, default: T, *arguments: object) -> T:
        self.calls.append((name, given))
        hook = self.hooks.get(name, default)
        if isinstance(hook, Exception):
            raise hook
        return hook(*arguments) if callable(hook) else hook  # type: ignore[return-value]


class FakeDialect:
    """A dialect that reads paths below /chat, and JSON answers."""

    name = "fake"

    def __init__(self, name: str = "fake") -> None:
        self.name = name

    def reads(self, head: RequestHead) -> bool:
        return head.path.startswith("/chat")

    def reads_response(self, head: RequestHead, response: ResponseHead) -> bool:
        return response.content_type in READ_TYPES

    def conversation_path(self, head: RequestHead) -> str:
        return head.path


class FakeSink:
    """Keeps records, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.records: list[Record] = []
        self._error = error

    def write(self, record: Record) -> None:
        if self._error is not None:
            raise self._error
        self.records.append(record)

    def of(self, kind: RecordKind) -> list[Record]:
        return [record for record in self.records if record.kind is kind]


# --- chains and sessions ------------------------------------------------------------------------


def chain_of(
    *addons: FakeAddon,
    mode: Mode = Mode.REPAIR,
    counts: Counts | None = None,
    bounds: Bounds | None = None,
    head: RequestHead | None = None,
) -> Chain:
    """Return a chain of addons, each in the same mode with a conversation of its own."""
    links = [(addon, mode, Seen()) for addon in addons]
    exchange = Exchange.of(head or upgrade(), route="chat")
    return Chain(exchange, links, counts if counts is not None else Counts(), bounds)


def session_of(
    *addons: FakeAddon,
    head: RequestHead | None = None,
    mode: Mode = Mode.REPAIR,
    counts: Counts | None = None,
    bounds: Bounds | None = None,
    sink: Sink | None = None,
    max_frame_bytes: int = 1 << 20,
) -> Session:
    """Return the session of a WebSocket, or of `head`; without addons it has no chain."""
    head = head or upgrade()
    counts = counts if counts is not None else Counts()
    chain = chain_of(*addons, mode=mode, counts=counts, bounds=bounds, head=head)
    return Session(
        Exchange.of(head, number=7, route="chat", upstream="http://127.0.0.1:9"),
        chain if addons else None,
        counts,
        max_frame_bytes=max_frame_bytes,
        sink=sink,
        readers=lambda response: (
            [addon.name for addon in addons] if response.content_type in READ_TYPES else []
        ),
    )


class Playbook:
    """Plays a WebSocket or an event stream through a session: what comes in, and what leaves.

        play = Playbook(session)
        assert play.server("a") == ["< a"]
        assert play.after(10_000) == ["< held"]

    Each line returns what leaves, as `texts` shows it, and collects `asks`.
    """

    def __init__(self, session: Session, now_ns: int = 0) -> None:
        self.session = session
        self.now_ns = now_ns
        self.asks: list[Pending] = []
        self.opened = self._left(session.open(now_ns))

    def client(self, text: str) -> list[str]:
        """The client sends a message."""
        return self._message(CLIENT, text)

    def server(self, text: str) -> list[str]:
        """The server sends a message."""
        return self._message(SERVER, text)

    def bytes_from(self, side: Side, data: bytes) -> list[str]:
        """A side sends bytes of a body or an event stream."""
        return self._left(self.session.receive(side, data, self.now_ns))

    def after(self, ms: float) -> list[str]:
        """Time passes, and the session is woken."""
        self.now_ns += int(ms * MS)
        return self._left(self.session.wake(self.now_ns))

    def answer(self, status: int = 200, body: bytes = b"") -> list[str]:
        """The host brings the answer to the oldest ask."""
        pending = self.asks.pop(0)
        return self._left(self.session.answer(pending, Answer(status, body), self.now_ns))

    def end(self, side: Side) -> list[str]:
        """A side has sent everything."""
        return self._left(self.session.end(side, self.now_ns))

    def _message(self, side: Side, text: str) -> list[str]:
        message = text.encode()
        return self._left(self.session.receive_message(side, Kind.WS_TEXT, message, self.now_ns))

    def _left(self, frames: list[Frame]) -> list[str]:
        self.asks += self.session.take_asks()
        return texts(frames)
