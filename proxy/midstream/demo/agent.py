"""The faults of an A2A agent, and a client that does with updates what they say."""

import json
from collections.abc import Iterable
from typing import Any

import aiohttp
from aiohttp import web

from midstream.demo.fault import Fault, Outcome

type Event = dict[str, Any]

ANSWER = "Hi Mira, which region should I query?"
PIECES = ("Hi Mira, ", "which region ", "should I query?")
SNAPSHOTS = ("Hi Mira,", "Hi Mira, which region", ANSWER)


class Agent:
    """An agent that streams one answer. Each update but the first says that it is to be appended.

    AgentScope 1.0 with `incremental(false)` sends the text so far; with `completeWithMessage` the
    status that completes the task says everything once more.
    """

    def __init__(self, texts: Iterable[str], message: str = "") -> None:
        self._texts = tuple(texts)
        self._message = message

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/", self._stream)
        return app

    async def play(self, base_url: str) -> Outcome:
        page = Page()
        request = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {}}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{base_url}/", json=request) as response,
        ):
            async for line in response.content:
                if line.startswith(b"data: "):
                    page.show(json.loads(line[6:])["result"])
        return Outcome(page.text, page.text == ANSWER)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        rpc_id = (await request.json())["id"]
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self._events():
            data = json.dumps({"jsonrpc": "2.0", "id": rpc_id, "result": event})
            await response.write(f"data: {data}\n\n".encode())
        return response

    def _events(self) -> Iterable[Event]:
        ids = {"taskId": "t1", "contextId": "c1"}
        for number, text in enumerate(self._texts):
            artifact = {"artifactId": "a1", "parts": [{"kind": "text", "text": text}]}
            update: Event = {"kind": "artifact-update", "append": number > 0, "lastChunk": False}
            yield {**update, **ids, "artifact": artifact}
        status: Event = {"state": "completed"}
        if self._message:
            parts = [{"kind": "text", "text": self._message}]
            message = {"kind": "message", "messageId": "m1", "role": "agent", "parts": parts}
            status["message"] = message
        yield {"kind": "status-update", "final": True, **ids, "status": status}


class Page:
    """Appends what says append, replaces what says replace, and adds a final message."""

    def __init__(self) -> None:
        self.text = ""

    def show(self, event: Event) -> None:
        if event["kind"] == "artifact-update":
            before = self.text if event["append"] else ""
            self.text = before + _text(event["artifact"])
        elif "message" in event["status"]:
            self.text += _text(event["status"]["message"])


def _text(holder: Event) -> str:
    return "".join(part["text"] for part in holder["parts"])


FAULTS = (
    Fault(
        "snapshot-to-delta",
        "an agent sends the text so far with each update, and calls it an addition",
        lambda: Agent(SNAPSHOTS),
    ),
    Fault(
        "final-message-once",
        "an agent streams its answer, and says all of it again with the final status",
        lambda: Agent(PIECES, message=ANSWER),
    ),
)
