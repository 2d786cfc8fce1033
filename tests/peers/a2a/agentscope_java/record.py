"""Records what the server in `server/` sends, as captures.

    python -m tests.peers.a2a.agentscope_java.record VERSION URL TARGET

The A2A SDK under AgentScope now and then loses updates or never ends an answer, more so on a busy
machine. So an answer counts when it came twice in a row with the same texts and flags.
"""

import sys
from http.client import HTTPException
from pathlib import Path

from tests.captures.convert import HOP_BY_HOP, post
from tests.peers.a2a.agentscope_java.client import HEADERS, ask, request_body, results
from tests.peers.a2a.agentscope_java.variants import VARIANTS

TRIES = 8

type Response = tuple[int, list[tuple[str, str]], bytes]


def shape(body: bytes) -> list[object]:
    """Return the texts and flags of an answer, which are the same each time."""
    found: list[object] = []
    for result in results(body):
        message = result.get("status", {}).get("message") or {}
        holder = result.get("artifact") or message
        parts = [(part["kind"], part.get("text")) for part in holder.get("parts", [])]
        found.append((result["kind"], result.get("append"), parts))
    return found


def steady(url: str) -> Response:
    """Ask until an answer came twice in a row."""
    before: list[object] | None = None
    for _ in range(TRIES):
        try:
            response = ask(url)
        except (OSError, HTTPException) as error:
            print(f"{url}: {error!r}")
            continue
        if shape(response[2]) == before:
            return response
        before = shape(response[2])
    raise RuntimeError(f"{url}: no two answers in a row alike in {TRIES} tries")


def write(target: Path, version: str, variant: str, response: Response) -> None:
    """Write a request and its response as a capture."""
    status, headers, body = response
    kept = [[name, value] for name, value in headers if name.lower() not in HOP_BY_HOP]
    sent = [[name, value] for name, value in HEADERS.items()]
    capture = post([(f"/{variant}", request_body(), sent, status, kept, body)])
    capture.write(target, f"agentscope-java-{version}.{variant}")


def main(version: str, url: str, target: Path) -> None:
    for variant in VARIANTS:
        response = steady(f"{url}/{variant}")
        write(target, version, variant, response)
        print(f"{variant}: {len(shape(response[2]))} events, {len(response[2])} bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].rstrip("/"), Path(sys.argv[3]))
