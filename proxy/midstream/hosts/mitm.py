"""Runs the core inside mitmproxy: its hooks drive one session for each flow.

    hook              what happens
    requestheaders    the route is found and the session opened; what is read comes uncompressed
    request           a body that arrived whole goes through the session
    responseheaders   the session says how the response is read; what is not buffered streams
    response          a body that arrived whole goes through the session; the exchange is over
    websocket_*       messages go through the session; mitm_websocket.py sends what comes out
    error             the exchange broke off

Rules of this file:
- A hook never raises, and a flow whose hook failed goes on unmodified.
- State is kept by flow id, not in `flow.metadata`: mitmproxy would save it with the flow.
- Only live flows count: mitmproxy runs the hooks for flows read from a file, too.
"""

import functools
import logging
from collections.abc import Callable

import msgspec
from mitmproxy import ctx, exceptions, http, websocket
from mitmproxy import flow as flows
from mitmproxy.addonmanager import Loader

from midstream.config import Config, load
from midstream.core.engine import Engine
from midstream.core.errors import Error
from midstream.core.exchange import RequestHead, ResponseHead, Transport
from midstream.core.frames import Kind, Side
from midstream.core.session import Reading
from midstream.hosts import mitm_body, mitm_fetch, mitm_view, mitm_websocket
from midstream.hosts.gateway_heads import decoded
from midstream.hosts.mitm_account import Account
from midstream.hosts.mitm_live import Live, Original
from midstream.hosts.mitm_notes import Notes
from midstream.hosts.mitm_origin import client_origin
from midstream.hosts.mitm_service import Service

logger = logging.getLogger(__name__)

ABNORMAL = 1006


class Underway:
    """One flow that is under way."""

    def __init__(self, live: Live, account: Account, max_frame_bytes: int) -> None:
        self.live = live
        self.account = account
        self.max_frame_bytes = max_frame_bytes


type Hook = Callable[["Midstream", http.HTTPFlow], None]


def guarded(hook: Hook) -> Hook:
    """Let a flow go on unmodified when a hook fails."""

    @functools.wraps(hook)
    def run(self: "Midstream", flow: http.HTTPFlow) -> None:
        try:
            hook(self, flow)
        except Exception:
            logger.exception("the %s hook failed; its flow goes on unmodified", hook.__name__)
            self.forget(flow, "proxy_error")

    return run


class Midstream:
    """The one addon of mitmproxy that runs all of midstream."""

    name = "midstream"

    def __init__(self, engine: Engine | None = None, notes: Notes | None = None) -> None:
        self._service = None if engine is None else Service(engine, notes=notes)
        self._is_given = engine is not None
        self._is_running = False
        self._underway: dict[str, Underway] = {}
        self._warned: set[str] = set()

    # --- the life of the addon ------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        loader.add_option("midstream_config", str, "", "The configuration file of midstream.")
        loader.add_option("midstream_observe", bool, False, "Count repairs, change nothing.")
        loader.add_option(
            "midstream_keep_messages",
            int,
            100,
            "How many messages of a WebSocket stay in its flow; all of them while flows are saved.",
        )
        mitm_websocket.install()
        mitm_view.install()

    def configure(self, updated: set[str]) -> None:
        if not self._is_given and updated & {"midstream_config", "midstream_observe"}:
            try:
                self._serve(Service.of(self._config()))
            except Error as error:
                raise exceptions.OptionsError(str(error)) from error
        if "stream_large_bodies" in updated and ctx.options.stream_large_bodies:
            logger.warning(
                "stream_large_bodies is set: larger bodies of unknown length pass unread"
            )

    def running(self) -> None:
        self._is_running = True
        if self._service is not None:
            self._service.start()

    def done(self) -> None:
        for underway in self._underway.values():
            underway.live.abort()
            underway.account.closed("drained")
        self._underway.clear()
        mitm_websocket.uninstall()
        if self._service is not None and self._is_running:
            self._service.stop()

    @property
    def underway(self) -> int:
        """How many flows are under way."""
        return len(self._underway)

    def forget(self, flow: http.HTTPFlow, outcome: str) -> None:
        """End what is kept of a flow."""
        mitm_websocket.RELAYS.pop(flow.id, None)
        underway = self._underway.pop(flow.id, None)
        if underway is not None:
            underway.live.abort()
            underway.account.closed(outcome)

    # --- HTTP -----------------------------------------------------------------------------------

    @guarded
    def requestheaders(self, flow: http.HTTPFlow) -> None:
        head = _request_head(flow.request)
        service = self._service
        route = None if service is None else service.engine.route(head)
        if service is None or route is None or not flow.live or flow.error or flow.response:
            return
        # Two servers may have the same paths: a conversation is always one of the server at hand.
        route = msgspec.structs.replace(route, upstream=mitm_fetch.origin(flow.request))
        origin = client_origin(flow, keeps_host=ctx.options.keep_host_header)
        session, counts = service.engine.open(head, route, origin=origin), service.engine.counts
        live = Live(
            session,
            counts,
            lambda target: mitm_fetch.fetch(flow.request, target, ctx.options),
            (lambda: self._tell(flow)) if head.is_websocket else None,
        )
        limit = service.engine.limits.max_frame_bytes
        account = Account(counts, service.streams, live)
        self._underway[flow.id] = Underway(live, account, limit)
        service.notes.follow(session.exchange.number, flow)
        live.open()
        if head.is_websocket:
            return
        if live.has_chain:
            flow.request.headers.pop("accept-encoding", None)
        if callable(flow.request.stream):
            self._warn_once("another addon streams request bodies: they pass unread")
            return
        pump = mitm_body.plan(live, Side.CLIENT, flow.request, limit)
        if pump is not None:
            flow.request.stream = pump
        elif session.reads(Side.CLIENT) is Reading.BODY:
            flow.request.stream = False

    @guarded
    def request(self, flow: http.HTTPFlow) -> None:
        underway = self._underway.get(flow.id)
        if underway is None or underway.live.session.transport is Transport.WS:
            return
        if not flow.request.stream:
            mitm_body.rewrite(underway.live, Side.CLIENT, flow.request, underway.max_frame_bytes)
            return
        if flow.request.stream is True:
            self._passed_by(underway.live, Side.CLIENT)
        underway.live.end(Side.CLIENT)

    @guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        underway, response = self._underway.get(flow.id), flow.response
        if response is None or flow.error or not flow.live or response.raw_content is not None:
            return  # what another addon answered is not the server's, and is whole already
        if underway is None:
            response.stream = response.stream or True
            return
        live = underway.live
        reading = live.respond(_response_head(response))
        underway.account.answered(response.status_code)
        if live.session.transport is Transport.WS:
            response.stream = response.stream or response.status_code != 101
            return
        if callable(response.stream):
            self._warn_once("another addon streams response bodies: they pass unread")
            return
        pump = mitm_body.plan(live, Side.SERVER, response, underway.max_frame_bytes)
        response.stream = pump if pump is not None else False
        if live.has_chain and live.session.reads(Side.SERVER) is reading is Reading.EVENTS:
            mitm_body.unfix_length(flow)

    @guarded
    def response(self, flow: http.HTTPFlow) -> None:
        underway, response = self._underway.get(flow.id), flow.response
        if underway is None or response is None or flow.websocket is not None:
            return
        live = underway.live
        if response.stream is True:
            self._passed_by(live, Side.SERVER)
        elif not response.stream and live.session.reads(Side.SERVER) is Reading.BODY:
            mitm_body.rewrite(live, Side.SERVER, response, underway.max_frame_bytes)
        underway.account.answered(response.status_code)
        for side in (Side.SERVER, Side.CLIENT):
            live.end(side)
        self.forget(flow, "completed")

    @guarded
    def error(self, flow: http.HTTPFlow) -> None:
        underway = self._underway.get(flow.id)
        if underway is None:
            return
        outcome = _outcome(flow.error)
        if outcome == "upstream_error":
            underway.account.upstream_failed("broken" if flow.response else "connect")
        self.forget(flow, outcome)

    # --- WebSocket ------------------------------------------------------------------------------

    @guarded
    def websocket_start(self, flow: http.HTTPFlow) -> None:
        underway = self._underway.get(flow.id)
        if underway is None:
            return

        def on_end(side: Side, code: int, reason: str) -> None:
            self._end_websocket(flow, underway, side, code, reason)

        relay = mitm_websocket.Relay(underway.live, underway.max_frame_bytes, on_end)
        mitm_websocket.RELAYS[flow.id] = relay
        if any(underway.live.out.values()):
            self._tell(flow)

    @guarded
    def websocket_message(self, flow: http.HTTPFlow) -> None:
        relay = mitm_websocket.RELAYS.get(flow.id)
        if relay is None or flow.websocket is None:
            return
        message = flow.websocket.messages[-1]
        side = Side.CLIENT if message.from_client else Side.SERVER
        if message.injected:
            relay.live.out[side].append(Original.MESSAGE)  # someone at this proxy wants it so
        elif not message.dropped:
            kind = Kind.WS_TEXT if message.is_text else Kind.WS_BINARY
            relay.live.receive_message(side, kind, message.content)
            if Original.MESSAGE not in relay.live.out[side]:
                message.dropped = True
        relay.judged = message
        self._trim(flow.websocket.messages)

    @guarded
    def websocket_end(self, flow: http.HTTPFlow) -> None:
        self.forget(flow, "completed")

    # --- inside ---------------------------------------------------------------------------------

    def _serve(self, service: Service) -> None:
        """Put a service in the place of the one before; flows under way stay with theirs."""
        if self._service is not None and self._is_running:
            self._service.stop()
        self._service = service
        if self._is_running:
            service.start()

    def _config(self) -> Config:
        return load(
            ctx.options.midstream_config or None,
            flags={"observe": ctx.options.midstream_observe},
            needs_upstream=False,
        )

    def _end_websocket(
        self, flow: http.HTTPFlow, underway: Underway, side: Side, code: int, reason: str
    ) -> None:
        """Take the end of a WebSocket, before the close leaves: what was held leaves first."""
        live, account = underway.live, underway.account
        live.end(side, code=code, reason=reason)
        if mitm_websocket.RELAYS[flow.id].is_too_large:
            account.refused("message_too_large")
            account.closed("limit")
        elif code == ABNORMAL:
            logger.info("a WebSocket broke off at the side of the %s", side)
            live.abort(code=code)
            account.closed("client_gone" if side is Side.CLIENT else "upstream_error")
        live.end(side.other)

    def _passed_by(self, live: Live, side: Side) -> None:
        self._warn_once("a body passed unread: it is over mitmproxy's stream_large_bodies")
        live.give_up(side, "too_large")

    def _tell(self, flow: http.HTTPFlow) -> None:
        """Wake the WebSocket layer of a flow."""
        try:
            ctx.master.addons.get("proxyserver").inject_event(mitm_websocket.FramesReady.of(flow))
        except ValueError:
            logger.debug("frames waited for a connection that is gone")

    def _trim(self, messages: list[websocket.WebSocketMessage]) -> None:
        """Keep a long WebSocket flat in memory: mitmproxy would keep every message."""
        if not ctx.options.save_stream_file and not ctx.options.hardump:
            del messages[: -max(1, ctx.options.midstream_keep_messages)]

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            logger.warning(text)


def _request_head(request: http.Request) -> RequestHead:
    return RequestHead(
        request.method,
        request.data.path.decode("utf-8", "surrogateescape"),
        decoded(request.headers.fields),
    )


def _response_head(response: http.Response) -> ResponseHead:
    return ResponseHead(response.status_code, decoded(response.headers.fields))


def _outcome(error: flows.Error | None) -> str:
    """Tell from what mitmproxy writes in `flow.error` who broke an exchange off."""
    text = "" if error is None else error.msg
    if text == flows.Error.KILLED_MESSAGE:
        return "proxy_error"
    return "client_gone" if text.startswith("Client") or "by client" in text else "upstream_error"
