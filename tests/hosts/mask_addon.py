"""A foreign addon for tests: replaces the word `secret`, drops what says `drop`."""

import msgspec

from midstream.core.addon import KEEP, Addon, Context, Verdict
from midstream.core.frames import Frame


class Settings(msgspec.Struct, frozen=True):
    """Its options."""

    instead: str = "masked"


class Nothing(msgspec.Struct):
    """Its state."""


class Mask(Addon[Nothing, Nothing]):
    """Masks a word."""

    name = "mask"
    dialects = ("cloudflare_chat",)
    rules = ("mask", "drop")
    Options = Settings

    def __init__(self, options: Settings) -> None:
        self._instead = options.instead.encode()

    def new_state(self) -> Nothing:
        return Nothing()

    def new_conversation(self) -> Nothing:
        return Nothing()

    def on_frame(self, frame: Frame, ctx: Context[Nothing, Nothing]) -> Verdict:
        if b"drop" in frame.wire:
            return Verdict.drop("drop")
        if b"secret" not in frame.wire:
            return KEEP
        masked = frame.wire.replace(b"secret", self._instead)
        return Verdict.replace("mask", Frame(frame.sender, frame.kind, masked))
