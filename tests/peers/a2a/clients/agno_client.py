"""The client of agno: an application that shows the content of its events, one behind the other.

python -m tests.peers.a2a.clients.agno_client LABEL URL SCENARIO,SCENARIO
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found"

from agno.client.a2a import A2AClient
from tests.peers.a2a.clients.report import noted, row, run
from tests.peers.a2a.scenarios import FAST, SCENARIOS

SECONDS = 20


async def play(base: str, scenario: str) -> None:
    # agno's own server speaks its REST-like paths, all others JSON-RPC
    protocol = "rest" if "/a2a/agents/" in base else "json-rpc"
    client = A2AClient(base, timeout=SECONDS, protocol=protocol)
    content, everything = "", ""
    with noted() as errors:
        async for event in client.stream_message(scenario):
            everything += event.content or ""
            if event.is_content:
                content += event.content or ""
    error = " ".join(errors)
    row(scenario, "content", {"": content}, error=error)
    if protocol == "rest":
        row(scenario, "events", {"": everything}, error=error)
    if scenario not in SCENARIOS:
        result = await client.send_message(scenario + FAST)
        row(scenario, "answer", {"": result.content})


if __name__ == "__main__":
    run(play)
