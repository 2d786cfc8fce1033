"""Virtual time for real sockets: while it is frozen, the loop's timers and the hosts' clock stand
still until they are told to move.

So a capture is played at the pace at which it was recorded, timers included, however busy the
machine is, and every host sees the same times.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

NS_PER_S = 1_000_000_000
EPSILON_S = 1e-6
"""So that rounding to float seconds never leaves a timer a hair in the future."""

_real_ns = time.monotonic_ns


class Clock:
    """What `time.monotonic_ns` and the loop's time say: real time, unless frozen."""

    def __init__(self) -> None:
        self._ahead_ns = 0
        self._frozen_ns: int | None = None

    def monotonic_ns(self) -> int:
        if self._frozen_ns is not None:
            return self._frozen_ns
        return _real_ns() + self._ahead_ns

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let time stand still for what it is told here; real time goes on from there."""
        self._frozen_ns = self.monotonic_ns()
        try:
            yield
        finally:
            self._ahead_ns = self._frozen_ns - _real_ns()
            self._frozen_ns = None

    def advance(self, to_ns: int) -> None:
        """Move frozen time on, never back."""
        assert self._frozen_ns is not None
        self._frozen_ns = max(self._frozen_ns, to_ns)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers go by a `Clock`."""

    def __init__(self, clock: Clock) -> None:
        self._virtual = clock
        super().__init__()

    def time(self) -> float:
        return self._virtual.monotonic_ns() / NS_PER_S + EPSILON_S


@contextmanager
def virtual_runner(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Runner]:
    """Run coroutines under a clock."""
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic_ns", clock.monotonic_ns)
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
            yield runner
