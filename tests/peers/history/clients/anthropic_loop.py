"""An agent loop with the `anthropic` package.

python -m tests.peers.history.clients.anthropic_loop < jobs.json
"""

from importlib import import_module
from typing import Any

from tests.peers.history.clients import jobs
from tests.peers.history.clients.jobs import Held, Item, Job

anthropic = import_module("anthropic")  # in this client's own environment, not in the project's

MAX_TOKENS = 4096
THINKING = {"type": "enabled", "budget_tokens": 1024}
TOOL = {"name": "Read", "description": "Read a file.", "input_schema": jobs.SCHEMA}


def converse(job: Job, held: Held) -> None:
    client = anthropic.Anthropic(
        api_key=job["credential"],
        default_headers={"x-conversation": job["key"]},
        base_url=job["base"],
        max_retries=0,
        timeout=jobs.JOB_SECONDS,
    )
    history: list[Item] = []
    for question in jobs.QUESTIONS:
        history.append({"role": "user", "content": question})
        for _step in range(jobs.MAX_STEPS):
            message = ask(client, job, history)
            held["texts"].append("".join(b.text for b in message.content if b.type == "text"))
            history.append({"role": "assistant", "content": message.content})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": jobs.read(held, block.input),
                }
                for block in message.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            history.append({"role": "user", "content": results})


def ask(client: Any, job: Job, history: list[Item]) -> Any:
    sent = jobs.invert(history, split_message, is_results) if job["inverted"] else history
    settings = {"thinking": THINKING} if job["reasoning"] else {}
    with client.messages.stream(
        model="claude-sonnet-4-5",
        max_tokens=MAX_TOKENS,
        messages=sent,
        tools=[TOOL],
        **settings,
    ) as stream:
        return stream.get_final_message()


def split_message(message: Item) -> tuple[list[Item], list[Item]]:
    if message["role"] != "assistant":
        return [message], []
    rest = [block for block in message["content"] if block.type != "text"]
    texts = [block for block in message["content"] if block.type == "text"]
    left = [{"role": "assistant", "content": rest}] if rest else []
    return left, [{"role": "assistant", "content": [text]} for text in texts]


def is_results(message: Item) -> bool:
    return message["role"] == "user" and not isinstance(message["content"], str)


if __name__ == "__main__":
    jobs.run(converse)
