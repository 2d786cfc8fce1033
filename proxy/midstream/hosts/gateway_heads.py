"""What becomes of headers on their way through the gateway: pure functions over pairs.

Rules of this file:
- End-to-end headers keep their order, their case and their repetitions. Hop-by-hop headers end
  here, those that `Connection` names too.
- Bytes that are not UTF-8 travel as surrogate escapes, so that they leave as they came.
- What a client claims with `X-Forwarded-*` or `Forwarded` counts only if a trusted proxy says it.

Source: RFC 9110 sections 5 and 7.6, RFC 9112 section 3.2, RFC 7239.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from midstream.core.exchange import Headers, header

HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
HANDSHAKE = frozenset({
    "sec-websocket-accept", "sec-websocket-extensions", "sec-websocket-key",
    "sec-websocket-version",
})  # fmt: skip
BODY_DIGESTS = frozenset({"content-digest", "content-md5", "digest", "repr-digest"})
"""What a sender computed over a body: false once the body was mended."""

type Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def decoded(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return headers as text; bytes that are not UTF-8 become surrogate escapes."""
    return tuple(
        (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
        for name, value in raw
    )


def end_to_end(headers: Headers, without: frozenset[str] = frozenset()) -> Headers:
    """Return the headers that travel on. `without` names more to leave out, in lower case."""
    dropped = HOP_BY_HOP | without | _named_by_connection(headers)
    return tuple(pair for pair in headers if pair[0].lower() not in dropped)


def replaced(headers: Headers, name: str, value: str | None) -> Headers:
    """Return headers with one value for `name`, where its first stood; None removes it."""
    kept: list[tuple[str, str]] = []
    for pair in headers:
        if pair[0].lower() != name.lower():
            kept.append(pair)
        elif value is not None:
            kept.append((pair[0], value))
            value = None
    if value is not None:
        kept.append((name, value))
    return tuple(kept)


def parse_networks(addresses: Iterable[str]) -> tuple[Network, ...]:
    """Return addresses and CIDR ranges as networks. Raises ValueError."""
    return tuple(ipaddress.ip_network(address, strict=False) for address in addresses)


def is_trusted(peer: str, networks: Sequence[Network]) -> bool:
    """Tell whether a peer address lies in one of the networks."""
    if not networks:
        return False
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)


def forwarded(headers: Headers, peer: str, scheme: str, *, trusted: bool) -> Headers:
    """Return headers that tell the upstream who asked: `X-Forwarded-For`, `-Host` and `-Proto`.

    What came from a trusted proxy is kept and extended, anything else of that kind is replaced.
    """
    host = header(headers, "host")
    if trusted:
        before = [value for name, value in headers if name.lower() == "x-forwarded-for"]
        headers = replaced(headers, "X-Forwarded-For", ", ".join([*before, peer]))
        if host is not None and header(headers, "x-forwarded-host") is None:
            headers = (*headers, ("X-Forwarded-Host", host))
        if header(headers, "x-forwarded-proto") is None:
            headers = (*headers, ("X-Forwarded-Proto", scheme))
        return headers
    kept = tuple(pair for pair in headers if not _claims_a_client(pair[0].lower()))
    told = [("X-Forwarded-For", peer), ("X-Forwarded-Proto", scheme)]
    if host is not None:
        told.insert(1, ("X-Forwarded-Host", host))
    return (*kept, *told)


def offers_deflate(headers: Headers) -> bool:
    """Tell whether a WebSocket handshake offers or accepts permessage-deflate."""
    return any(
        name.lower() == "sec-websocket-extensions" and "permessage-deflate" in value.lower()
        for name, value in headers
    )


def subprotocols(headers: Headers) -> tuple[str, ...]:
    """Return the subprotocols of a WebSocket handshake, in order."""
    values = (value for name, value in headers if name.lower() == "sec-websocket-protocol")
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def _claims_a_client(name: str) -> bool:
    return name == "forwarded" or name.startswith("x-forwarded-")


def _named_by_connection(headers: Headers) -> frozenset[str]:
    values = (value for name, value in headers if name.lower() == "connection")
    return frozenset(word.strip().lower() for value in values for word in value.split(","))
