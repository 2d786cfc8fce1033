"""Drives the A2A addons through a real engine as a host does, in virtual time. No I/O.

Only what a host can see is used: the engine, its sessions, the counts, and what addons and dialect
bind for the registry.
"""

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from tests.addons.a2a.forms import RPC03, Form

from midstream.core import metrics
from midstream.core.addon import Answer, AnyAddon, Mode, Wait
from midstream.core.chain import Pending
from midstream.core.engine import Engine, Limits, Route
from midstream.core.exchange import RequestHead, ResponseHead
from midstream.core.frames import Frame, Kind, Side
from midstream.core.metrics import Counts
from midstream.dialects.a2a import DIALECT
from midstream_addons import final_message_once, snapshot_to_delta

CLIENT, SERVER = Side.CLIENT, Side.SERVER
MS = 1_000_000
GAP_MS = 20
"""Between two frames of a server, unless a test says otherwise."""

SNAPSHOT, FINAL = "snapshot-to-delta", "final-message-once"
BOTH = (SNAPSHOT, FINAL)
ADDONS: dict[str, type[AnyAddon]] = {
    SNAPSHOT: snapshot_to_delta.ADDON,
    FINAL: final_message_once.ADDON,
}
JSON = (("Content-Type", "application/json"),)
EVENT_STREAM = ResponseHead(200, (("Content-Type", "text/event-stream"),))
JSON_RESPONSE = ResponseHead(200, JSON)
UPGRADED = ResponseHead(101, (("Upgrade", "websocket"),))
MAX_STEPS = 10_000


class Rig:
    """One proxy. Options of an addon are given by its name with underscores."""

    def __init__(
        self,
        addons: Iterable[str] = BOTH,
        mode: Mode = Mode.REPAIR,
        max_frame_bytes: int = 16 << 20,
        **options: dict[str, object],
    ) -> None:
        self.addons = tuple(addons)
        made = tuple((_addon(name, options), mode) for name in self.addons)
        self.engine = Engine(
            [Route("chat", "/*", "http://127.0.0.1:9", made)],
            [DIALECT],
            secret=b"secret",
            counts=Counts(),
            limits=Limits(max_frame_bytes=max_frame_bytes),
        )

    @property
    def repairs(self) -> Counter[str]:
        return self._counted(metrics.REPAIRS, 2)

    @property
    def skips(self) -> Counter[str]:
        return self._counted(metrics.SKIPPED, 1)

    @property
    def errors(self) -> float:
        return sum(value for _, value in self.engine.counts.samples(metrics.ERRORS))

    def stream(self, form: Form = RPC03, *, asks: bool = True) -> "Line":
        """Open the exchange in which a server streams, and send the request."""
        return Line(self, form, asks=asks)

    def fetches(self, method: str, body: bytes) -> bytes:
        """Send a JSON-RPC request whose answer is one body; return what of it arrives."""
        head = RequestHead("POST", "/", JSON)
        session = self.engine.open(head, self.engine.routes[0])
        session.open(0)
        session.receive(CLIENT, asked(method), 0)
        session.end(CLIENT, 0)
        session.respond(JSON_RESPONSE, 0)
        left = session.receive(SERVER, body, 0) + session.end(SERVER, 0)
        return b"".join(frame.wire for frame in left)

    def _counted(self, metric: metrics.Metric, label: int) -> Counter[str]:
        found: Counter[str] = Counter()
        for labels, value in self.engine.counts.samples(metric):
            if value:
                found[labels[label]] += int(value)
        return found


class Line:
    """One streaming exchange. What leaves towards the client is collected in `left`."""

    def __init__(self, rig: Rig, form: Form, *, asks: bool = True) -> None:
        self.form = form
        self.now_ns = 0
        self.left: list[Frame] = []
        self._timers: list[tuple[int, int, Pending]] = []
        self.session = rig.engine.open(_head(form), rig.engine.routes[0])
        self._take(self.session.open(0))
        if form.kind is not Kind.SSE:
            self.session.respond(UPGRADED, 0)
            if asks:
                request = asked(form.method)
                out = self.session.receive_message(CLIENT, Kind.WS_TEXT, request, 0)
                assert [frame.wire for frame in out] == [request]
            return
        request = asked(form.method) if form.is_rpc else b'{"message":{}}'
        out = self.session.receive(CLIENT, request, 0) + self.session.end(CLIENT, 0)
        assert b"".join(frame.wire for frame in out) == request
        self.session.respond(EVENT_STREAM, 0)

    def send(self, wire: bytes, gap_ms: int = GAP_MS) -> list[Frame]:
        """Let a gap pass and the server send a frame, or bytes; return what left meanwhile."""
        before = len(self.left)
        self.passes(gap_ms)
        if self.form.kind is Kind.SSE:
            self._take(self.session.receive(SERVER, wire, self.now_ns))
        else:
            self._take(self.session.receive_message(SERVER, self.form.kind, wire, self.now_ns))
        return self.left[before:]

    def passes(self, gap_ms: int) -> None:
        """Let time pass; what is due by then comes due in its order."""
        until_ns = self.now_ns + gap_ms * MS
        for _ in range(MAX_STEPS):
            due = [at for at, _, _ in self._timers[:1]]
            deadline_ns = self.session.deadline_ns
            if deadline_ns is not None:
                due.append(deadline_ns)
            if not due or min(due) > until_ns:
                break
            self.now_ns = max(self.now_ns, min(due))
            if self._timers and self._timers[0][0] <= self.now_ns:
                _, _, pending = heapq.heappop(self._timers)
                self._take(self.session.answer(pending, Answer(), self.now_ns))
            else:
                self._take(self.session.wake(self.now_ns))
        else:
            raise AssertionError(f"timers do not end after {MAX_STEPS} steps")
        self.now_ns = until_ns

    def ends(self) -> list[Frame]:
        """The server has sent everything, and on a WebSocket the client closes, too."""
        before = len(self.left)
        self.passes(GAP_MS)
        self._take(self.session.end(SERVER, self.now_ns))
        self._take(self.session.end(CLIENT, self.now_ns))
        return self.left[before:]

    def breaks(self) -> list[Frame]:
        """The connection to the server breaks."""
        before = len(self.left)
        self._take(self.session.abort(self.now_ns))
        return self.left[before:]

    def _take(self, out: list[Frame]) -> None:
        assert all(frame.sender is SERVER for frame in out)
        self.left += out
        for pending in self.session.take_asks():
            assert isinstance(pending.ask, Wait), "an A2A addon has nothing to fetch"
            at = self.now_ns + pending.ask.ms * MS
            heapq.heappush(self._timers, (at, pending.number, pending))


def run(rig: Rig, wires: Sequence[bytes], form: Form = RPC03, gap_ms: int = GAP_MS) -> list[Frame]:
    """Stream frames through a proxy and return what arrives."""
    line = rig.stream(form)
    for wire in wires:
        line.send(wire, gap_ms)
    line.ends()
    return line.left


def asked(method: str) -> bytes:
    message = {"kind": "message", "messageId": "u1", "role": "user", "parts": []}
    params = {"id": "task-1"} if "task" in method.lower() else {"message": message}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def _head(form: Form) -> RequestHead:
    if form.kind is Kind.SSE:
        return RequestHead("POST", form.target, JSON)
    return RequestHead("GET", form.target, (("Upgrade", "websocket"), ("Connection", "Upgrade")))


def _addon(name: str, options: dict[str, dict[str, object]]) -> AnyAddon:
    addon = ADDONS[name]
    given = msgspec.convert(options.get(name.replace("-", "_"), {}), addon.Options)
    return addon(given)  # type: ignore[call-arg]  # the contract of an addon's class
