"""Opens a relayed WebSocket: the upstream is connected first, then the client accepted.

- A refused upgrade is the client's answer too: status, headers and body as the upstream gave them.
- What the client sends early waits in its socket until both ends are there.
- A client that is gone cancels the handler; what it had sent before still reaches the upstream.
"""

import asyncio

from aiohttp import web

from midstream.core.exchange import Headers, ResponseHead, header
from midstream.hosts import gateway_heads as heads
from midstream.hosts.gateway_call import Call, Refusal
from midstream.hosts.gateway_http import answer
from midstream.hosts.gateway_pair import Pair
from midstream.hosts.gateway_sockets import AcceptedSocket, client_peer, upstream_peer
from midstream.hosts.gateway_upstream import Refused, UpstreamSocket

GONE_SECONDS = 5.0
"""How long the messages of a client that is gone may take to reach the upstream."""


async def relay(call: Call, max_frame_bytes: int) -> web.StreamResponse:
    """Carry out the exchange and return the finished response. Raises UpstreamFailure, Refusal."""
    _check(call, max_frame_bytes)
    deflate = heads.offers_deflate(call.head.headers)
    try:
        upstream = await call.upstreams.upgrade(
            call.route.upstream,
            call.head.target,
            heads.end_to_end(call.headers, heads.HANDSHAKE),
            deflate=deflate,
            max_bytes=max_frame_bytes,
        )
    except Refused as refused:
        call.drive.open()
        try:
            return await answer(call, refused.response)
        finally:
            refused.response.close()
    try:
        return await _accept(call, upstream, max_frame_bytes)
    finally:
        upstream.handshake.close()


def _socket(protocols: tuple[str, ...], max_bytes: int, *, deflate: bool) -> AcceptedSocket:
    return AcceptedSocket(
        autoclose=False,
        autoping=False,
        compress=deflate,
        decode_text=False,
        max_msg_size=max_bytes + 1,  # aiohttp refuses a message of exactly this size
        protocols=protocols,
    )


def _check(call: Call, max_bytes: int) -> None:
    """Refuse what is no handshake before the upstream is asked."""
    head = call.head
    if call.request.body_exists or header(head.headers, "content-length") not in (None, "0"):
        raise Refusal(400, "bad_upgrade", "a WebSocket handshake has no body")
    protocols = heads.subprotocols(head.headers)
    socket = _socket(protocols, max_bytes, deflate=False)
    if head.method == "GET" and socket.can_prepare(call.request):
        return
    if header(head.headers, "sec-websocket-version") not in (None, "13"):
        told = (("Sec-WebSocket-Version", "13"),)
        raise Refusal(426, "bad_upgrade", "only WebSocket version 13 is spoken", told)
    raise Refusal(400, "bad_upgrade", "this is not a WebSocket handshake")


async def _accept(call: Call, upstream: UpstreamSocket, max_bytes: int) -> web.StreamResponse:
    told = heads.decoded(upstream.handshake.raw_headers)
    chosen = heads.subprotocols(told)
    # Compressing for the client is worth its cost only where the upstream compresses as well.
    socket = _socket(chosen, max_bytes, deflate=heads.offers_deflate(told))
    socket.headers.extend(_handshake_headers(told))
    call.drive.open()
    call.drive.respond(ResponseHead(101, told))
    await socket.prepare(call.request)
    call.answered(101)
    pair = Pair(call, client_peer(socket, call.request), upstream_peer(upstream))
    with call.streams.opened(call, pair.drain):
        await _sheltered(call, pair)
    return socket


def _handshake_headers(told: Headers) -> Headers:
    without = heads.HANDSHAKE | {"sec-websocket-protocol", "content-length"}
    return heads.end_to_end(told, without)


async def _sheltered(call: Call, pair: Pair) -> None:
    """Relay, beyond the cancellation that a client's leaving brings, for a bounded time."""
    task = asyncio.get_running_loop().create_task(pair.relay())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=GONE_SECONDS)
        if not task.done():
            call.outcome = "drained" if call.streams.is_draining else "client_gone"
            task.cancel()
            await asyncio.wait([task])
