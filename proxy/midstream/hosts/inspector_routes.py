"""The routes of the inspector page: its files, what it is told, and what it may ask for."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from importlib import resources

import msgspec
from aiohttp import hdrs, web

from midstream import __version__
from midstream.core.errors import Error
from midstream.hosts.gateway_call import Streams
from midstream.hosts.inspector import Trail, snapshot
from midstream.hosts.inspector_access import Access, Refused
from midstream.hosts.inspector_feed import Feed, Place, number
from midstream.hosts.inspector_view import View

MAX_VIEWERS = 8
FILES = {
    "/": ("inspector.html", "text/html"),
    "/inspector/page.js": ("inspector_page.js", "text/javascript"),
    "/inspector/list.js": ("inspector_list.js", "text/javascript"),
    "/inspector/detail.js": ("inspector_detail.js", "text/javascript"),
    "/inspector/page.css": ("inspector.css", "text/css"),
}
SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
TOO_MANY = f"{MAX_VIEWERS} pages look on already; this one tries again every 10 s"

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
type Writer = Callable[[], int]


class Routes:
    """The inspector of one admin port. `on_write` writes out what a capture keeps in memory."""

    def __init__(self, access: Access, view: View, streams: Streams, on_write: Writer | None):
        self._access = access
        self._view = view
        self._streams = streams
        self._on_write = on_write
        self._run = secrets.token_hex(4)
        self._over = asyncio.Event()
        self.viewers = 0

    def add_to(self, app: web.Application) -> None:
        router = app.router
        for path in FILES:
            router.add_get(path, self._answering(self._file))
        for path, handler in (
            ("/streams.json", self._snapshot),
            ("/inspector/state", self._state),
            ("/inspector/events", self._events),
            ("/inspector/record", self._record),
            ("/inspector/find", self._find),
            ("/inspector/capture", self._capture),
            ("/inspector/har", self._har),
        ):
            router.add_get(path, self._answering(self._checked(handler)), allow_head=False)
        router.add_post("/capture/write", self._answering(self._checked(self._write)))
        router.add_post("/inspector/login", self._answering(self._login))
        router.add_post("/inspector/logout", self._answering(self._checked(self._logout)))
        app.on_shutdown.append(self._close)

    # --- who gets an answer ---------------------------------------------------------------------

    def _answering(self, handler: Handler) -> Handler:
        """Turn a refusal into an answer, and give every answer the headers that keep it safe."""

        async def run(request: web.Request) -> web.StreamResponse:
            try:
                answer = await handler(request)
            except Refused as refused:
                answer = web.Response(status=refused.status, text=f"{refused}\n")
                if refused.status == web.HTTPUnauthorized.status_code:
                    answer.headers[hdrs.WWW_AUTHENTICATE] = 'Bearer realm="midstream"'
            if not answer.prepared:
                answer.headers.update(SAFE_HEADERS)
            return answer

        return run

    def _checked(self, handler: Handler) -> Handler:
        async def run(request: web.Request) -> web.StreamResponse:
            self._access.check(request)
            return await handler(request)

        return run

    # --- the page -------------------------------------------------------------------------------

    async def _file(self, request: web.Request) -> web.StreamResponse:
        self._access.check_page(request)
        name, content_type = FILES[request.path]
        body = resources.files("midstream.hosts").joinpath(name).read_bytes()
        return web.Response(body=body, content_type=content_type, charset="utf-8")

    async def _login(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        return self._access.sign_in(request, str(form.get("token", "")).strip())

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        return self._access.sign_out(request)

    # --- data -----------------------------------------------------------------------------------

    async def _snapshot(self, _request: web.Request) -> web.StreamResponse:
        return _json(snapshot(self._streams, self._view.ring))

    async def _state(self, _request: web.Request) -> web.StreamResponse:
        return _json(self._shown_state())

    def _shown_state(self) -> dict[str, object]:
        return {
            "run": self._run,
            "version": __version__,
            "signed_in": self._access.needs_token,
            "draining": self._streams.is_draining,
            "can_write": self._on_write is not None,
            "exports": ["capture", "har"],
        }

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=SAFE_HEADERS)
        response.content_type = "text/event-stream"
        await response.prepare(request)
        if self.viewers >= MAX_VIEWERS:
            body = msgspec.json.encode(TOO_MANY)
            await response.write(b"retry: 10000\nevent: refused\ndata: %s\n\n" % body)
            return response
        place = Place.of(
            self._run, request.query.get("exchange", ""), request.headers.get("Last-Event-ID", "")
        )
        self.viewers += 1
        try:
            with contextlib.suppress(ConnectionError, TimeoutError):
                feed = Feed(self._view, place, self._shown_state())
                await feed.run(request, response, self._over)
        finally:
            self.viewers -= 1
        return response

    async def _record(self, request: web.Request) -> web.StreamResponse:
        trail = self._trail(request)
        record = trail.find(number(request.query.get("seq", "")))
        if record is None:
            raise Refused(404, "this record is no longer in memory")
        return _json(self._view.detail(trail, record))

    async def _find(self, request: web.Request) -> web.StreamResponse:
        """Return the numbers of the records whose whole payload holds a text, in any case."""
        trail, text = self._trail(request), request.query.get("text", "")[:200].lower()
        found = []
        for at, record in enumerate(tuple(trail.records)):
            if text and self._view.holds(trail, record, text):
                found.append(record.seq)
            if at % 50 == 0:
                await asyncio.sleep(0)
        return _json(found)

    async def _capture(self, request: web.Request) -> web.StreamResponse:
        trail = self._trail(request)
        blocks = []
        for block in self._view.capture(trail):
            blocks.append(block)
            if len(blocks) % 50 == 0:
                await asyncio.sleep(0)
        return _download(b"".join(blocks), f"exchange-{trail.number}-000001.cap")

    async def _har(self, request: web.Request) -> web.StreamResponse:
        trail = self._trail(request)
        try:
            body = self._view.har(trail)
        except Error as error:
            raise Refused(409, f"this exchange cannot be written as HAR: {error}") from error
        return _download(body, f"exchange-{trail.number}.har")

    def _trail(self, request: web.Request) -> Trail:
        trail = self._view.ring.trails.get(number(request.query.get("exchange", "")))
        if trail is None:
            raise Refused(404, "this exchange is no longer in memory")
        return trail

    async def _write(self, _request: web.Request) -> web.StreamResponse:
        if self._on_write is None:
            raise Refused(404, "nothing is captured: capture.dir is not set")
        try:
            return _json({"records": self._on_write()})
        except (Error, OSError) as error:
            raise Refused(503, f"the capture was not written: {error}") from error

    async def _close(self, _app: web.Application) -> None:
        self._over.set()


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _download(body: bytes, name: str) -> web.Response:
    headers = {hdrs.CONTENT_DISPOSITION: f'attachment; filename="{name}"'}
    return web.Response(body=body, content_type="application/octet-stream", headers=headers)
