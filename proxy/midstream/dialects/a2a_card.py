"""Agent cards: where an agent says it can be reached, and the same through the proxy.

Versions 0.2 and 0.3 have one `url` and more in `additionalInterfaces`, 1.0 a list of
`supportedInterfaces`; a card for clients of both has them all.

Source: a2aproject/A2A `types/src/types.ts` (v0.3.0, AgentCard), `specification/a2a.proto` (v1.0.1).
"""

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from midstream.core import edit, raw
from midstream.core.edit import Delete, Edit, Path, Set
from midstream.core.sse import BOM
from midstream.dialects.a2a_codec import JSON

_LISTS: Final = {"additionalInterfaces": "transport", "supportedInterfaces": "protocolBinding"}
_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0", "::"))  # noqa: S104
_PORTS: Final = {"http": 80, "https": 443}
_CARRIERS: Final = {"ws": "http", "wss": "https"}
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


class Interface(msgspec.Struct, frozen=True):
    """One way to reach an agent. `at` is the path to the url, `entry` to its place in a list."""

    url: str
    binding: str
    at: Path
    entry: Path | None


class Card(msgspec.Struct, frozen=True):
    """What the proxy needs of a card."""

    name: str
    version: str
    interfaces: tuple[Interface, ...]


def read_card(payload: bytes) -> Card | None:
    """Read a card, by itself or as the result of a JSON-RPC response; None if it is none."""
    try:
        fields = raw.members(payload.removeprefix(BOM))
        at: Path = ()
        if "jsonrpc" in fields and "result" in fields:
            fields, at = raw.members(fields["result"]), ("result",)
        return _card(fields, at)
    except raw.Malformed:
        return None


def _card(fields: Mapping[str, bytes], at: Path) -> Card | None:
    name = raw.text_of(fields.get("name"))
    interfaces: list[Interface] = []
    url = raw.text_of(fields.get("url"))
    if url is not None:
        binding = raw.text_of(fields.get("preferredTransport")) or "JSONRPC"
        interfaces.append(Interface(url, binding.upper(), (*at, "url"), None))
    for key, label in _LISTS.items():
        interfaces += _entries(fields.get(key, JSON.null), label, (*at, key))
    if name is None or not interfaces:
        return None
    return Card(name, raw.text_of(fields.get("version")) or "", tuple(interfaces))


def _entries(listed: bytes, label: str, at: Path) -> list[Interface]:
    """Read the entries of a list that have a url; the others are let be."""
    if listed == JSON.null:
        return []
    found = []
    for index, entry in enumerate(raw.elements(listed)):
        try:
            fields = raw.members(entry)
        except raw.Malformed:
            continue
        url = raw.text_of(fields.get("url"))
        if url is not None:
            binding = (raw.text_of(fields.get(label)) or "").upper()
            found.append(Interface(url, binding, (*at, index, "url"), (*at, index)))
    return found


def with_urls(payload: bytes, urls: Mapping[Path, str], dropped: Collection[Path] = ()) -> bytes:
    """Return a card with other urls, and without some entries of its lists.

    Raises EditError.
    """
    edits: list[Edit] = [Delete(entry) for entry in dropped]
    for at, url in urls.items():
        if not any(at[: len(entry)] == entry for entry in dropped):
            edits.append(Set(at, JSON.text(url)))
    return edit.apply(payload, *edits)


def leads_to(url: str, upstream: str) -> bool:
    """Tell whether a url leads to the scheme, host and port of the upstream.

    All names of this machine's own loopback are one host, and a WebSocket comes by HTTP.
    """
    here, there = _place(url), _place(upstream)
    return here is not None and here == there


def _place(url: str) -> tuple[str, str, int | None] | None:
    try:
        split = urlsplit(url)
        scheme, host, port = split.scheme, split.hostname, split.port
    except ValueError:  # a port that is no number, a bracket that is not closed
        return None
    if not scheme or not host:
        return None
    host = "localhost" if host in _LOOPBACK else host
    scheme = _CARRIERS.get(scheme, scheme)
    return scheme, host, port or _PORTS.get(scheme)


def through(url: str, origin: str) -> str:
    """Return the url with scheme, host and port of the origin; the rest as it came.

    A WebSocket stays one.
    """
    found, mine = _ORIGIN.match(url), _ORIGIN.match(origin)
    if found is None or mine is None:
        return url
    is_socket = found[0].partition(":")[0].lower() in _CARRIERS
    place = mine[0].replace("http", "ws", 1) if is_socket else mine[0]
    return place + url[found.end() :]
