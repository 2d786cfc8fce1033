"""What a demonstration is made of."""

from collections.abc import Awaitable, Callable

import msgspec

from midstream.demo.chat_server import ChatServer


class Outcome(msgspec.Struct, frozen=True):
    """What came out: as a person would see it, and whether it is right."""

    seen: str
    is_right: bool


class Fault(msgspec.Struct, frozen=True):
    """A fault, the addon that mends it, and the play that shows it."""

    addon: str
    title: str
    play: Callable[[ChatServer, str], Awaitable[Outcome]]
