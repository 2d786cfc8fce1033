"""Serve an ASGI application on loopback, and break the connections of scenarios that say so."""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found"

import argparse
import os
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from tests.peers.a2a.scenarios import CUT_AFTER_UPDATES, SCENARIOS

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type App = Callable[[Message, Receive, Send], Awaitable[None]]

CUT = [f'"{name}"'.encode() for name, found in SCENARIOS.items() if found.kind == "cut"]
UPDATES = (b'"artifactUpdate"', b'"artifact-update"')


class Broken(Exception):
    """Raised into the server, which then drops the connection in the middle of the body."""


def breaking(app: App) -> App:
    """Break every stream of a `cut` scenario behind its second artifact update."""

    async def wrapped(scope: Message, receive: Receive, send: Send) -> None:
        cut = False
        seen = 0

        async def watched_receive() -> Message:
            nonlocal cut
            message = await receive()
            body = message.get("body", b"")
            cut = cut or any(name in body for name in CUT)
            return message

        async def watched_send(message: Message) -> None:
            nonlocal seen
            if cut and message["type"] == "http.response.body":
                if seen >= CUT_AFTER_UPDATES:
                    raise Broken
                seen += any(word in message.get("body", b"") for word in UPDATES)
            await send(message)

        await app(scope, watched_receive, watched_send)

    return wrapped


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    options.base = f"http://127.0.0.1:{options.port}"
    return options


def end_with_the_rig() -> None:
    """Leave when the rig closes our standard input, however it ended."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def serve(app: Any, port: int) -> None:
    end_with_the_rig()
    uvicorn.run(breaking(app), host="127.0.0.1", port=port, log_level="warning")
