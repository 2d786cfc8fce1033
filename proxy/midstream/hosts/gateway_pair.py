"""Both ends of one WebSocket at work: messages through the session, the rest end to end.

- Pings, pongs and close frames travel end to end. A close frame is passed on when all that came
  before it is, and its sender gets the answer of the other side, not ours.
- An end without a close frame has none on the other side either: there the connection is closed.
- A message over the limit, or bytes that are no WebSocket, close their sender with the code that
  says so, and the other side is told the same.
- What a side sent before it went away is handed on before its end is.
"""

import asyncio
import logging
from enum import StrEnum

from aiohttp import WSCloseCode, WSMsgType
from aiohttp.http import WebSocketError

from midstream.core.frames import Frame, Kind, Side
from midstream.hosts.gateway_call import Call
from midstream.hosts.gateway_drive import Send
from midstream.hosts.gateway_sockets import Peer

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0
"""How long a side may take to answer a close frame that was passed on to it."""
DRAIN_SECONDS = 2.0
"""The same while the process ends."""
KINDS = {WSMsgType.TEXT: Kind.WS_TEXT, WSMsgType.BINARY: Kind.WS_BINARY}
OPCODES = {kind: opcode for opcode, kind in KINDS.items()}


class End(StrEnum):
    """How a side stopped sending."""

    CLOSED = "closed"
    GONE = "gone"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"


class Pair:
    """The client's end and the upstream's end."""

    def __init__(self, call: Call, client: Peer, upstream: Peer) -> None:
        self._call = call
        self._drive = call.drive
        self._peers = {Side.CLIENT: client, Side.SERVER: upstream}
        self._ends: dict[Side, End] = {}
        self._is_drained = False
        self._is_over = False
        self._tasks: asyncio.TaskGroup | None = None
        self._deadline: asyncio.TimerHandle | None = None
        for side, peer in self._peers.items():
            self._drive.lanes[side].open(_sender(peer))

    def drain(self) -> None:
        """Ask both sides to close, because the process ends."""
        self._is_drained = self._is_over = True
        if self._tasks is not None and len(self._ends) < len(Side):
            self._tasks.create_task(self._go_away())

    async def relay(self) -> None:
        """Relay until both sides have ended and both connections are closed."""
        peers = self._peers.values()
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for side in Side:
                    self._tasks.create_task(self._pump(side))
                if self._is_drained:
                    self.drain()
            self._call.outcome = self._outcome()
        except* Exception as faults:
            logger.error("a WebSocket relay failed", exc_info=faults.exceptions[0])
            for peer in peers:
                await peer.send_close(WSCloseCode.INTERNAL_ERROR)
        finally:
            self._tasks = None
            if self._deadline is not None:
                self._deadline.cancel()
            self._drive.abort()
            for peer in peers:
                peer.cut_later()
        await asyncio.gather(*(peer.shut() for peer in peers))

    async def _pump(self, side: Side) -> None:
        """Pass on what one side sends until it ends."""
        peer, other = self._peers[side], self._peers[side.other]
        while True:
            message = await peer.receive()
            kind = KINDS.get(message.type)
            try:
                if kind is not None:
                    await self._pass(side, kind, message.data)
                elif message.type in (WSMsgType.PING, WSMsgType.PONG):
                    await other.send(message.type, bytes(message.data))
                else:
                    break
            except ConnectionError:
                pass  # the other side is gone: its own pump says so when it has handed on the rest
        if message.type is WSMsgType.CLOSE and message.data != WSCloseCode.ABNORMAL_CLOSURE:
            peer.has_received_close = True
            await self._closed(side, End.CLOSED, int(message.data), message.extra or "")
        elif message.type is WSMsgType.ERROR and isinstance(message.data, WebSocketError):
            await self._failed(side, message.data)
        else:
            await self._gone(side)

    async def _pass(self, side: Side, kind: Kind, data: bytes) -> None:
        if not self._is_over:
            await self._drive.message(side, kind, data)

    async def _closed(self, side: Side, end: End, code: int, reason: str) -> None:
        """Pass on a close frame, behind all that came before it."""
        self._ends[side] = end
        self._drive.end(side, code=code, reason=reason)
        await self._drive.flush()
        await self._drive.lanes[side.other].flush()
        await self._peers[side.other].send_close(code, reason)
        if side.other not in self._ends:
            self._force_after(CLOSE_SECONDS, code, reason)

    async def _failed(self, side: Side, error: WebSocketError) -> None:
        """Close a side that sent what may not be sent."""
        is_large = error.code == WSCloseCode.MESSAGE_TOO_BIG
        self._call.reject("message_too_large" if is_large else "bad_message")
        await self._peers[side].send_close(error.code)
        await self._closed(side, End.TOO_LARGE if is_large else End.MALFORMED, error.code, "")

    async def _gone(self, side: Side) -> None:
        """Pass on that a side went away without a close frame."""
        self._ends[side] = End.GONE
        peer, other = self._peers[side], self._peers[side.other]
        if peer.sent_close is not None:
            # It hung up instead of answering: that will do for an answer.
            await other.send_close(*peer.sent_close)
            return
        self._is_over = True
        self._drive.abort(gone=side.value)
        await self._drive.lanes[side.other].flush()
        other.cut()

    async def _go_away(self) -> None:
        self._force_after(DRAIN_SECONDS, WSCloseCode.GOING_AWAY, "")
        self._drive.end(Side.SERVER, drained=True)
        await self._peers[Side.SERVER].send_close(WSCloseCode.GOING_AWAY)
        await self._drive.lanes[Side.CLIENT].flush()
        await self._peers[Side.CLIENT].send_close(WSCloseCode.GOING_AWAY)

    def _force_after(self, seconds: float, code: int, reason: str) -> None:
        """End both sides some time from now, whatever they do until then."""
        if self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(seconds, self._force, code, reason)

    def _force(self, code: int, reason: str) -> None:
        if self._tasks is not None:
            self._tasks.create_task(self._close_both(code, reason))

    async def _close_both(self, code: int, reason: str) -> None:
        for peer in self._peers.values():
            peer.cut_later()
        for peer in self._peers.values():
            await peer.send_close(code, reason)
            peer.cut()

    def _outcome(self) -> str:
        if self._is_drained:
            return "drained"
        if End.TOO_LARGE in self._ends.values():
            return "limit"
        side, end = next(iter(self._ends.items()))
        if end is End.CLOSED:
            return "completed"
        if side is Side.CLIENT:
            return "client_gone"
        self._call.failed("broken")
        return "upstream_error"


def _sender(peer: Peer) -> Send:
    async def send(frames: list[Frame]) -> None:
        for frame in frames:
            await peer.send(OPCODES[frame.kind], frame.wire)

    return send
