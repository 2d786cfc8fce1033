"""Under which origin a client addressed midstream: scheme and authority, as the client wrote them.

Rules of this file:
- An authority stays as it came: its case, a port that is the default, the brackets of IPv6.
- What is no plausible `host[:port]` makes no origin, for addons may send it to a client.
- Each of scheme and authority may come from a trusted proxy: `X-Forwarded-*` before `Forwarded`,
  which proxies that do not know it pass on unseen.

Source: RFC 9110 section 7.2, RFC 3986 section 3.2, RFC 7239 section 5.
"""

import re
from collections.abc import Mapping, Sequence

from midstream.core.exchange import Headers, header

MAX_PORT = 65_535
SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
"""Some proxies name a WebSocket by its own scheme: to an origin it is the same."""
DEFAULT_PORTS = {"http": 80, "https": 443}

_AUTHORITY = re.compile(r"(?:[A-Za-z0-9._~-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?")


def origin(scheme: str, authority: str | None) -> str:
    """Return `scheme://authority`; empty where one of them is not plausible."""
    scheme = SCHEMES.get(scheme.lower(), "")
    found = _AUTHORITY.fullmatch(authority or "")
    if not scheme or found is None or int(found[1] or 0) > MAX_PORT:
        return ""
    return f"{scheme}://{authority}"


def claimed(headers: Headers, scheme: str, elements: Sequence[Mapping[str, str]]) -> str:
    """Return the origin that a trusted proxy tells; what it leaves out is taken from the request.

    `elements` are those of `Forwarded`. Of several values the first is the outermost proxy's.
    """
    told = elements[0] if elements else {}
    host = _first(headers, "x-forwarded-host") or told.get("host") or header(headers, "host")
    return origin(_first(headers, "x-forwarded-proto") or told.get("proto") or scheme, host)


def authority(scheme: str, host: str, port: int) -> str:
    """Return how a client writes a host or an address, and its port unless it is the default."""
    host = f"[{host.partition('%')[0]}]" if ":" in host else host
    return host if DEFAULT_PORTS.get(scheme) == port else f"{host}:{port}"


def _first(headers: Headers, name: str) -> str:
    return (header(headers, name) or "").partition(",")[0].strip()
