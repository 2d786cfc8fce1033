"""The rows a client prints for the rig, one JSON object a line. Standard library only.

python -m tests.peers.a2a.clients.CLIENT LABEL URL SCENARIO,SCENARIO [LABEL URL ...]
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tests.peers.a2a.clients.views import App, Appender, Event

RUNNING_AT_ONCE = 8
SCENARIO_SECONDS = 30

type Play = Callable[[str, str], Awaitable[None]]
"""Plays one scenario against the agent at an address."""

AT: ContextVar[str] = ContextVar("AT")
"""The label of the place that is played at."""


def row(scenario: str, view: str, held: dict[str, str], message: str = "", error: str = "") -> None:
    """Tell what `view` holds in the end: each artifact's text, and that of a message beside."""
    found = {"at": AT.get(), "scenario": scenario, "view": view}
    print(json.dumps({**found, "held": held, "message": message, "error": error}), flush=True)


def rows_of(scenario: str, events: list[Event], error: str, *views: str) -> None:
    """Tell what the two applications of `views` make of these events."""
    for view in views:
        shown = App() if view == "app" else Appender()
        for event in events:
            shown.feed(event)
        row(scenario, view, shown.lanes, shown.message, error)


def said(error: BaseException) -> str:
    """An error in one short line."""
    return f"{type(error).__name__}: {error}".strip().splitlines()[0][:160]


@contextmanager
def noted() -> Iterator[list[str]]:
    """Catch whatever an SDK raises, as an application would that shows what it has by then."""
    errors: list[str] = []
    try:
        yield errors
    except Exception as error:  # noqa: BLE001 - peers raise what they like, and it is told
        errors.append(said(error))


def same_place(url: str, base: str) -> bool:
    return url.split("/")[2] == base.split("/")[2]


def card_row(url: str, base: str) -> None:
    """Tell whether the card leads to where it was fetched from."""
    row("card", "url", {"url": "own" if same_place(url, base) else "past the proxy"})


def run(play: Play, first: Callable[[str], Awaitable[None]] | None = None) -> None:
    """Play every scenario at every place asked for, a few at a time, each in bounded time.

    `first` is called once for each place.
    """
    words = sys.argv[1:]
    places = list(zip(words[::3], words[1::3], words[2::3], strict=True))

    async def bounded(
        limit: asyncio.Semaphore, label: str, scenario: str, playing: Awaitable[None]
    ) -> None:
        AT.set(label)
        async with limit:
            with noted() as errors:
                async with asyncio.timeout(SCENARIO_SECONDS):
                    await playing
            for error in errors:
                row(scenario, "client", {}, error=error)

    async def all_of_them() -> None:
        limit = asyncio.Semaphore(RUNNING_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for label, base, scenarios in places:
                if first is not None:
                    group.create_task(bounded(limit, label, "card", first(base)))
                for scenario in scenarios.split(","):
                    group.create_task(bounded(limit, label, scenario, play(base, scenario)))

    asyncio.run(all_of_them())
