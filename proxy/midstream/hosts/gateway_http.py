"""Relays one HTTP exchange: a request up, a response down, event streams as they come.

- What no addon reads streams through in both directions, with back-pressure.
- What an addon reads whole is collected first (see `gateway_bodies`).
- A response that breaks off breaks off: the client's connection is closed without an end of body.
- A client that leaves cancels the handler, and with it the request to the upstream.
"""

from collections.abc import AsyncIterator

import aiohttp
from aiohttp import ClientResponse, web
from aiohttp.http import HttpVersion11

from midstream.core.errors import BadEncoding
from midstream.core.exchange import Headers, ResponseHead, header
from midstream.core.frames import Frame, Side
from midstream.core.session import Reading, State
from midstream.hosts import gateway_heads as heads
from midstream.hosts.gateway_bodies import Collected
from midstream.hosts.gateway_call import Call, expects_continue
from midstream.hosts.gateway_codings import Inflater, inflater
from midstream.hosts.gateway_drain import Drained, Patience
from midstream.hosts.gateway_server import Relayed
from midstream.hosts.gateway_upstream import Body

EVENT_ENDS = (b"\n\n", b"\r\r", b"\n\r\n", b"\n\r", b"\r\r\n")
BODILESS_STATUSES = (204, 304)


async def relay(call: Call) -> web.StreamResponse:
    """Carry out the exchange and return the finished response. Raises UpstreamFailure."""
    call.drive.open()
    if call.session.state is not State.BYPASS:
        call.headers = heads.replaced(call.headers, "Accept-Encoding", "identity")
    headers, body = await _outgoing(call)
    head = call.head
    response = await call.upstreams.request(
        call.route.upstream, head.method, head.target, headers, body
    )
    try:
        return await answer(call, response)
    finally:
        response.close()


async def answer(call: Call, response: ClientResponse) -> web.StreamResponse:
    """Relay a response that has begun to arrive."""
    headers = heads.decoded(response.raw_headers)
    is_bodiless = call.head.method == "HEAD" or response.status in BODILESS_STATUSES
    if is_bodiless:  # it may say that it is an event stream, but it is none
        told = tuple(pair for pair in headers if pair[0].lower() != "content-type")
        call.drive.respond(ResponseHead(response.status, told))
    else:
        call.drive.respond(ResponseHead(response.status, headers))
        coding = header(headers, "content-encoding")
        if coding and inflater(coding) is None:
            call.drive.give_up(Side.SERVER, "bad_encoding")
    call.answered(response.status)
    down = _Down(call, response, heads.end_to_end(headers))
    reading = call.session.reads(Side.SERVER)
    if is_bodiless:
        await down.begin()
        return await down.finish()
    if reading is Reading.BODY:
        return await down.body()
    if reading is Reading.EVENTS:
        return await down.events()
    await down.begin()
    return await down.rest()


async def _outgoing(call: Call) -> tuple[Headers, Body]:
    """Return the headers and the body that go upstream."""
    request, drive = call.request, call.drive
    if not request.body_exists:
        drive.end(Side.CLIENT)
        return call.headers, None
    if drive.session.reads(Side.CLIENT) is Reading.UNREAD:
        return call.headers, _upload(call)
    await _let_continue(call)
    coding = header(call.headers, "content-encoding")
    collected = Collected(drive, Side.CLIENT, coding)
    await collected.collect(request.content.iter_any())
    if not collected.is_whole:
        return call.headers, _upload(call, collected.body)
    headers = collected.headers(call.headers)
    if header(headers, "content-length") is None:
        return headers, _once(collected.body)
    return headers, collected.body


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _upload(call: Call, begun: bytes = b"") -> AsyncIterator[bytes]:
    """Stream the request body; `begun` is what was read of it before."""
    drive, lane = call.drive, call.drive.lanes[Side.SERVER]
    if begun:
        yield begun
    else:
        await _let_continue(call)
    try:
        async for chunk in call.request.content.iter_any():
            drive.data(Side.CLIENT, chunk)
            for frame in lane.take():
                yield frame.wire
    except Exception:
        call.is_body_bad = True
        raise
    drive.end(Side.CLIENT)
    for frame in lane.take():
        yield frame.wire


async def _let_continue(call: Call) -> None:
    """Tell a client that waits to be told to send its body."""
    request = call.request
    if expects_continue(call.head) and request.version == HttpVersion11:
        writer = request.writer
        await writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        writer.output_size = 0  # an interim response is no response yet


class _Down:
    """The way of one response to the client."""

    _relayed: Relayed

    def __init__(self, call: Call, response: ClientResponse, headers: Headers) -> None:
        self._call = call
        self._drive = call.drive
        self._lane = call.drive.lanes[Side.CLIENT]
        self._response = response
        self._headers = headers
        self._is_coded = False

    async def begin(self, headers: Headers | None = None) -> None:
        """Send the head."""
        response = self._response
        kept = self._headers if headers is None else headers
        self._relayed = Relayed(response.status, response.reason, kept)
        if self._call.streams.is_draining:
            self._relayed.force_close()
        await self._relayed.prepare(self._call.request)
        self._lane.open(self._send)

    async def finish(self) -> web.StreamResponse:
        """Send the end of the body."""
        for side in Side:
            self._drive.end(side)
        await self._drive.flush()
        if self._lane.is_broken:
            raise ConnectionResetError("the client is gone")
        await self._relayed.write_eof()
        self._call.outcome = "completed"
        return self._relayed

    async def body(self) -> web.StreamResponse:
        """Relay a body that an addon reads whole."""
        collected = Collected(self._drive, Side.SERVER, header(self._headers, "content-encoding"))
        try:
            await collected.collect(self._response.content.iter_any())
        except (aiohttp.ClientError, OSError):
            await self.begin()
            await self._write(collected.body)
            return await self._break_off()
        await self.begin(collected.headers(self._headers))
        await self._write(collected.body)
        return await (self.finish() if collected.is_whole else self.rest())

    async def events(self) -> web.StreamResponse:
        """Relay an event stream, event by event."""
        coding = header(self._headers, "content-encoding")
        inflate = inflater(coding) if coding else None
        if self._drive.session.state is State.BYPASS:
            await self.begin()
            relaying = self._copied_events(inflate) if inflate else self._read_events(None)
        else:
            without = {"content-length", "content-encoding"} if inflate else {"content-length"}
            await self.begin(heads.end_to_end(self._headers, frozenset(without)))
            relaying = self._read_events(inflate)
        patience = Patience()
        with self._call.streams.opened(self._call, patience.end):
            try:
                await patience.last(relaying)
            except Drained:
                return await self._end_at_border(is_coded=self._is_coded)
            except (aiohttp.ClientError, BadEncoding, OSError):
                if self._lane.is_broken:
                    self._call.outcome = "client_gone"
                    raise
                return await self._break_off()
            return await self.finish()

    async def rest(self) -> web.StreamResponse:
        """Relay what comes unread."""
        try:
            async for chunk in self._response.content.iter_any():
                self._drive.data(Side.SERVER, chunk)
                await self._flush()
        except (aiohttp.ClientError, OSError):
            if self._lane.is_broken:
                raise
            return await self._break_off()
        return await self.finish()

    async def _read_events(self, inflate: Inflater | None) -> None:
        async for chunk in self._response.content.iter_any():
            for piece in inflate.inflate(chunk) if inflate else (chunk,):
                self._drive.data(Side.SERVER, piece)
                await self._flush()

    async def _copied_events(self, inflate: Inflater) -> None:
        """Relay coded events that nobody edits as they came; what they inflate to is counted."""
        self._is_coded = True
        async for chunk in self._response.content.iter_any():
            is_read = self._drive.session.reads(Side.SERVER) is not Reading.UNREAD
            try:
                for piece in inflate.inflate(chunk) if is_read else (chunk,):
                    self._drive.data(Side.SERVER, piece)
                    self._lane.take()
            except BadEncoding:
                self._drive.give_up(Side.SERVER, "bad_encoding")
                self._lane.take()
            await self._write(chunk)

    async def _end_at_border(self, *, is_coded: bool) -> web.StreamResponse:
        """End a stream that would go on: after a whole event, as if the server had ended it."""
        self._call.outcome = "drained"
        self._drive.end(Side.SERVER, drained=True)
        waiting = self._lane.waiting
        if waiting and not waiting[-1].wire.endswith(EVENT_ENDS):
            waiting.pop()
        await self._flush()
        if is_coded:  # the coding has no border to end at
            return self._cut()
        await self._relayed.write_eof()
        return self._relayed

    async def _break_off(self) -> web.StreamResponse:
        """Pass on that the upstream broke off: nothing ends the body."""
        self._call.outcome = "upstream_error"
        self._call.failed("broken")
        self._drive.abort(broken="server")
        await self._flush()
        return self._cut()

    def _cut(self) -> web.StreamResponse:
        transport = self._call.request.transport
        if transport is not None:
            transport.close()  # what was written is still sent
        return self._relayed

    async def _flush(self) -> None:
        await self._lane.flush()
        if self._lane.is_broken:
            raise ConnectionResetError("the client is gone")

    async def _send(self, frames: list[Frame]) -> None:
        await self._write(b"".join(frame.wire for frame in frames))

    async def _write(self, data: bytes) -> None:
        if data:
            await self._relayed.write(data)
