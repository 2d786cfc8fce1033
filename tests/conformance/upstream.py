"""The scripted upstream: takes the exchanges of a capture by their number, and answers fetches."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from tests.conformance.wire import EXCHANGE_HEADER, Wire

from midstream.core.addon import Answer

JSON = (("Content-Type", "application/json"),)


class Upstream:
    """Listens on a free port. `wires` are the exchanges that have arrived."""

    def __init__(self, rng: random.Random, fetch: Callable[[str], Answer]) -> None:
        self.wires: dict[int, Wire] = {}
        self.fetched: list[str] = []
        self.port = 0
        self._rng = rng
        self._fetch = fetch
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._stack.callback(server.close)
        self.port = server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer, is_client=False, rng=self._rng)
        wire.on_request = self._arrived
        await wire.pump()
        await wire.shut()

    def _arrived(self, wire: Wire) -> None:
        """Tell an exchange of the capture from what an addon fetches beside it."""
        assert wire.request is not None
        headers = dict(wire.request.headers)
        number = int(headers.get(EXCHANGE_HEADER.encode(), b"0"))
        if number and number not in self.wires:
            self.wires[number] = wire
            return
        target = wire.request.target.decode()
        self.fetched.append(target)
        answer = self._fetch(target)
        wire.respond_at_once(answer.status, JSON, answer.body)
