"""Opens sessions: finds the dialects that read an exchange, its conversation, and its addons.

One engine serves all exchanges of a process. It owns what they share: routes, conversations and
counts. It does no I/O; the secret that keys conversations is given to it. An addon or dialect that
fails here is left out of that exchange, and counted.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from midstream.core import metrics
from midstream.core.addon import AnyAddon, Mode
from midstream.core.chain import Bounds, Chain, log_failure
from midstream.core.conversation import (
    Conversation,
    ConversationBounds,
    Conversations,
    conversation_key,
)
from midstream.core.dialect import Dialect
from midstream.core.exchange import Exchange, RequestHead, ResponseHead
from midstream.core.metrics import Counts
from midstream.core.ports import Sink
from midstream.core.series import start_known_series
from midstream.core.session import Session
from midstream.core.stored import unpacked


class Route(msgspec.Struct, frozen=True):
    """Where a path pattern leads, and which addons run on it, in their order."""

    name: str
    path: str
    upstream: str
    addons: tuple[tuple[AnyAddon, Mode], ...] = ()

    def matches(self, path: str) -> bool:
        """Match the pattern: `*` stands for any characters, and only at the end."""
        if self.path.endswith("*"):
            return path.startswith(self.path[:-1])
        return path == self.path


class Limits(msgspec.Struct, frozen=True):
    """The bounds of one engine."""

    max_frame_bytes: int = 16 << 20
    hold: Bounds = Bounds()
    conversations: ConversationBounds = ConversationBounds()


class _Seat(msgspec.Struct, frozen=True):
    """An addon that takes part in an exchange, and the dialects that read it for the addon."""

    addon: AnyAddon
    mode: Mode
    dialects: tuple[Dialect, ...]
    conversation: Conversation


class Engine:
    """Everything that the exchanges of one process share. `secret` is 1 to 64 bytes."""

    def __init__(
        self,
        routes: Sequence[Route],
        dialects: Sequence[Dialect],
        *,
        secret: bytes,
        counts: Counts | None = None,
        sink: Sink | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.routes = tuple(routes)
        self.counts = counts if counts is not None else Counts()
        self.limits = limits or Limits()
        self.conversations = Conversations(self.limits.conversations)
        self.on_left: Callable[[Conversation], None] = lambda _conversation: None
        """Called with every conversation that an exchange has left, after it is measured."""
        self._dialects = tuple(dialects)
        self._secret = secret
        self._sink = sink
        self._exchanges = 0
        self._start_series()

    def reroute(self, routes: Sequence[Route], limits: Limits) -> None:
        """Take other routes and limits for the exchanges that open from now on."""
        self.routes = tuple(routes)
        self.limits = msgspec.structs.replace(limits, conversations=self.limits.conversations)
        self._start_series()

    def _start_series(self) -> None:
        start_known_series(self.counts, [(route.name, route.addons) for route in self.routes])

    def route(self, head: RequestHead) -> Route | None:
        """Return the first route whose pattern matches the path."""
        return next((route for route in self.routes if route.matches(head.path)), None)

    def open(self, head: RequestHead, route: Route, *, origin: str = "") -> Session:
        """Return the session of a new exchange; the host opens it next.

        `origin` is that of `Exchange`: empty where the host does not know it.
        """
        self._exchanges += 1
        number, name, upstream = self._exchanges, route.name, route.upstream
        exchange = Exchange(number, name, upstream, head, origin, route.path)
        opened: dict[bytes, Conversation] = {}
        seats = []
        for addon, mode in route.addons:
            seat = self._seat(exchange, addon, mode, opened)
            if seat is not None:
                seats.append(seat)
        self._count_conversations()

        def readers(response: ResponseHead) -> list[str]:
            reading = [seat for seat in seats if self._reads_response(seat, head, response)]
            return [seat.addon.name for seat in reading]

        def on_close() -> None:
            for conversation in opened.values():
                self.conversations.close(conversation, self._sizes(conversation, seats))
                self.on_left(conversation)
            self._count_conversations()

        session = Session(
            exchange,
            self._chain(exchange, seats),
            self.counts,
            max_frame_bytes=self.limits.max_frame_bytes,
            sink=self._sink,
            readers=readers,
            on_close=on_close,
        )
        session.conversations = tuple(opened.values())
        return session

    def keys(self, head: RequestHead, route: Route) -> list[bytes]:
        """Return the keys of the conversations that an exchange with this head would use."""
        exchange = Exchange(0, route.name, route.upstream, head, "", route.path)
        keys: dict[bytes, None] = {}
        for addon, mode in route.addons:
            found = None if mode is Mode.OFF else self._readers(exchange, addon)
            if found is not None:
                keys[found[1]] = None
        return list(keys)

    def restore(self, key: bytes, value: bytes, version: int, route: Route) -> None:
        """Take over a conversation as a store had it. Raises StoreError.

        One that an exchange uses stays as it is: nothing stored can be newer.
        """
        known = self.conversations.find(key)
        if known is not None and (known.users or known.version >= version):
            return
        fresh = {addon.name: addon.new_conversation() for addon, _ in route.addons}
        types = {name: type(state) for name, state in fresh.items() if state is not None}
        states = unpacked(value, types)
        conversation = self.conversations.open(key)
        conversation.states.update(states)
        conversation.version = version
        sizes = {
            addon.name: self._attempt(addon, partial(_measured, addon, states[addon.name]), 0)
            for addon, _ in route.addons
            if addon.name in states
        }
        self.conversations.close(conversation, sizes)
        self._count_conversations()

    def _seat(
        self, exchange: Exchange, addon: AnyAddon, mode: Mode, opened: dict[bytes, Conversation]
    ) -> _Seat | None:
        """Return what an addon needs in an exchange, or None where no dialect reads it."""
        if mode is Mode.OFF:
            return None

        def take() -> _Seat | None:
            found = self._readers(exchange, addon)
            if found is None:
                return None
            readers, key = found
            if key not in opened:
                opened[key] = self.conversations.open(key)
            opened[key].state(addon.name, addon.new_conversation)
            return _Seat(addon, mode, readers, opened[key])

        return self._attempt(addon, take, None)

    def _readers(
        self, exchange: Exchange, addon: AnyAddon
    ) -> tuple[tuple[Dialect, ...], bytes] | None:
        """Return the dialects that read an exchange for an addon, and its conversation's key."""
        head = exchange.head
        readers = tuple(
            dialect
            for dialect in self._dialects
            if dialect.name in addon.dialects and dialect.reads(head)
        )
        if not readers:
            return None
        path = readers[0].conversation_path(head)
        return readers, conversation_key(exchange, path, self._secret)

    def _chain(self, exchange: Exchange, seats: Sequence[_Seat]) -> Chain | None:
        if not seats:
            return None
        links = [
            (seat.addon, seat.mode, seat.conversation.states[seat.addon.name]) for seat in seats
        ]
        return Chain(exchange, links, self.counts, self.limits.hold)

    def _reads_response(self, seat: _Seat, head: RequestHead, response: ResponseHead) -> bool:
        return self._attempt(
            seat.addon,
            lambda: any(dialect.reads_response(head, response) for dialect in seat.dialects),
            False,
        )

    def _sizes(self, conversation: Conversation, seats: Sequence[_Seat]) -> dict[str, int]:
        """Measure the states of a conversation; what cannot be measured keeps its old size."""
        sizes = {}
        for seat in seats:
            name = seat.addon.name
            if seat.conversation is conversation:
                state, old = conversation.states[name], conversation.sizes.get(name, 0)
                measure = partial(_measured, seat.addon, state)
                sizes[name] = self._attempt(seat.addon, measure, old)
        return sizes

    def _attempt[T](self, addon: AnyAddon, call: Callable[[], T], otherwise: T) -> T:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - fail open
            self.counts.add(metrics.ERRORS, (addon.name,))
            log_failure(addon.name, error)
            return otherwise

    def _count_conversations(self) -> None:
        kept = self.conversations
        self.counts.set(metrics.CONVERSATIONS, (), len(kept))
        self.counts.set(metrics.CONVERSATION_BYTES, (), kept.size_bytes)
        self.counts.set(metrics.EVICTIONS, (), kept.evictions)


def _measured(addon: AnyAddon, state: object) -> int:
    return max(int(addon.conversation_bytes(state)), 0)
