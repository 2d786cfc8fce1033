"""The addon contract: one frame in, one verdict out.

An addon is pure and synchronous: no I/O, no clock, no randomness. The object itself holds settings
and is shared by all exchanges; what changes lives in two states that the chain hands over with
every call: one of the exchange, and one of the conversation, which all exchanges of that
conversation share (two tabs, an old socket and the new one).

What an addon cannot do itself it asks of the host, from a closed set: `Fetch` and `Wait`. The
answer comes back to the same addon through `on_answer`, while frames go on flowing.

A frame that cannot be judged yet can be held. Held frames belong to the chain, in order, bounded in
bytes and time; a later verdict settles those that it names, and the others stay in their order. If
a bound is reached, or the addon fails, the chain lets them go as they came.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

import msgspec

from midstream.core.exchange import Exchange, ResponseHead
from midstream.core.frames import Frame, Side


class Mode(StrEnum):
    """How an addon runs. In observe mode it counts what it would do, and every frame passes."""

    OFF = "off"
    OBSERVE = "observe"
    REPAIR = "repair"


class Ending(StrEnum):
    """How an exchange ended."""

    COMPLETE = "complete"
    ABORTED = "aborted"


class Fetch(msgspec.Struct, frozen=True, tag="fetch"):
    """Ask for a GET of `target` at the same upstream, with the credentials of this exchange."""

    target: str


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    """Ask to be called again after `ms` milliseconds. `name` tells one wait from another."""

    ms: int
    name: str = ""


type Ask = Fetch | Wait


class Answer(msgspec.Struct, frozen=True):
    """What the host brings back; `status` is 0 where a fetch failed, was too slow or too large."""

    status: int = 0
    body: bytes = b""


class Skipped(msgspec.Struct, frozen=True):
    """A note: the addon declined to act, and why (one of its declared reasons)."""

    reason: str


class Reconnected(msgspec.Struct, frozen=True):
    """A note: what became of a reconnect: `rebuilt`, `passed` or `unknown`."""

    result: str


class Compared(msgspec.Struct, frozen=True):
    """A note: pairs of history items, as `comparable`, `inverted_in` or `inverted_out`."""

    state: str
    pairs: int


class Prefixed(msgspec.Struct, frozen=True):
    """A note: of the `sent` items of a conversation's last request, `kept` lead this one."""

    kept: int
    sent: int


type Note = Skipped | Reconnected | Compared | Prefixed
type Facts = Mapping[str, str | int | bool]

NO_FACTS: Final[Facts] = MappingProxyType({})


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of a frame.

    `frames` leave now, in this order, each towards the side that did not send it; None stands for
    the frame at hand as it came. `rule` is one of the addon's declared words; empty means that
    nothing was changed, and then no frame may get lost. With `hold` the frame at hand stays with
    the chain. `settles` names the held frames that this verdict accounts for, as they are in
    `Context.held` (the same objects, in any order): what of them should still leave is in `frames`.
    With `paced` the frames leave in slices (see `Pace`), later ones behind them. `repairs` is how
    many received frames the rule is counted for. `why` holds the few facts by which the addon
    decided, for people who look at a capture: ids, places, counts, which mode; never a message's
    text.
    """

    frames: tuple[Frame, ...] | None = None
    rule: str = ""
    hold: bool = False
    settles: Sequence[Frame] = ()
    paced: bool = False
    repairs: int = 1
    asks: tuple[Ask, ...] = ()
    notes: tuple[Note, ...] = ()
    why: Facts = NO_FACTS

    @classmethod
    def keep(cls, *, asks: tuple[Ask, ...] = (), notes: tuple[Note, ...] = ()) -> Self:
        return cls(asks=asks, notes=notes)

    @classmethod
    def drop(cls, rule: str, *, why: Facts = NO_FACTS) -> Self:
        return cls((), rule, why=why)

    @classmethod
    def replace(cls, rule: str, *frames: Frame, why: Facts = NO_FACTS) -> Self:
        return cls(frames, rule, why=why)

    @classmethod
    def skip(cls, reason: str, *, why: Facts = NO_FACTS) -> Self:
        """Let the frame pass as it came, and count why."""
        return cls(notes=(Skipped(reason),), why=why)


KEEP: Final = Verdict()


class Pace(msgspec.Struct, frozen=True):
    """How a long run of frames leaves: at most `frames` of one side every `every_ms` ms."""

    frames: int = 24
    every_ms: int = 12


class Context[S, C](msgspec.Struct):
    """What an addon is given with each call. `held` are the frames it holds, oldest first."""

    exchange: Exchange
    state: S
    conversation: C
    held: Sequence[Frame]
    observe: bool
    now_ns: int


class Addon[S, C]:
    """A repair. Subclass it, declare the words below, and write `on_frame`.

    `rules` are the words its verdicts use, `reasons` the words of its `Skipped` notes; both become
    metric labels, so both are closed sets. `meanings` says of each in one plain sentence what it
    means. `Options` is the type of its settings.
    """

    name: ClassVar[str]
    dialects: ClassVar[tuple[str, ...]]
    rules: ClassVar[tuple[str, ...]]
    reasons: ClassVar[tuple[str, ...]] = ()
    meanings: ClassVar[Mapping[str, str]] = {}
    Options: ClassVar[type[msgspec.Struct]]

    def new_state(self) -> S:
        """Return the state of a new exchange."""
        raise NotImplementedError

    def new_conversation(self) -> C:
        """Return the state of a new conversation: a `msgspec.Struct`, so that it can be stored."""
        raise NotImplementedError

    def conversation_bytes(self, conversation: C) -> int:
        """Return about how many bytes the state of a conversation takes."""
        return 0

    def on_open(self, ctx: Context[S, C]) -> Verdict:
        """Look at a new exchange before its first frame."""
        return KEEP

    def wants(self, response: ResponseHead, ctx: Context[S, C]) -> bool:
        """Tell whether a response that its dialect can read is of interest here.

        A body is collected before it goes on. One that is only slow to come must not be, so an
        addon that knows from the request that a response is not its own says so.
        """
        return True

    def on_frame(self, frame: Frame, ctx: Context[S, C]) -> Verdict:
        """Judge one frame."""
        raise NotImplementedError

    def on_answer(self, ask: Ask, answer: Answer, ctx: Context[S, C]) -> Verdict:
        """Take the answer to an earlier ask. There is no frame at hand: None means no frames."""
        return KEEP

    def on_overdue(self, ctx: Context[S, C]) -> Verdict:
        """Settle the held frames, a bound of which is reached; what is left leaves as it came."""
        return KEEP

    def on_end(self, side: Side, ctx: Context[S, C]) -> Verdict:
        """Look at the end of what `side` sends; frames held from it leave next, as they came."""
        return KEEP

    def on_close(self, ending: Ending, ctx: Context[S, C]) -> None:
        """Note that the exchange is over. An addon that failed too often is told, too."""


type AnyAddon = Addon[Any, Any]
