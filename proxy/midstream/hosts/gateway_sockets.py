"""The two ends of a relayed WebSocket, behind one face.

aiohttp closes a socket by itself on errors and on a received close frame, with codes of its own and
without waiting for what is still on its way. Both ends here leave that to the relay: they hand out
what arrives, send what they are given, and are shut when they are told to.
"""

import asyncio
import contextlib
import struct
from typing import Any, Protocol

from aiohttp import WSMsgType, web

from midstream.hosts.gateway_server import Connection, Request
from midstream.hosts.gateway_upstream import UpstreamSocket

LINGER_SECONDS = 2.0
NO_STATUS = 0
"""How aiohttp reports a close frame without a code."""


class AcceptedSocket(web.WebSocketResponse[bool]):
    """The client's end of a WebSocket. Its owner ends it: `close` here never sends anything."""

    async def close(self, *, code: int = 1000, message: bytes = b"", drain: bool = True) -> bool:
        """Do nothing: aiohttp calls this on errors, and would answer with codes of its own."""
        return False


class _Socket(Protocol):
    async def receive(self) -> Any: ...

    async def send_frame(self, message: bytes, opcode: WSMsgType) -> None: ...


class Peer:
    """One end. After a close frame was sent nothing more is."""

    def __init__(self, socket: _Socket, transport: asyncio.Transport, lost: asyncio.Event) -> None:
        self._socket = socket
        self._transport = transport
        self._lost = lost
        self._last: asyncio.TimerHandle | None = None
        self.receive = socket.receive
        self.sent_close: tuple[int, str] | None = None
        self.has_received_close = False

    async def send(self, opcode: WSMsgType, payload: bytes) -> None:
        """Send one message or control frame. Raises ConnectionError if nobody is there."""
        if self.sent_close is None:
            await self._socket.send_frame(payload, opcode)

    async def send_close(self, code: int, reason: str = "") -> None:
        """Send a close frame, unless one was sent or nobody is there."""
        if self.sent_close is not None:
            return
        payload = b"" if code == NO_STATUS else struct.pack("!H", code) + reason.encode()
        self.sent_close = (code, reason)
        with contextlib.suppress(ConnectionError):
            await self._socket.send_frame(payload, WSMsgType.CLOSE)

    async def shut(self) -> None:
        """Close the connection once everything is sent, and be sure within `LINGER_SECONDS`.

        Where the peer has not answered our close frame yet, it is first given time to read it:
        closing with its bytes unread makes the system send a reset, which can overtake the frame.
        """
        self.cut_later()
        if self.sent_close is None or self.has_received_close:
            self._transport.close()
        await self._lost.wait()
        if self._last is not None:
            self._last.cancel()

    def cut(self) -> None:
        """End the connection; what was written is still sent, if that takes not too long."""
        self.cut_later()
        self._transport.close()

    def cut_later(self) -> None:
        """See to it that the connection is closed in `LINGER_SECONDS`."""
        if self._last is None and not self._lost.is_set():
            loop = asyncio.get_running_loop()
            self._last = loop.call_later(LINGER_SECONDS, self._transport.abort)


def client_peer(socket: AcceptedSocket, request: Request) -> Peer:
    """Return the client's end of an accepted WebSocket."""
    connection: Connection = request.connection
    if connection.transport is None:
        raise ConnectionResetError("the client is gone")
    return Peer(socket, connection.transport, connection.lost)


def upstream_peer(socket: UpstreamSocket) -> Peer:
    """Return the upstream's end of a WebSocket."""
    connection = socket.handshake.connection
    if connection is None or connection.transport is None:
        raise ConnectionResetError("the upstream is gone")
    return Peer(socket, connection.transport, socket.lost)
