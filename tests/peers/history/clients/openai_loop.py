"""An agent loop with the `openai` package: Responses and Chat Completions.

python -m tests.peers.history.clients.openai_loop < jobs.json
"""

import json
from importlib import import_module
from typing import Any

from tests.peers.history.clients import jobs
from tests.peers.history.clients.jobs import Held, Item, Job

openai = import_module("openai")  # in this client's own environment, not in the project's


def converse(job: Job, held: Held) -> None:
    client = openai.OpenAI(
        api_key=job["credential"],
        default_headers={"x-conversation": job["key"]},
        base_url=f"{job['base']}/v1",
        max_retries=0,
        timeout=jobs.JOB_SECONDS,
    )
    ask = chat if job["api"] == "chat" else responses
    history: list[Item] = []
    for question in jobs.QUESTIONS:
        history.append({"role": "user", "content": question})
        for _step in range(jobs.MAX_STEPS):
            said, results = ask(client, job, held, history)
            history += [*said, *results]
            if not results:
                break


def responses(
    client: Any, job: Job, held: Held, history: list[Item]
) -> tuple[list[Item], list[Item]]:
    """Return the items of one answer, and the results of its calls."""
    sent = jobs.invert(history, split_item, is_output) if job["inverted"] else history
    settings: dict[str, Any] = {"store": job["store"]}
    if job["reasoning"]:
        settings["reasoning"] = {"effort": "low", "summary": "auto"}
    if not job["store"]:
        settings["include"] = ["reasoning.encrypted_content"]
    tool = {
        "type": "function",
        "name": "Read",
        "description": "Read a file.",
        "parameters": jobs.SCHEMA,
        "strict": True,
    }
    stream = client.responses.create(
        model="gpt-5.5", input=sent, tools=[tool], stream=True, **settings
    )
    answer = next(event for event in stream if event.type == "response.completed").response
    held["texts"].append(answer.output_text)
    results = [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": jobs.read(held, json.loads(item.arguments)),
        }
        for item in answer.output
        if item.type == "function_call"
    ]
    return [item.to_dict() for item in answer.output], results


def split_item(item: Item) -> tuple[list[Item], list[Item]]:
    return ([], [item]) if item.get("type") == "message" else ([item], [])


def is_output(item: Item) -> bool:
    return item.get("type") == "function_call_output"


def chat(client: Any, job: Job, held: Held, history: list[Item]) -> tuple[list[Item], list[Item]]:
    """Return the message of one answer, and the results of its calls."""
    sent = jobs.invert(history, split_message, is_tool) if job["inverted"] else history
    about = {"name": "Read", "description": "Read a file.", "parameters": jobs.SCHEMA}
    with client.chat.completions.stream(
        model="gpt-4.1",
        messages=sent,
        tools=[{"type": "function", "function": {**about, "strict": True}}],
    ) as stream:
        message = stream.get_final_completion().choices[0].message
    held["texts"].append(message.content)
    said: Item = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = [_call(call) for call in message.tool_calls]
    results = [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": jobs.read(held, json.loads(call.function.arguments)),
        }
        for call in message.tool_calls or ()
    ]
    return [said], results


def split_message(message: Item) -> tuple[list[Item], list[Item]]:
    if message["role"] != "assistant":
        return [message], []
    text = {"role": "assistant", "content": message["content"]}
    return ([{**message, "content": None}], [text]) if "tool_calls" in message else ([], [text])


def is_tool(message: Item) -> bool:
    return bool(message["role"] == "tool")


def _call(call: Any) -> Item:
    about = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": about}


if __name__ == "__main__":
    jobs.run(converse)
