"""Work that can be told, from outside, to stop where it waits."""

import asyncio
from collections.abc import Awaitable


class Drained(Exception):
    """The work was stopped because the process ends."""


class Patience:
    """Waits for work until `end` is called, which may come before, during or after it."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self._is_over = False

    def end(self) -> None:
        """Stop the work where it waits."""
        self._is_over = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def last(self, work: Awaitable[None]) -> None:
        """Do the work. Raises Drained if it was stopped."""
        try:
            async with asyncio.timeout(0 if self._is_over else None) as scope:
                self._scope = scope
                await work
        except TimeoutError:
            if scope.expired():
                raise Drained from None
            raise
        finally:
            self._scope = None
