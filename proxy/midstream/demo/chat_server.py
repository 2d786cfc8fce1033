"""A small chat server with the two faults that chat clients meet, on real sockets.

It speaks the chat protocol of Cloudflare agents as the releases 0.17 to 0.24 do: a stream that is
resumed is replayed from its first chunk, a continuation does not name the message it extends, and
every uploaded message is filed, the server's own compaction summaries too.
"""

import asyncio
import json
from typing import Any

from aiohttp import WSMsgType, web

type Message = dict[str, Any]

WORDS = [f"word{index} " for index in range(12)]
SUMMARY: Message = {
    "id": "compaction_1",
    "role": "assistant",
    "parts": [{"type": "text", "text": "summary of what was said"}],
}


def text_message(identifier: str, role: str, text: str) -> Message:
    return {"id": identifier, "role": role, "parts": [{"type": "text", "text": text}]}


class ChatServer:
    """One chat. `rows` is what the server has stored."""

    def __init__(self, *, word_seconds: float = 0.03) -> None:
        self.rows: list[Message] = []
        self.has_compacted = False
        self._word_seconds = word_seconds
        self._sockets: dict[web.WebSocketResponse, bool] = {}
        self._chunks: list[Message] | None = None
        self._streaming: asyncio.Task[None] | None = None

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/agents/demo/room", self._serve)
        app.router.add_get("/agents/demo/room/get-messages", self._history)
        app.on_cleanup.append(self._stop)
        return app

    def history(self) -> list[Message]:
        """Return the messages as clients see them: after a compaction, with the summary."""
        if not self.has_compacted:
            return self.rows
        return [SUMMARY, *self.rows[2:]]

    async def compact(self) -> None:
        """Put the summary in the place of the first two messages, and tell every client."""
        self.has_compacted = True
        await self._broadcast({"type": "cf_agent_chat_messages", "messages": self.history()})

    async def _stop(self, _app: web.Application) -> None:
        if self._streaming is not None:
            self._streaming.cancel()
            await asyncio.gather(self._streaming, return_exceptions=True)

    async def _history(self, _request: web.Request) -> web.Response:
        return web.json_response(self.history())

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets[socket] = self._chunks is not None
        if self._chunks is not None:
            await socket.send_json({"type": "cf_agent_stream_resuming", "id": "R"})
        await socket.send_json({"type": "cf_agent_identity", "name": "room", "agent": "demo"})
        if self._chunks is None:
            messages = {"type": "cf_agent_chat_messages", "messages": self.history()}
            await socket.send_json(messages)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self._take(socket, json.loads(message.data))
        finally:
            del self._sockets[socket]
        return socket

    async def _take(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "cf_agent_stream_resume_request" if self._chunks is not None:
                self._sockets[socket] = True
                await socket.send_json({"type": "cf_agent_stream_resuming", "id": "R"})
            case "cf_agent_stream_resume_request":
                await socket.send_json({"type": "cf_agent_stream_resume_none"})
            case "cf_agent_stream_resume_ack" if self._chunks is not None:
                self._sockets[socket] = False
                for chunk in self._chunks:
                    await self._respond(socket, chunk, replay=True)
                await self._respond(socket, None, replay=True, replayComplete=True)
            case "cf_agent_use_chat_request":
                await self._take_turn(json.loads(frame["init"]["body"])["messages"])

    async def _take_turn(self, messages: list[Message]) -> None:
        """File what was uploaded, and go on: an assistant message is continued, else answered."""
        known = {row["id"] for row in self.rows}
        self.rows += [message for message in messages if message["id"] not in known]
        if self.rows[-1]["role"] == "user":
            self.rows.append(text_message(f"a{len(self.rows)}", "assistant", "an answer"))
            await self._broadcast({"type": "cf_agent_chat_messages", "messages": self.history()})
            return
        self._chunks = []
        self._streaming = asyncio.get_running_loop().create_task(self._stream())

    async def _stream(self) -> None:
        deltas = [{"type": "text-delta", "id": "t", "delta": word} for word in WORDS]
        for chunk in [{"type": "start"}, {"type": "text-start", "id": "t"}, *deltas]:
            await self._emit(chunk)
            await asyncio.sleep(self._word_seconds)
        await self._emit({"type": "text-end", "id": "t"})
        self._chunks = None
        for socket in list(self._sockets):
            await self._respond(socket, None, done=True)

    async def _emit(self, chunk: Message) -> None:
        if self._chunks is not None:
            self._chunks.append(chunk)
        for socket, is_parked in list(self._sockets.items()):
            if not is_parked:
                await self._respond(socket, chunk)

    async def _respond(
        self, socket: web.WebSocketResponse, chunk: Message | None, **more: bool
    ) -> None:
        body = "" if chunk is None else json.dumps(chunk)
        frame = {"body": body, "done": False, "id": "R", "continuation": True, **more}
        if not socket.closed:
            await socket.send_json({**frame, "type": "cf_agent_use_chat_response"})

    async def _broadcast(self, frame: dict[str, Any]) -> None:
        for socket in list(self._sockets):
            if not socket.closed:
                await socket.send_json(frame)
