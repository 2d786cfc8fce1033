"""Addons of another package, as a user would write them; some do not keep the contract."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from midstream.core.addon import KEEP, Addon, Context, Verdict
from midstream.core.frames import Frame
from midstream.dialects.cloudflare_chat import DIALECT


class MaskOptions(msgspec.Struct, frozen=True):
    words: Annotated[tuple[str, ...], Meta(description="what is masked")] = ("token",)
    strength: Annotated[int, Meta(ge=1, le=9)] = 1
    style: Literal["stars", "blank"] = "stars"


class MaskSecrets(Addon[None, None]):
    """Masks secrets."""

    name: ClassVar[str] = "mask-secrets"
    dialects: ClassVar[tuple[str, ...]] = (DIALECT.name,)
    rules: ClassVar[tuple[str, ...]] = ("masked",)
    reasons: ClassVar[tuple[str, ...]] = ("no_words",)
    Options: ClassVar[type[msgspec.Struct]] = MaskOptions

    def __init__(self, options: MaskOptions) -> None:
        self.options = options

    def new_state(self) -> None:
        return None

    def new_conversation(self) -> None:
        return None

    def on_frame(self, frame: Frame, ctx: Context[None, None]) -> Verdict:
        return KEEP


class LimitOptions(msgspec.Struct, frozen=True):
    max_words: int


class LimitWords(MaskSecrets):
    """Needs an option, and refuses some of its values."""

    name = "limit-words"
    Options = LimitOptions

    def __init__(self, options: LimitOptions) -> None:
        if options.max_words < 1:
            raise ValueError(f"max_words is {options.max_words}, at least 1 is needed")


class SameName(MaskSecrets):
    pass


class Nameless(Addon[None, None]):
    pass


class WordsInList(MaskSecrets):
    rules = ["masked"]  # type: ignore[assignment]  # noqa: RUF012  # what a user may get wrong


class Optionless(MaskSecrets):
    Options = dict  # type: ignore[assignment]  # what a user may get wrong


class WrongDialect(MaskSecrets):
    dialects = (DIALECT.name[:-1],)


NO_ADDON = "a string"
