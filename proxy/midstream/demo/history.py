"""The fault of an agent that sends its provider a history in another order than it happened."""

import json
from typing import Any

import aiohttp
from aiohttp import web

from midstream.demo.fault import Fault, Outcome

type Item = dict[str, Any]

ORDER = ["user", "message", "function_call", "function_call_output"]


def _message(identifier: str, text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": identifier, "role": "assistant", "status": "completed"}
    return {**message, "content": content}


SAID = _message("msg_1", "Let me look.")
CALL: Item = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read",
    "arguments": "{}",
    "status": "completed",
}
RESULT: Item = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
ASKED: Item = {"role": "user", "content": "What does the file say?"}


class Provider:
    """A provider that speaks, calls a tool, and is then asked to go on.

    `play` is the agent: it files texts behind all calls of a turn, as Maka did before its own
    repair, and as several others do.
    """

    def __init__(self) -> None:
        self.read: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/responses", self._respond)
        return app

    async def play(self, base_url: str) -> Outcome:
        async with aiohttp.ClientSession() as session:
            for history in ([ASKED], [ASKED, CALL, RESULT, SAID]):
                body = {"model": "demo", "stream": True, "input": history}
                async with session.post(f"{base_url}/v1/responses", json=body) as response:
                    await response.read()
        return Outcome(f"the provider reads: {', '.join(self.read)}", self.read == ORDER)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        history = (await request.json())["input"]
        self.read = [item.get("type") or item["role"] for item in history]
        output = [SAID, CALL] if len(history) == 1 else [_message("msg_2", "It says 42.")]
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(f"resp_{len(history)}", output):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response


def _events(identifier: str, output: list[Item]) -> list[Item]:
    head = {"id": identifier, "object": "response", "status": "in_progress", "output": []}
    events: list[Item] = [{"type": "response.created", "response": head}]
    for index, item in enumerate(output):
        for kind in ("added", "done"):
            events.append({"type": f"response.output_item.{kind}", "output_index": index})
            events[-1]["item"] = item
    whole = {**head, "status": "completed", "output": output}
    return [*events, {"type": "response.completed", "response": whole}]


FAULTS = (
    Fault(
        "history-order",
        "an agent sends what the model said first behind the tool call that followed it",
        Provider,
    ),
)
