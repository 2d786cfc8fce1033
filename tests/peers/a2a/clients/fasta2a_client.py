"""The client of fasta2a, under an application that honours the flags of what it reads.

python -m tests.peers.a2a.clients.fasta2a_client LABEL URL SCENARIO,SCENARIO
"""

# the peer's own packages are in its environment, not in the project's
# mypy: disable-error-code="import-not-found"

from typing import Any
from uuid import uuid4

from fasta2a.client import A2AClient
from tests.peers.a2a.clients import views
from tests.peers.a2a.clients.report import noted, row, rows_of, run


def text_of(parts: list[Any]) -> str:
    return "".join(part.get("text", "") for part in parts)


def task_event(task: Any) -> views.Task:
    artifacts = {
        found["artifact_id"]: text_of(found["parts"]) for found in task.get("artifacts", [])
    }
    said_last = task["status"].get("message")
    return views.Task(
        views.state_word(task["status"]["state"]),
        artifacts,
        text_of(said_last["parts"]) if said_last else "",
    )


def neutral(result: Any) -> views.Event:
    if "artifact_update" in result:
        update = result["artifact_update"]
        artifact = update["artifact"]
        text = text_of(artifact["parts"])
        return views.Update(artifact["artifact_id"], text, bool(update.get("append")))
    if "status_update" in result:
        status = result["status_update"]["status"]
        message = status.get("message")
        text = text_of(message["parts"]) if message else ""
        return views.Status(views.state_word(status["state"]), text)
    if "task" in result:
        return task_event(result["task"])
    raise ValueError(f"an event with {sorted(result)}")


async def play(base: str, scenario: str) -> None:
    client = A2AClient(base)
    message = {"role": "user", "parts": [{"text": scenario}], "message_id": str(uuid4())}
    events: list[views.Event] = []
    task_id = ""
    with noted() as errors:
        async for response in client.stream_message(message):
            result = response["result"]
            events.append(neutral(result))
            task_id = task_id or result.get("task", {}).get("id", "")
    rows_of(scenario, events, " ".join(errors), "app", "appender")
    if task_id:
        found = await client.get_task(task_id)
        task = task_event(found["result"].get("task", found["result"]))
        row(scenario, "stored", task.artifacts, task.text)


if __name__ == "__main__":
    run(play)
