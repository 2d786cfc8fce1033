"""The checks of single values that their type does not express.

Each takes a value of the right type and returns it, normalised, or raises ValueError with what was
found and what was expected. None of them opens, resolves or connects anything.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from midstream.config.wording import near, shown

MAX_PORT = 65_535
NAME = re.compile(r"[a-z0-9_-]{1,32}")
HOSTNAME = re.compile(r"[A-Za-z0-9._-]{1,253}")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+|null")
JSON_PATH = re.compile(r"(?:\$\.)?[^.\[\]]+(?:\[(?:\d+|\*)\])*(?:\.[^.\[\]]+(?:\[(?:\d+|\*)\])*)*")
ADDRESS = 'HOST:PORT such as "127.0.0.1:8080" or "[::1]:8080"'
UPSTREAM = "an http:// or https:// URL with a host and no path"
STORES = ("memory:", "sqlite:", "valkey:")


class Address(NamedTuple):
    """A host, without the brackets of IPv6, and a port; port 0 stands for any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read `HOST:PORT`. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    is_host = _is_ipv6(host) if bracketed else HOSTNAME.fullmatch(host) is not None
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= MAX_PORT
    if not (colon and is_host and is_port):
        raise ValueError(f"found {shown(text)}, expected {ADDRESS}")
    return Address(host, int(port))


def check_address(text: str) -> str:
    return str(parse_address(text))


def check_upstream(text: str) -> str:
    """Return an upstream as `scheme://host[:port]`.

    A path is refused: the request target goes upstream as it came, so there is nothing that a path
    could be joined to. Credentials are refused, and never repeated in the error.
    """
    if "@" in text:
        raise ValueError(f"found credentials in the URL, expected {UPSTREAM}")
    unfit = ValueError(f"found {shown(text)}, expected {UPSTREAM}")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise unfit
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise unfit from None
    if parts.scheme not in ("http", "https"):
        instead = {"ws": "http", "wss": "https"}.get(parts.scheme)
        hint = f', did you mean "{instead}://{parts.netloc}"' if instead else ""
        raise ValueError(f"{unfit}{hint}")
    host = parts.hostname or ""
    is_host = _is_ipv6(host) if "[" in parts.netloc else HOSTNAME.fullmatch(host) is not None
    if not is_host or port == 0 or parts.netloc.endswith(":"):
        raise unfit
    base = f"{parts.scheme}://{parts.netloc}"
    if parts.path not in ("", "/") or "?" in text or "#" in text:
        raise ValueError(
            f'{unfit}: request targets go upstream as they came, did you mean "{base}"'
        )
    return base


def check_path(text: str) -> str:
    is_target = text.startswith("/") and text.isascii() and text.isprintable() and " " not in text
    if not is_target or "*" in text[:-1] or "?" in text or "#" in text:
        raise ValueError(
            f"found {shown(text)}, "
            'expected a path such as "/chat", or "/agents/*" with "*" only at its end'
        )
    return text


def check_name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(
            f"found {shown(text)}, expected 1 to 32 characters of a-z, 0-9, underscore and hyphen"
        )
    return text


def check_store(text: str) -> str:
    """Only the scheme is repeated in an error: the rest may hold a password."""
    scheme, colon, rest = text.partition(":")
    scheme += colon
    if scheme not in STORES:
        raise ValueError(
            f'found {shown(scheme)}, expected "memory:", "sqlite:PATH" or "valkey://HOST:PORT/DB"'
            f"{near(scheme, STORES)}"
        )
    if scheme == "memory:" and rest:
        raise ValueError(f'found {shown(text)}, expected "memory:" with nothing behind it')
    if scheme == "sqlite:" and (not rest or rest.startswith("//")):
        raise ValueError(
            f'found {shown(text)}, expected a path such as "sqlite:/var/lib/midstream/store.db"'
        )
    if scheme == "valkey:" and not _is_valkey(text):
        raise ValueError('found another form, expected "valkey://[USER:PASSWORD@]HOST[:PORT][/DB]"')
    return text


def check_redact_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        if not JSON_PATH.fullmatch(path):
            raise ValueError(
                f'found {shown(path)}, expected a path such as "user.email" or "items[*].key"'
            )
    return paths


def check_capture_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_path(path) for path in paths)


def check_workers(count: int) -> int:
    if count > 1:
        raise ValueError(
            f"found {count}, expected 1: more than one worker is not available in this version"
        )
    return count


def check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            raise ValueError(
                f'found {shown(origin)}, expected an origin such as "https://chat.example.com"'
            )
    return origins


def check_proxies(proxies: tuple[str, ...]) -> tuple[str, ...]:
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            raise ValueError(
                f"found {shown(proxy)}, "
                'expected an IP address or network such as "10.0.0.1" or "10.0.0.0/8"'
            ) from None
    return proxies


CHECKS: dict[str, Callable[[Any], object]] = {
    "listen": check_address,
    "admin": check_address,
    "store": check_store,
    "workers": check_workers,
    "capture.redact_paths": check_redact_paths,
    "capture.paths": check_capture_paths,
    "security.allowed_origins": check_origins,
    "security.trusted_proxies": check_proxies,
}
"""The checks by key; those of a route are applied by the loader."""

ROUTE_CHECKS: dict[str, Callable[[Any], object]] = {
    "name": check_name,
    "path": check_path,
    "upstream": check_upstream,
}


def _is_valkey(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_port = parts.port != 0
    except ValueError:
        return False
    database = parts.path.removeprefix("/")
    is_plain = not parts.query and not parts.fragment and text.startswith("valkey://")
    return is_plain and is_port and bool(parts.hostname) and (not database or database.isdecimal())


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
