"""A page that does what an update says: append, or replace; a final message comes on top."""

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ANSWER_SECONDS = 30.0
HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream"}

type Fields = dict[str, Any]


def request_body() -> bytes:
    """Return the request, which is the same for each variant."""
    part = {"kind": "text", "text": "Which regions are there?"}
    message = {"kind": "message", "messageId": "m1", "role": "user", "parts": [part]}
    request = {"jsonrpc": "2.0", "id": "1", "method": "message/stream"}
    return json.dumps({**request, "params": {"message": message}}).encode()


def ask(url: str) -> tuple[int, list[tuple[str, str]], bytes]:
    """Send the request, and return status, headers and the whole body."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, request_body(), HEADERS)
    with opener.open(request, timeout=ANSWER_SECONDS) as response:
        return response.status, response.getheaders(), response.read()


def results(body: bytes) -> Iterator[Fields]:
    """Read what the events of an answer hold."""
    for line in body.decode().splitlines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))["result"]


@dataclass
class Page:
    """What a page shows of an answer."""

    artifacts: dict[str, list[Fields]] = field(default_factory=dict)
    message: list[Fields] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, body: bytes) -> "Page":
        page = cls()
        for result in results(body):
            page.take(result)
        return page

    def take(self, result: Fields) -> None:
        if result["kind"] == "artifact-update":
            artifact = result["artifact"]
            if not result.get("append"):
                self.artifacts[artifact["artifactId"]] = []
            self.artifacts.setdefault(artifact["artifactId"], []).extend(artifact["parts"])
            return
        status = result["status"]
        self.states.append(status["state"])
        if status["state"] == "completed" and "message" in status:
            self.message += status["message"]["parts"]

    @property
    def parts(self) -> list[Fields]:
        return [part for parts in self.artifacts.values() for part in parts] + self.message

    @property
    def text(self) -> str:
        return "".join(part["text"] for part in self.parts if part["kind"] == "text")

    @property
    def tools(self) -> set[str]:
        """Each call and each result of a tool, once."""
        data = [part["data"] for part in self.parts if part["kind"] == "data"]
        return {json.dumps(each, sort_keys=True) for each in data}
