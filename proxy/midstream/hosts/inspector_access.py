"""Who may look at the inspector page: the rules of its routes.

    admin address    token      the page and its data
    loopback         not set    open to this machine: the Host has to be a loopback name, so that a
                                foreign page cannot come in by a name that it points at 127.0.0.1
    any              set        open to who shows the token, or has signed in with it
    other            not set    off

Always: a request that another origin made is refused. A wrong token costs one of a few tries, which
come back slowly; while there are none, the right one is refused, too.
"""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import msgspec
from aiohttp import web

from midstream.config.schema import Config
from midstream.core.errors import ConfigError

COOKIE = "midstream_inspector"
COOKIE_PATH = "/inspector"
"""Cookies know no ports: with this path the one of the page does not reach proxied servers."""

MIN_TOKEN_CHARACTERS = 16
MAX_TOKEN_BYTES = 4096
SESSION_SECONDS = 12 * 3600
MAX_SESSIONS = 64
MAX_TRIES = 5
SECONDS_A_TRY = 5.0
MAX_PEERS = 1_000
OWN_SITE = frozenset({"", "same-origin", "none"})


class Refused(Exception):
    """A request that is not let in: a status, and a line that says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def read_token(path: str, at: str) -> str:
    """Return the token of a file, or nothing where none is set. Raises ConfigError.

    `at` names the key in errors. Space around the token is no part of it.
    """
    if not path:
        return ""
    expected = f"expected a file with one token of {MIN_TOKEN_CHARACTERS} characters or more"
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_TOKEN_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise ConfigError(f"{at}: found {path!r}, {expected}: {reason}") from None
    token = data.decode("ascii", "replace").strip()
    if len(data) > MAX_TOKEN_BYTES or len(token) < MIN_TOKEN_CHARACTERS:
        raise ConfigError(f"{at}: found {len(data)} bytes in {path!r}, {expected}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{at}: found no single word of ASCII in {path!r}, {expected}")
    return token


def admin_token(config: Config) -> str:
    """Return the token that a configuration names, or nothing. Raises ConfigError."""
    at = f"{config.source}: security.admin_token_file"
    return read_token(config.security.admin_token_file, at)


def is_loopback(host: str) -> bool:
    """Tell whether a host, without brackets, is this machine's own by its name alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Tries:
    """How many wrong tokens a peer may still show."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, peer: str) -> float:
        tries, at = self._left.get(peer, (float(MAX_TRIES), 0.0))
        return min(float(MAX_TRIES), tries + (self._clock() - at) / SECONDS_A_TRY)

    def take(self, peer: str) -> None:
        self._left[peer] = (self.left(peer) - 1, self._clock())
        self._left.move_to_end(peer)
        while len(self._left) > MAX_PEERS:
            self._left.popitem(last=False)


class Session(msgspec.Struct, frozen=True):
    """A browser that has signed in, until a moment on the clock."""

    until_s: float


class Access:
    """Lets requests in or refuses them. `host` is where the admin port listens."""

    def __init__(
        self, host: str, token: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._is_loopback = is_loopback(host)
        self._digest = _digest(token) if token else b""
        self._clock = clock
        self._tries = Tries(clock)
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    @property
    def needs_token(self) -> bool:
        return bool(self._digest)

    def check_page(self, request: web.Request) -> None:
        """Let in who asks for the page, which holds no data. Raises Refused."""
        if not self._digest:
            if not self._is_loopback:
                raise Refused(
                    403,
                    "the inspector is off: admin is no loopback address, "
                    "and security.admin_token_file is not set",
                )
            if not is_loopback(_hostname(request.host)):
                raise Refused(403, "refused: the Host is no loopback name")

    def check(self, request: web.Request) -> None:
        """Let in who asks for data, or wants something done. Raises Refused."""
        self.check_page(request)
        _check_origin(request)
        if self._digest and not self._has_session(request):
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer":
                raise Refused(401, "sign in with the token of the admin port")
            self._check_token(request, token.strip())

    def sign_in(self, request: web.Request, token: str) -> web.Response:
        """Return the answer that signs a browser in. Raises Refused."""
        self.check_page(request)
        _check_origin(request)
        if self._digest:
            self._check_token(request, token)
        value = secrets.token_urlsafe(32)
        self._sessions[_digest(value)] = Session(self._clock() + SESSION_SECONDS)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        answer = web.Response(status=204)
        answer.set_cookie(
            COOKIE,
            value,
            path=COOKIE_PATH,
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="Strict",
        )
        return answer

    def sign_out(self, request: web.Request) -> web.Response:
        self._sessions.pop(_digest(request.cookies.get(COOKIE, "")), None)
        answer = web.Response(status=204)
        answer.del_cookie(COOKIE, path=COOKIE_PATH)
        return answer

    def _has_session(self, request: web.Request) -> bool:
        # Looked up by a digest of 32 random bytes: how long that takes tells nothing of use.
        session = self._sessions.get(_digest(request.cookies.get(COOKIE, "")))
        return session is not None and session.until_s > self._clock()

    def _check_token(self, request: web.Request, token: str) -> None:
        peer = request.remote or ""
        if self._tries.left(peer) < 1:
            raise Refused(429, f"too many wrong tokens, wait {SECONDS_A_TRY:g} s")
        if not hmac.compare_digest(_digest(token), self._digest):
            self._tries.take(peer)
            raise Refused(401, "wrong token")


def _check_origin(request: web.Request) -> None:
    """Refuse what a page of another origin asks for. Raises Refused."""
    origin = request.headers.get("Origin", "")
    is_own = not origin or origin.partition("://")[2].lower() == request.host.lower()
    if not is_own or request.headers.get("Sec-Fetch-Site", "") not in OWN_SITE:
        raise Refused(403, "refused: the request comes from another origin")


def _hostname(host: str) -> str:
    """Return the name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
