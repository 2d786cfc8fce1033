"""Exchanges: one HTTP request with its response, or one WebSocket connection."""

from enum import StrEnum
from typing import Self

import msgspec

Headers = tuple[tuple[str, str], ...]


class Transport(StrEnum):
    """The transport of an exchange, as metrics label it."""

    WS = "ws"
    SSE = "sse"
    HTTP = "http"


def header(headers: Headers, name: str) -> str | None:
    """Return the first value of a header, or None. `name` is in lower case."""
    for key, value in headers:
        if key.lower() == name:
            return value
    return None


class RequestHead(msgspec.Struct, frozen=True):
    """Method, target and headers as the client sent them; the target is never decoded."""

    method: str
    target: str
    headers: Headers = ()

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query without its question mark; empty if there is none."""
        return self.target.partition("?")[2]

    def header(self, name: str) -> str | None:
        return header(self.headers, name)

    @property
    def is_websocket(self) -> bool:
        return (self.header("upgrade") or "").strip().lower() == "websocket"

    @property
    def content_type(self) -> str:
        """The media type of the request body in lower case, without parameters."""
        return media_type(self.headers)


class ResponseHead(msgspec.Struct, frozen=True):
    """Status and headers as the server sent them."""

    status: int
    headers: Headers = ()

    def header(self, name: str) -> str | None:
        return header(self.headers, name)

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters."""
        return media_type(self.headers)

    @property
    def is_event_stream(self) -> bool:
        return self.content_type == "text/event-stream"


def media_type(headers: Headers) -> str:
    return (header(headers, "content-type") or "").partition(";")[0].strip().lower()


class Exchange(msgspec.Struct, frozen=True):
    """One request with its response, or one WebSocket connection.

    `number` counts exchanges of this process from 1 and names the exchange in captures. `origin`
    is scheme and authority under which the client addressed midstream (`http://127.0.0.1:8080`, no
    slash behind it), empty where unknown; `pattern` is the path pattern of the route.
    """

    number: int
    route: str
    upstream: str
    head: RequestHead
    origin: str = ""
    pattern: str = "/*"

    @classmethod
    def of(
        cls,
        head: RequestHead,
        *,
        number: int = 1,
        route: str = "default",
        upstream: str = "",
        origin: str = "",
        pattern: str = "/*",
    ) -> Self:
        return cls(number, route, upstream, head, origin, pattern)
