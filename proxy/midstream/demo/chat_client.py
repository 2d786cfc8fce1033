"""A chat client that resumes as the AI SDK of its time does: a replay extends the last message."""

import asyncio
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from midstream.core import raw
from midstream.dialects.ui_stream import Fold, copies, read_part

WAIT_SECONDS = 10


class ChatClient:
    """A page with its messages. Use it as an async context manager."""

    def __init__(self, base_url: str) -> None:
        self._url = f"{base_url}/agents/demo/room"
        self.messages: list[dict[str, Any]] = []
        self._session: ClientSession | None = None
        self._socket: ClientWebSocketResponse | None = None
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._fold: Fold | None = None
        self.is_done = False
        self._is_answered = False

    async def __aenter__(self) -> Self:
        self._session = ClientSession()
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.disconnect()
        if self._session is not None:
            await self._session.close()

    async def connect(self) -> None:
        """Open a socket and ask whether an answer is running."""
        assert self._session is not None  # noqa: S101 - only inside the context manager
        self._socket = await self._session.ws_connect(f"{self._url}?_pk=page")
        self._reader = asyncio.get_running_loop().create_task(self._read(self._socket))
        await self._socket.send_json({"type": "cf_agent_stream_resume_request"})
        await self._until(lambda: self._is_answered)

    async def disconnect(self) -> None:
        """Lose the connection; what is on screen stays."""
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)
        self._fold = None
        self._is_answered = False

    async def send(self, *messages: dict[str, Any]) -> None:
        """Upload the whole chat, as the chat transport does, with these messages behind it."""
        assert self._socket is not None  # noqa: S101 - only inside the context manager
        self.messages += messages
        body = json.dumps({"messages": self.messages, "trigger": "submit-message"})
        init = {"method": "POST", "body": body}
        await self._socket.send_json({"id": "R", "init": init, "type": "cf_agent_use_chat_request"})

    async def until(self, word: str) -> None:
        """Wait until the screen shows a word, or raise TimeoutError."""
        await self._until(lambda: word in self.screen())

    async def until_done(self) -> None:
        """Wait until the answer is over, or raise TimeoutError."""
        await self._until(lambda: self.is_done)

    def screen(self) -> str:
        """Return what a person reads: the texts of the assistant, one after the other."""
        assistants = (m for m in self.messages if m["role"] == "assistant")
        texts = [p.get("text", "") for message in assistants for p in message["parts"]]
        return " | ".join(text.strip() for text in texts if text)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def _read(self, socket: ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await self._take(socket, json.loads(message.data))
                self._changed.set()

    async def _take(self, socket: ClientWebSocketResponse, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "cf_agent_chat_messages":
                self.messages = frame["messages"]
            case "cf_agent_message_updated":
                updated = frame["message"]
                self.messages = [updated if m["id"] == updated["id"] else m for m in self.messages]
            case "cf_agent_stream_resume_none":
                self._is_answered = True
            case "cf_agent_stream_resuming" if self._fold is None:
                self._is_answered = True
                self._begin()
                await socket.send_json({"type": "cf_agent_stream_resume_ack", "id": frame["id"]})
            case "cf_agent_use_chat_response":
                self._respond(frame)

    def _begin(self) -> None:
        """Go on with the last message, whatever it already holds."""
        parts = [read_part(json.dumps(part).encode()) for part in self.messages[-1]["parts"]]
        self._fold = Fold(copies(parts))

    def _respond(self, frame: dict[str, Any]) -> None:
        if self._fold is None:
            self._begin()
        if self._fold is not None and frame["body"]:
            chunk = raw.members(frame["body"].encode())
            if "messageId" in chunk:
                self._fold = Fold()
            self._fold.apply(chunk)
            parts = [json.loads(part.json()) for part in self._fold.parts]
            self.messages[-1] = {**self.messages[-1], "parts": parts}
        self.is_done = self.is_done or frame["done"]
