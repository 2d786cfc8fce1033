"""A provider on loopback: Responses, Chat Completions and Messages, streaming only.

A header that each client is told to send names the conversation, since all of a client's have one
credential; the number of a request chooses the answer. Each body is kept as it came, and written
to a file.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web
from tests.peers.history.provider import chat, messages, responses
from tests.peers.history.provider.turns import TURNS, Place, Turn
from tests.peers.history.rig.modes import Mode

HEADER = "x-conversation"
MAX_BODY_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Got:
    """One request as it arrived."""

    target: str
    content_type: str
    body: bytes

    def without(self, token: str) -> "Got":
        """Return it with zeros in the place of the token, which is as long."""
        zeros = b"0" * len(token)
        return replace(self, body=self.body.replace(token.encode(), zeros))


@dataclass
class Talk:
    """One conversation."""

    mode: Mode
    token: str
    folder: Path | None = None
    """Where the bodies are written, if they are to be kept; without it the talk has no end."""
    got: list[Got] = field(default_factory=list)
    asked: int = 0

    def next_turn(self, got: Got) -> tuple[Place, Turn] | None:
        """Keep a request; return where its answer stands, and the answer, if one is left."""
        self.asked += 1
        place = Place(self.token, self.asked)
        if self.folder is None:
            return place, TURNS[0]
        self.got.append(got)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.asked:03}.json").write_bytes(got.body)
        return (place, TURNS[self.asked - 1]) if self.asked <= len(TURNS) else None


class Provider:
    """`talks` says which conversations are known."""

    def __init__(self) -> None:
        self.talks: dict[str, Talk] = {}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve on a free port of loopback; the address is what is yielded."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/{api:responses|chat/completions|messages}", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        talk = self.talks.get(request.headers.get(HEADER, ""))
        if talk is None:
            return refusal(401, f"unknown {HEADER}")
        body = await request.read()
        found = talk.next_turn(Got(request.path_qs, request.content_type, body))
        if found is None:
            return refusal(400, f"all {len(TURNS)} answers are given")
        if json.loads(body).get("stream") is not True:
            return refusal(400, "only streams are served")
        answer = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await answer.prepare(request)
        for wire in wires(request.match_info["api"], *found, talk.mode):
            await answer.write(wire)
        await answer.write_eof()
        return answer


def refusal(status: int, why: str) -> web.Response:
    return web.json_response({"error": {"type": "rig", "message": why}}, status=status)


def wires(api: str, place: Place, turn: Turn, mode: Mode) -> Iterator[bytes]:
    """Yield one answer, an SSE event at a time."""
    if api == "chat/completions":
        for event in chat.events(place, turn):
            yield b"data: " + compact(event) + b"\n\n"
        yield b"data: [DONE]\n\n"
        return
    if api == "messages":
        named = messages.events(place, turn, thinking=mode.reasoning)
    else:
        named = responses.events(place, turn, mode)
    for event in named:
        yield f"event: {event['type']}\ndata: ".encode() + compact(event) + b"\n\n"


def compact(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
