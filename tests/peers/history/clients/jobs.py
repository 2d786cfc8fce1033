"""Conversations for a Python client: told on standard input, a JSON line each when they are over.

Standard library only. What a client does to invert its history is here too, since it is the same
for every API: within a turn, each text that was said before a tool call goes behind the last
result.
"""

import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

QUESTIONS = ("Read package.json, then the rest.", "Which licence is it?")
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
MAX_STEPS = 5
AT_ONCE = 4
JOB_SECONDS = 30.0
"""The timeout of one request."""

type Job = dict[str, Any]
type Held = dict[str, Any]
type Item = dict[str, Any]


def run(converse: Callable[[Job, Held], None]) -> None:
    """Play every job and print what the client held in the end."""

    def play(job: Job) -> Held:
        held: Held = {"key": job["key"], "texts": [], "paths": [], "error": ""}
        try:
            converse(job, held)
        except Exception as error:  # noqa: BLE001, a failed job is a row like any other
            held["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        return held

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for held in pool.map(play, json.load(sys.stdin)):
            print(json.dumps(held), flush=True)


def read(held: Held, arguments: dict[str, Any]) -> str:
    """Be the tool."""
    held["paths"].append(arguments["path"])
    return f"contents of {arguments['path']}"


def invert(
    history: Iterable[Item],
    split: Callable[[Item], tuple[list[Item], list[Item]]],
    is_result: Callable[[Item], bool],
) -> list[Item]:
    """Return the history with its texts out of place.

    `split` takes the texts out of an item: what is left, and the texts, as items of their own.
    """
    turns: list[list[Item]] = []
    for item in history:
        if not turns or (item.get("role") == "user" and not is_result(item)):
            turns.append([])
        turns[-1].append(item)
    return [item for turn in turns for item in _inverted_turn(turn, split, is_result)]


def _inverted_turn(
    turn: list[Item],
    split: Callable[[Item], tuple[list[Item], list[Item]]],
    is_result: Callable[[Item], bool],
) -> list[Item]:
    end = max((at + 1 for at, item in enumerate(turn) if is_result(item)), default=0)
    before: list[Item] = []
    parked: list[Item] = []
    for item in turn[:end]:
        rest, texts = split(item)
        before += rest
        parked += texts
    return [*before, *parked, *turn[end:]]
