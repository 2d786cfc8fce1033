"""What a demonstration is made of."""

from collections.abc import Callable
from typing import Protocol

import msgspec
from aiohttp import web


class Outcome(msgspec.Struct, frozen=True):
    """What came out: as a person would see it, and whether it is right."""

    seen: str
    is_right: bool


class Scene(Protocol):
    """A small faulty server, and what is done with it. Each is played once."""

    def app(self) -> web.Application:
        """Return what answers for the server."""

    async def play(self, base_url: str) -> Outcome:
        """Talk to the server under an address, its own or that of a proxy in front of it."""


class Fault(msgspec.Struct, frozen=True):
    """A fault, the addon that mends it, and the scene that shows it."""

    addon: str
    title: str
    scene: Callable[[], Scene]
