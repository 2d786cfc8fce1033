"""The WebSocket layer of mitmproxy, relaying what a session lets out in place of what came in.

mitmproxy gives an addon one message at a time and a command that injects more. Injected messages
are queued behind whatever was read before, so order is lost; a close in the same read loses all
of them; and one that arrives amid a message longer than a read becomes part of it (all measured
with 12.3.1). So this layer takes mitmproxy's place for the exchanges of midstream: hooks run as
ever, and then the frames of the session leave, whole and in order, towards either side. Connections
without a relay go through mitmproxy's own layer.

It also does what an addon cannot: it closes with 1009 over the frame limit, lets held frames leave
before a close, and ends one side as abnormally as the other ended.

Source: mitmproxy/proxy/layers/websocket.py of mitmproxy 12.3.1, whose layer this one extends.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

import wsproto.events
from mitmproxy import http, websocket
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers import websocket as stock
from wsproto.connection import ConnectionState
from wsproto.frame_protocol import CloseReason, Opcode

from midstream.core.frames import Frame, Kind, Side
from midstream.hosts.mitm_live import Live, Original

type Commands = layer.CommandGenerator[None]
type Message = wsproto.events.TextMessage | wsproto.events.BytesMessage

STOCK_LAYER: Final = stock.WebsocketLayer
CLOSE_TOO_LARGE: Final = wsproto.events.CloseConnection(
    code=CloseReason.MESSAGE_TOO_BIG, reason="message too big"
)


class FramesReady(stock.WebSocketMessageInjected):
    """Frames wait that no message at hand will carry: an answer or a timer made them."""

    @classmethod
    def of(cls, flow: http.HTTPFlow) -> "FramesReady":
        return cls(flow, websocket.WebSocketMessage(Opcode.TEXT, False, b""))


class Relay:
    """What the layer needs to know of one connection.

    `judged` is the message whose fate is in the queues of `live`; a message that no hook has
    judged passes as it came.
    """

    def __init__(
        self, live: Live, max_frame_bytes: int, on_end: Callable[[Side, int, str], None]
    ) -> None:
        self.live = live
        self.max_frame_bytes = max_frame_bytes
        self.on_end = on_end
        self.judged: websocket.WebSocketMessage | None = None
        self.is_too_large = False


RELAYS: Final[dict[str, Relay]] = {}
"""The relays by flow id. One mitmproxy runs in a process, as its own global context has it."""


class RelayLayer(stock.WebsocketLayer):
    """mitmproxy's layer, with the frames of a session in place of the messages received."""

    def relay_messages(self, event: events.Event) -> Commands:
        relay = RELAYS.get(self.flow.id)
        if isinstance(event, FramesReady):
            if relay is not None:
                yield from self._drain(relay)
        elif relay is None:
            yield from super().relay_messages(event)
        elif isinstance(event, stock.WebSocketMessageInjected):
            event.message.injected = True
            yield from self._message(relay, event.message, [event.message.content])
        elif isinstance(event, events.DataReceived | events.ConnectionClosed):
            yield from self._receive(relay, event)

    def _receive(
        self, relay: Relay, event: events.DataReceived | events.ConnectionClosed
    ) -> Commands:
        sender = Side.CLIENT if event.connection == self.context.client else Side.SERVER
        source = self._of(sender)
        source.receive_data(event.data if isinstance(event, events.DataReceived) else None)
        for ws_event in source.events():
            if isinstance(ws_event, wsproto.events.TextMessage | wsproto.events.BytesMessage):
                yield from self._collect(relay, sender, ws_event)
            elif isinstance(ws_event, wsproto.events.CloseConnection):
                yield from self._close(relay, sender, ws_event)
            else:
                yield from self._send(self._of(sender.other), ws_event)  # a ping or a pong
            if self._log.timestamp_end is not None:
                return

    def _collect(self, relay: Relay, sender: Side, part: Message) -> Commands:
        """Take a frame, or a piece of one; the last one makes a message."""
        source = self._of(sender)
        is_text = isinstance(part.data, str)
        source.frame_buf[-1] += (
            part.data.encode() if isinstance(part.data, str) else bytes(part.data)
        )
        if sum(map(len, source.frame_buf)) > relay.max_frame_bytes:
            relay.is_too_large = True
            yield from self._close(relay, sender, CLOSE_TOO_LARGE)
        elif part.message_finished:
            fragments, source.frame_buf = source.frame_buf, [b""]
            message = websocket.WebSocketMessage(
                Opcode.TEXT if is_text else Opcode.BINARY,
                sender is Side.CLIENT,
                b"".join(fragments),
            )
            yield from self._message(relay, message, fragments)
        elif part.frame_finished:
            source.frame_buf.append(b"")

    def _message(
        self, relay: Relay, message: websocket.WebSocketMessage, fragments: list[bytes]
    ) -> Commands:
        """Show a message to the addons, then let leave what became of it."""
        self._log.messages.append(message)
        yield stock.WebsocketMessageHook(self.flow)
        if relay.judged is not message:
            relay.live.out[_sender(message)].append(Original.MESSAGE)
        relay.judged = None
        yield from self._drain(relay, message, fragments)

    def _drain(
        self,
        relay: Relay,
        message: websocket.WebSocketMessage | None = None,
        fragments: Sequence[bytes] = (),
    ) -> Commands:
        """Send everything that waits to leave, in order."""
        for side, queue in relay.live.out.items():
            while queue:
                item = queue.popleft()
                if isinstance(item, Frame):
                    yield from self._send(self._of(side.other), _whole(item))
                elif message is not None and not message.dropped:
                    for part in _as_it_came(message, fragments):
                        yield from self._send(self._of(side.other), part)

    def _close(self, relay: Relay, sender: Side, close: wsproto.events.CloseConnection) -> Commands:
        """End both sides as one of them ended: without a close frame where none came."""
        relay.on_end(sender, close.code, close.reason or "")
        yield from self._drain(relay)
        self._log.timestamp_end = time.time_ns() / 1e9
        self._log.closed_by_client = sender is Side.CLIENT
        self._log.close_code = close.code
        self._log.close_reason = close.reason
        for peer in (self.server_ws, self.client_ws):
            if close.code != CloseReason.ABNORMAL_CLOSURE:
                yield from self._send(peer, close)
            yield commands.CloseConnection(peer.conn)
        yield stock.WebsocketEndHook(self.flow)
        self.flow.live = False
        self._handle_event = self.done

    def _send(self, peer: stock.WebsocketConnection, event: wsproto.events.Event) -> Commands:
        """Send to a peer that still takes it; wsproto raises for one that does not."""
        is_open = peer.state is ConnectionState.OPEN
        is_answer = isinstance(event, wsproto.events.CloseConnection)
        if is_open or (is_answer and peer.state is ConnectionState.REMOTE_CLOSING):
            yield peer.send2(event)

    @property
    def _log(self) -> websocket.WebSocketData:
        """What mitmproxy shows of the connection."""
        return cast("websocket.WebSocketData", self.flow.websocket)  # set before a layer starts

    def _of(self, side: Side) -> stock.WebsocketConnection:
        return self.client_ws if side is Side.CLIENT else self.server_ws


def install() -> None:
    """Put the layer in the place of mitmproxy's own."""
    vars(stock)["WebsocketLayer"] = RelayLayer  # mitmproxy has no other way in


def uninstall() -> None:
    """Put mitmproxy's layer back. Running connections go on as mitmproxy would have them."""
    RELAYS.clear()
    vars(stock)["WebsocketLayer"] = STOCK_LAYER


def _sender(message: websocket.WebSocketMessage) -> Side:
    return Side.CLIENT if message.from_client else Side.SERVER


def _whole(frame: Frame) -> Message:
    """Return a frame as one message: mitmproxy's cut every 4,000 bytes would split characters."""
    if frame.kind is Kind.WS_BINARY:
        return wsproto.events.BytesMessage(frame.wire)
    return wsproto.events.TextMessage(frame.wire.decode(errors="replace"))


def _as_it_came(
    message: websocket.WebSocketMessage, fragments: Sequence[bytes]
) -> Iterator[wsproto.events.Event]:
    """Return a message in its own fragments, or whole where another addon changed it."""
    unchanged = message.content == b"".join(fragments)
    parts = fragments if unchanged else [message.content]
    return stock.Fragmentizer(list(parts), message.is_text)(message.content)
