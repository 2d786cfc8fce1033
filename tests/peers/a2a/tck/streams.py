"""A client of the agents: it asks for a stream, and adds up what a page would show."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen

STREAM_SECONDS = 30
TRANSPORTS = ("jsonrpc", "rest")

type Event = dict[str, Any]

VARYING = re.compile(r'"(id|taskId|contextId|messageId|timestamp)": ?"[^"]*"')
"""What differs between two runs of the same script."""


def ask(sut: str, transport: str, url: str, message_id: str) -> bytes:
    """Send one message; return the bytes of the stream."""
    path, body = REQUESTS[sut, transport](message_id)
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if sut == "sut10":
        headers["A2A-Version"] = "1.0"
    request = Request(url + path, json.dumps(body).encode(), headers)
    with urlopen(request, timeout=STREAM_SECONDS) as answer:
        stream: bytes = answer.read()
        return stream


def rpc_10(message_id: str) -> tuple[str, Event]:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": "Where?"}]}
    return "/", call("SendStreamingMessage", message)


def rest_10(message_id: str) -> tuple[str, Event]:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": "Where?"}]}
    return "/rest/message:stream", {"message": message}


def rpc_03(message_id: str) -> tuple[str, Event]:
    parts = [{"kind": "text", "text": "Where?"}]
    message = {"kind": "message", "messageId": message_id, "role": "user", "parts": parts}
    return "/", call("message/stream", message)


def rest_03(message_id: str) -> tuple[str, Event]:
    """Return the form that a2a-sdk 0.3 reads: `content` instead of `parts`."""
    message = {"messageId": message_id, "role": "ROLE_USER", "content": [{"text": "Where?"}]}
    return "/rest/v1/message:stream", {"message": message}


def call(method: str, message: Event) -> Event:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}


REQUESTS: dict[tuple[str, str], Callable[[str], tuple[str, Event]]] = {
    ("sut10", "jsonrpc"): rpc_10,
    ("sut10", "rest"): rest_10,
    ("sut03", "jsonrpc"): rpc_03,
    ("sut03", "rest"): rest_03,
}


def alike(stream: bytes) -> bytes:
    """Return the stream without what differs between two runs of the same script."""
    return VARYING.sub(r'"\1":"-"', stream.decode()).encode()


def events(stream: bytes) -> Iterator[tuple[str, Event]]:
    """Yield each update with its 1.0 name."""
    names = {"artifact-update": "artifactUpdate", "status-update": "statusUpdate"}
    for block in stream.decode().replace("\r\n", "\n").split("\n\n"):
        # a2a-sdk 0.3 writes one event of HTTP+JSON in many lines
        lines = [line[5:] for line in block.split("\n") if line.startswith("data:")]
        if lines:
            answer = json.loads("\n".join(lines))
            update = answer.get("result", answer)
            if "kind" in update:
                yield names.get(update["kind"], update["kind"]), update
            else:
                yield from update.items()


def text_of(holder: Event) -> str:
    """Return the text of all its parts."""
    parts = holder.get("parts") or holder.get("content") or ()
    return "".join(part.get("text", "") for part in parts)


def shown(stream: bytes, *, appends: bool) -> str:
    """Return what a page shows: artifacts, then what the last status says.

    One that `appends` only adds to its text; the other kind honours `append: false`.
    """
    text = said = ""
    for name, event in events(stream):
        if name == "artifactUpdate":
            new = text_of(event["artifact"])
            text = text + new if appends or event.get("append") else new
        elif name == "statusUpdate":
            said = text_of(event["status"].get("message") or {})
    return text + said
