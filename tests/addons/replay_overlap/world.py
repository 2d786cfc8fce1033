"""A chat server, pages and the product between them, in virtual time.

The server behaves as the real ones were measured to: one stream runs at a time; a socket it has
offered the stream to gets no live chunk until its ACK, and then the whole stream from chunk 0; the
messages it gives out while a stream runs do not hold what the stream adds; a chunk marked `huge`
is broadcast but not replayed.

Every world watches what may never happen, whatever the case (`World.check`).
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.addons.replay_overlap.clients import Chunk, Fields, Message, Page, SdkStream
from tests.addons.replay_overlap.documents import clone, dumps, loads
from tests.addons.replay_overlap.pair import Pair

from midstream.core import metrics
from midstream.core.addon import Answer, Fetch, Mode
from midstream.core.engine import Engine, Route
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.session import Session, State
from midstream.dialects.cloudflare_chat import DIALECT
from midstream_addons.replay_overlap import ADDON

NS = 1_000_000
PATH = "/agents/chat/room"
HEADERS = (("Upgrade", "websocket"),)
JSON = ResponseHead(200, (("Content-Type", "application/json"),))
RESPONSE = "cf_agent_use_chat_response"


def folded(base: list[dict[str, Any]], chunks: list[Chunk]) -> list[dict[str, Any]]:
    """Return the parts that a stream makes of its baseline: what a page must show in the end.

    A part that goes on without a start goes on in the last one of its kind.
    """
    sdk = SdkStream({"id": "", "role": "assistant", "parts": base})
    for chunk in chunks:
        kind, _, step = chunk["type"].rpartition("-")
        key = (kind, chunk.get("id", ""))
        if kind in ("text", "reasoning") and step != "start" and key not in sdk.open:
            sdk.open[key] = next(p for p in reversed(sdk.parts) if p["type"] == kind)
        sdk.apply(chunk)
    return sdk.parts


class Server:
    """One chat on the server.

    `closing` tells when the server sends its list of messages at the end of a stream: `never`,
    `after` or `before` the end. With `splits` that list files a continuation as a message of its
    own. `counts` numbers the chunks, as the server of 0.32 does.
    """

    def __init__(
        self,
        world: "World",
        messages: list[Message],
        *,
        flags_replays: bool = True,
        closing: str = "never",
        splits: bool = False,
        counts: bool = False,
    ) -> None:
        self.world = world
        self.messages: list[Message] = clone(messages)
        self.flags_replays, self.closing = flags_replays, closing
        self.splits, self.counts = splits, counts
        self.sockets: dict[int, bool] = {}  # number -> is parked
        self.stream = ""
        self.chunks: list[tuple[Chunk, str]] = []
        self.target = "A2"
        self.is_continuation = False
        self.is_running = False
        self.has_failed = ""
        self.is_orphan = False
        self.acks: Counter[int] = Counter()
        self.requests: Counter[int] = Counter()
        self.cancels: list[str] = []
        self.expects_stream = False
        self.waiting: list[int] = []

    # --- sockets --------------------------------------------------------------------------------

    def connect(self, socket: int) -> None:
        self.sockets[socket] = self._offers
        if self._offers:
            self.send(socket, type="cf_agent_stream_resuming", id=self.stream)
        self.send(socket, type="cf_agent_identity", name="room")

    @property
    def _offers(self) -> bool:
        return self.is_running or self.is_orphan or bool(self.has_failed)

    def take(self, socket: int, frame: Fields) -> None:
        match frame["type"]:
            case "cf_agent_stream_resume_request":
                self._take_request(socket)
            case "cf_agent_stream_resume_ack":
                self.acks[socket] += 1
                if frame["id"] == self.stream and self.chunks:
                    self.sockets[socket] = False
                    self._replay(socket)
            case "cf_agent_tool_result":
                self._take_result(frame)
            case "cf_agent_use_chat_request":
                self._take_turn(socket, frame)
            case "cf_agent_chat_request_cancel":
                self.cancels.append(frame["id"])
                if self.is_running:
                    self.finish()
            case "cf_agent_chat_clear":
                self.clear(socket)

    def _take_request(self, socket: int) -> None:
        self.requests[socket] += 1
        if self._offers:
            self.sockets[socket] = True
            self.send(socket, type="cf_agent_stream_resuming", id=self.stream)
        elif self.expects_stream:
            self.waiting.append(socket)
            self.send(socket, type="cf_agent_stream_pending")
        else:
            self.send(socket, type="cf_agent_stream_resume_none")

    def _take_turn(self, socket: int, frame: Fields) -> None:
        self.messages = loads(frame["init"]["body"])["messages"]
        for other in self.sockets:
            if other != socket and self.closing != "never":
                self.send(other, type="cf_agent_chat_messages", messages=self.messages)

    def _take_result(self, frame: Fields) -> None:
        self.expects_stream = bool(frame.get("autoContinue"))
        for message in self.messages:
            for part in message["parts"]:
                if part.get("toolCallId") == frame["toolCallId"]:
                    part.update(state="output-available", output=frame["output"])
                    self.broadcast(type="cf_agent_message_updated", message=message)

    def _replay(self, socket: int) -> None:
        for chunk, body in self.chunks:
            if not chunk.get("huge"):
                self._respond(socket, body, replay=True)
        if self.has_failed:
            self.send(socket, **self._failure(self.has_failed))
        elif self.is_running:
            self._respond(socket, "", replay=True, replayComplete=True)
        else:
            self._respond(socket, "", replay=True, done=True)
            if self.is_orphan:
                self.is_orphan = False
                self._file()
                self.broadcast(type="cf_agent_chat_messages", messages=self.messages)

    # --- streams --------------------------------------------------------------------------------

    def start(self, stream: str, is_continuation: bool, target: str = "A2") -> None:
        self.stream, self.is_continuation, self.is_running = stream, is_continuation, True
        self.target, self.has_failed = target, ""
        self.chunks = []
        self.expects_stream = False
        for socket in self.waiting:
            if socket in self.sockets:
                self.sockets[socket] = True
                self.send(socket, type="cf_agent_stream_resuming", id=stream)
        self.waiting.clear()

    def emit(self, chunk: Chunk) -> None:
        body = dumps({k: v for k, v in chunk.items() if k != "huge"}).decode()
        self.chunks.append((chunk, body))
        for socket, is_parked in list(self.sockets.items()):
            if not is_parked:
                self._respond(socket, body)

    def finish(self) -> None:
        self.is_running = False
        self._file()
        if self.closing == "before":
            self.broadcast(type="cf_agent_chat_messages", messages=self.messages)
        for socket in list(self.sockets):
            self._respond(socket, "", done=True)
        if self.closing == "after":
            self.broadcast(type="cf_agent_chat_messages", messages=self.messages)

    def fail(self, text: str) -> None:
        """End the stream with an error; who comes back is told after the replay."""
        self.is_running, self.has_failed = False, text
        self._file()
        for socket in list(self.sockets):
            self.send(socket, **self._failure(text))

    def hibernate(self) -> None:
        """Lose the running stream's life, but not its chunks."""
        self.is_running, self.is_orphan = False, True

    def clear(self, but: int = 0) -> None:
        self.messages, self.chunks, self.has_failed = [], [], ""
        self.is_running = self.is_orphan = False
        for socket in self.sockets:
            if socket != but:
                self.send(socket, type="cf_agent_chat_clear")

    def _failure(self, text: str) -> Fields:
        fields = {"body": text, "done": True, "error": True, "id": self.stream, "type": RESPONSE}
        return fields | ({"continuation": True} if self.is_continuation else {})

    def _file(self) -> None:
        chunks = [chunk for chunk, _ in self.chunks]
        if not self.is_continuation:
            self.messages.append(
                {"id": self.target, "role": "assistant", "parts": folded([], chunks)}
            )
        elif self.splits:
            parts = folded([], chunks)
            self.messages.append({"id": "row", "role": "assistant", "parts": parts})
        else:
            last = self.messages[-1]
            last["parts"] = folded(last["parts"], chunks)

    def _respond(self, socket: int, body: str, **more: Any) -> None:
        flags = {"continuation": True} if self.is_continuation else {}
        if more.get("replay") and not self.flags_replays:
            flags = {}
        frame = {"body": body, "done": False, "id": self.stream, **more, **flags}
        if self.counts and body:
            frame["seq"] = next(i for i, (_, known) in enumerate(self.chunks) if known is body)
        self.send(socket, type=RESPONSE, **frame)

    def broadcast(self, **frame: Any) -> None:
        for socket in list(self.sockets):
            self.send(socket, **frame)

    def send(self, socket: int, **frame: Any) -> None:
        self.world.from_server(socket, dumps(frame))


class World:
    """Server, product and pages. `options` are the addon's; latencies are in milliseconds.

    `fetched` answers what the product fetches; without it the server's messages do.
    """

    def __init__(
        self,
        messages: list[Message],
        *,
        latency: tuple[int, int] = (0, 0),
        mode: Mode = Mode.REPAIR,
        products: int = 1,
        server: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.now = 0
        self.client_ms, self.server_ms = latency
        self.server = Server(self, messages, **(server or {}))
        self.mode, self.options, self.products = mode, options, products
        self.engines: list[Engine] = []
        self.restart()
        self.pages: dict[int, Page] = {}
        self.sessions: dict[int, Session | Pair] = {}
        self.received: dict[int, list[Frame]] = {}
        self.sent: dict[int, list[Frame]] = {}
        self.delivered: dict[int, list[Frame]] = {}
        self.fetched: Callable[[], Answer] | None = None
        self.fetches = 0
        self.is_deaf: set[int] = set()
        self.is_over: set[int] = set()
        self._wakes: dict[int, int] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count(1)

    def restart(self) -> None:
        """Start the product anew: it knows nothing."""
        addon = ADDON(ADDON.Options(**self.options))
        route = Route("chat", "/*", "http://upstream", ((addon, self.mode),))
        self.running = [Engine([route], [DIALECT], secret=bytes(32)) for _ in range(self.products)]
        self.engines += self.running

    def count(self, metric: metrics.Metric, word: str = "") -> int:
        """Return how often the product counted something, whatever the other labels."""
        samples = (found for engine in self.engines for found in engine.counts.samples(metric))
        return int(sum(value for labels, value in samples if not word or word in labels))

    def check(self, *, is_whole: bool = True) -> None:
        """Assert what holds in every case: no failure hidden by failing open, one ACK an offer.

        And every frame of a live stream leaves as it came, in its order, but where the outcome
        stands for it, or (`is_whole` is false) the chat was emptied.
        """
        assert self.count(metrics.ERRORS) == 0
        assert self.count(metrics.SKIPPED, "hold_bound") == 0
        for number in self.sessions:
            late = self.count(metrics.SKIPPED, "no_ack") + (not is_whole)
            assert self.server.acks[number] <= 1 + self._asked(number) + late
            if is_whole and not late and not self.count(metrics.REPAIRS, "heal"):
                came, left = _live(self.received[number]), _live(self.delivered[number])
                assert left == (came if number in self.pages else came[: len(left)])

    def _asked(self, number: int) -> int:
        frames = self.received[number]
        return sum(frame.wire.find(b"_stream_resume_request") >= 0 for frame in frames)

    # --- time -----------------------------------------------------------------------------------

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + delay_ms, next(self._order), action))

    def run(self, for_ms: int) -> None:
        end = self.now + for_ms
        queue = self._queue
        while queue and queue[0][0] <= end:
            self.now, _, action = heapq.heappop(queue)
            action()
        self.now = end

    # --- sockets --------------------------------------------------------------------------------

    def connect(self, page: Page, key: str = "pk") -> int:
        number = next(self._numbers)
        head = RequestHead("GET", f"{PATH}?_pk={key}", HEADERS)
        sessions = [engine.open(head, engine.routes[0]) for engine in self.running]
        session: Any = sessions[0] if self.products == 1 else Pair(*sessions)
        self.sessions[number], self.pages[number] = session, page
        self.received[number], self.sent[number], self.delivered[number] = [], [], []
        self.carry(number, session.open(self.now * NS))
        self.at(self.server_ms, lambda: self._connected(number))
        page.connect()
        self.flush(number)
        return number

    def _connected(self, number: int) -> None:
        if number in self.pages:
            self.server.connect(number)

    def hydrate(self) -> None:
        """Let a page fetch the chat's messages through the product."""
        head = RequestHead("GET", f"{PATH}/get-messages")
        body = dumps(self.server.messages)
        for engine in self.running:
            session = engine.open(head, engine.routes[0])
            session.open(self.now * NS)
            session.end(Side.CLIENT, self.now * NS)
            session.respond(JSON, self.now * NS)
            out = session.receive(Side.SERVER, body, self.now * NS)
            out += session.end(Side.SERVER, self.now * NS)
            assert b"".join(frame.wire for frame in out) == body

    def drop(self, number: int, how: str = "abort") -> None:
        """Break a socket: both ways, or the server's way first, with or without a goodbye."""
        session = self.sessions[number]
        now_ns = self.now * NS
        self.server.sockets.pop(number, None)
        self.is_over.add(number)
        if how == "server_end":
            self.carry(number, session.end(Side.SERVER, now_ns))
            self.run(self.client_ms)
        elif how == "server_abort":
            self.carry(number, session.abort(now_ns))
            self.run(self.client_ms)
        session.abort(now_ns)
        del self.pages[number]

    def flush(self, number: int) -> None:
        """Send what a page has to say."""
        page = self.pages.get(number)
        if page is None:
            return
        sent, page.sent = page.sent, []
        for frame in sent:
            message = dumps(frame)
            self.at(self.client_ms, lambda m=message: self.pass_on(number, Side.CLIENT, m))  # type: ignore[misc]

    def from_server(self, number: int, message: bytes) -> None:
        self.at(self.server_ms, lambda: self.pass_on(number, Side.SERVER, message))

    def pass_on(self, number: int, side: Side, message: bytes) -> None:
        session = self.sessions[number]
        is_gone = session.state is State.CLOSED or (number in self.is_over and side is Side.SERVER)
        if number in self.pages and not is_gone:
            self.received[number].append(Frame(side, Kind.WS_TEXT, message))
            out = session.receive_message(side, Kind.WS_TEXT, message, self.now * NS)
            self.carry(number, out)

    def carry(self, number: int, frames: list[Frame]) -> None:
        """Carry what the product sends, and carry out what it asks."""
        session = self.sessions[number]
        for frame in frames:
            if frame.sender is Side.CLIENT:
                self.at(self.server_ms, lambda f=frame: self.to_server(number, f))  # type: ignore[misc]
            else:
                self.sent[number].append(frame)
                self.at(self.client_ms, lambda f=frame: self.to_page(number, f))  # type: ignore[misc]
        for pending in session.take_asks():
            is_fetch = isinstance(pending.ask, Fetch)
            delay = 2 * self.server_ms if is_fetch else pending.ask.ms  # type: ignore[union-attr]
            if is_fetch:
                self.fetches += 1
            self.at(delay, lambda p=pending: self.answer(number, p))  # type: ignore[misc]
        deadline_ns = session.deadline_ns
        if deadline_ns is not None and self._wakes.get(number) != deadline_ns:
            self._wakes[number] = deadline_ns
            self.at(max(0, deadline_ns // NS - self.now), lambda: self.wake(number))

    def answer(self, number: int, pending: Any) -> None:
        session = self.sessions[number]
        if session.state is State.CLOSED:
            return
        answer = Answer()
        if isinstance(pending.ask, Fetch):
            known = self.fetched
            answer = Answer(200, dumps(self.server.messages)) if known is None else known()
        self.carry(number, session.answer(pending, answer, self.now * NS))

    def wake(self, number: int) -> None:
        session = self.sessions[number]
        if session.state is not State.CLOSED:
            self.carry(number, session.wake(self.now * NS))

    def to_server(self, number: int, frame: Frame) -> None:
        if number in self.server.sockets and frame.wire.find(b'"cf_agent_') >= 0:
            self.server.take(number, loads(frame.wire))

    def to_page(self, number: int, frame: Frame) -> None:
        self.delivered[number].append(frame)
        page = self.pages.get(number)
        is_foreign = frame.wire.find(b'"cf_agent_') < 0
        if page is not None and number not in self.is_deaf and not is_foreign:
            page.take(loads(frame.wire))
            self.flush(number)


def _live(frames: list[Frame]) -> list[bytes]:
    """Return the frames of a live stream but for its end, which may wait for a replay."""
    found = []
    for frame in frames:
        if frame.sender is Side.SERVER and frame.wire.find(RESPONSE.encode()) >= 0:
            fields = loads(frame.wire)
            if not fields.get("replay") and not fields.get("done"):
                found.append(frame.wire)
    return found
