"""Keeps conversations in a store, beside the streams and never in front of them.

- A conversation is loaded before the exchange that needs it opens. That is waited for, at most
  `LOAD_SECONDS`; one that another exchange uses here needs no loading.
- It is saved when an exchange leaves it, and every `SAVE_SECONDS` while frames arrive. One save of
  a conversation is under way at a time, and the state is written as it stands at that moment.
- A version is milliseconds since 1970, or one more than the version that was read: of two processes
  the one that saved last wins, and a save that was on its way for long loses.
- A store that fails costs memory of the past, not a stream: it is counted, `healthy` is False, and
  nothing is loaded until it answers again; what could not be saved is saved then.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable
from typing import Protocol

from midstream.core import metrics
from midstream.core.conversation import Conversation
from midstream.core.engine import Engine, Route
from midstream.core.errors import StoreError
from midstream.core.exchange import RequestHead
from midstream.core.ports import Store
from midstream.core.session import Session
from midstream.core.stored import packed
from midstream.hosts.gateway_drive import NS_PER_S

logger = logging.getLogger(__name__)

LOAD_SECONDS = 0.5
SAVE_SECONDS = 0.25
RETRY_SECONDS = 1.0
MAX_UNSAVED = 10_000
"""How many conversations may wait for a store that is down."""
PARALLEL_SAVES = 8
PROBE_KEY = bytes(32)


class Streams(Protocol):
    """The open streams, whose conversations change while they are open."""

    @property
    def sessions(self) -> Iterable[Session]: ...


class Keeper:
    """The store of a process at work. `ttl_s` is how long an unused conversation is kept there."""

    def __init__(
        self,
        engine: Engine,
        streams: Streams,
        store: Store,
        *,
        ttl_s: float,
        max_conversation_bytes: int,
    ) -> None:
        self._engine = engine
        self._streams = streams
        self._store = store
        self._ttl_s = ttl_s
        self._max_bytes = max_conversation_bytes
        self._unsaved: dict[bytes, Conversation] = {}
        self._seen: dict[int, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._saving = 0
        self._is_ending = False
        self._retry_at = 0.0
        self.healthy = True
        engine.on_left = self._on_left

    # --- for the host -----------------------------------------------------------------------------

    async def recall(self, head: RequestHead, route: Route) -> None:
        """Load what an exchange with this head remembers, before it opens. Never raises."""
        try:
            keys = self._engine.keys(head, route)
        except Exception:
            logger.exception("the conversations of an exchange could not be named")
            return
        for key in keys:
            if not self._is_at_hand(key) and not self._is_down():
                await self._load(key, route)

    def start(self) -> None:
        """Begin to save, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._save_for_ever())

    async def stop(self) -> None:
        """Save what is unsaved, once more if the store is there, and end."""
        self._is_ending = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self._store.close()

    @property
    def unsaved(self) -> int:
        """How many conversations are waiting to be saved, or on their way."""
        return len(self._unsaved) + self._saving

    # --- loading ----------------------------------------------------------------------------------

    def _is_at_hand(self, key: bytes) -> bool:
        """Tell whether what is known here of a conversation is newer than what is stored."""
        known = self._engine.conversations.find(key)
        return known is not None and (known.users > 0 or key in self._unsaved)

    def _is_down(self) -> bool:
        return not self.healthy and asyncio.get_running_loop().time() < self._retry_at

    async def _load(self, key: bytes, route: Route) -> None:
        began_ns = time.monotonic_ns()
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                found = await self._store.load(key)
            self._answered("load", began_ns)
            if found is not None and not self._is_at_hand(key):  # it may be by now
                self._engine.restore(key, *found, route)
        except (StoreError, TimeoutError) as error:
            self._failed("load", began_ns, error)
        except Exception:  # an addon that cannot take over what it once wrote begins anew
            logger.exception("a stored conversation could not be taken over")

    # --- saving -----------------------------------------------------------------------------------

    def _on_left(self, conversation: Conversation) -> None:
        self._note(conversation)
        self._wake.set()

    def _note(self, conversation: Conversation) -> None:
        if len(self._unsaved) < MAX_UNSAVED or conversation.key in self._unsaved:
            self._unsaved[conversation.key] = conversation

    def _note_busy_ones(self) -> None:
        """Note the conversations of streams on which something has come since the last look."""
        seen: dict[int, int] = {}
        for session in self._streams.sessions:
            number, last_ns = session.exchange.number, session.last_frame_ns
            seen[number] = last_ns
            if self._seen.get(number) != last_ns:
                for conversation in session.conversations:
                    self._note(conversation)
        self._seen = seen

    async def _save_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        look_at = loop.time() + SAVE_SECONDS
        while not self._is_ending:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(look_at):
                    await self._wake.wait()
            self._wake.clear()
            if loop.time() >= look_at:  # also where exchanges that end wake it all the time
                self._note_busy_ones()
                look_at = loop.time() + SAVE_SECONDS
            if not self._is_down():
                await self._save_all()
        self._note_busy_ones()
        await self._save_all()

    async def _save_all(self) -> None:
        if not self.healthy:
            await self._probe()
        while self._unsaved and self.healthy:
            batch = [self._unsaved.pop(key) for key in list(self._unsaved)[:PARALLEL_SAVES]]
            self._saving = len(batch)
            await asyncio.gather(*(self._save(conversation) for conversation in batch))
            self._saving = 0

    async def _probe(self) -> None:
        """Find out whether the store is back."""
        began_ns = time.monotonic_ns()
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await self._store.load(PROBE_KEY)
            self._answered("load", began_ns)
        except (StoreError, TimeoutError) as error:
            self._failed("load", began_ns, error)

    async def _save(self, conversation: Conversation) -> None:
        began_ns = time.monotonic_ns()
        try:
            value = packed(conversation.states)
            if len(value) > self._max_bytes:
                self._engine.counts.add(metrics.STORE_ERRORS, ("size",))
                return
            version = max(time.time_ns() // 1_000_000, conversation.version + 1)
            async with asyncio.timeout(LOAD_SECONDS):
                is_stored = await self._store.save(conversation.key, value, version, self._ttl_s)
            self._answered("save", began_ns)
            # Where another process was later, this memory is old: the next exchange loads anew.
            conversation.version = version if is_stored else 0
        except (StoreError, TimeoutError) as error:
            self._failed("save", began_ns, error)
            self._unsaved.setdefault(conversation.key, conversation)
        except Exception:
            logger.exception("a conversation could not be saved")

    # --- how the store does -----------------------------------------------------------------------

    def _answered(self, op: str, began_ns: int) -> None:
        self._observe(op, began_ns)
        if not self.healthy:
            self.healthy = True
            logger.warning("the store is back")

    def _failed(self, op: str, began_ns: int, error: Exception) -> None:
        self._observe(op, began_ns)
        self._engine.counts.add(metrics.STORE_ERRORS, (op,))
        self._retry_at = asyncio.get_running_loop().time() + RETRY_SECONDS
        if self.healthy:
            self.healthy = False
            logger.error("the store fails, running on without it: %s", error or "too slow")

    def _observe(self, op: str, began_ns: int) -> None:
        seconds = (time.monotonic_ns() - began_ns) / NS_PER_S
        self._engine.counts.observe(metrics.STORE_SECONDS, (op,), seconds)
