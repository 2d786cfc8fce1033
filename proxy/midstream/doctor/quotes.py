"""Which requests to a model provider belong together: those that share an id.

A request quotes what the provider has said, by the ids of calls, items and responses. A response
whose ids a later request quotes is the one that request goes on from.
"""

from typing import Final

from midstream.core.frames import Frame, Kind, Side
from midstream.dialects.provider_history import Digests, History, Learned, Listener
from midstream.doctor.looking import Opened
from midstream_addons.history_order.addon import PROVIDERS

_KEY = b"doctor"
_PROVIDERS: Final = {provider.name: provider for provider in PROVIDERS}


class Quotes:
    """The sessions of one capture's requests to providers, by the digests of their ids."""

    def __init__(self) -> None:
        self._digests = Digests(_KEY)
        self._owners: dict[tuple[str, bytes], int] = {}
        self._parents: dict[int, int] = {}
        self._listeners: dict[int, Listener] = {}

    def hear(self, exchange: Opened, frame: Frame) -> None:
        """Take a frame of an exchange: a request, or a part of what came back."""
        provider = _PROVIDERS.get(exchange.dialect)
        if provider is None:
            return
        self._parents.setdefault(exchange.number, exchange.number)
        if frame.sender is Side.CLIENT:
            self._ask(exchange, provider.read_request(frame.payload))
        elif frame.kind is Kind.BODY:
            self._learn(exchange, provider.read_response(frame.payload, self._digests))
        else:
            listener = self._listeners.get(exchange.number)
            if listener is None:
                listener = self._listeners[exchange.number] = provider.listen(self._digests)
            if listener.receive(frame.payload):
                self.closed(exchange)

    def closed(self, exchange: Opened) -> None:
        """Take what a response has said, complete or cut."""
        listener = self._listeners.pop(exchange.number, None)
        if listener is not None:
            self._learn(exchange, listener.learned())

    def session(self, exchange: Opened) -> str:
        """Return what names the session of an exchange; empty for one that is of no provider."""
        return str(self._root(exchange.number)) if exchange.number in self._parents else ""

    def _ask(self, exchange: Opened, history: History | None) -> None:
        if history is not None:
            keys = {key for item in history.items for key in item.keys}
            if history.previous:
                keys.add(f"response:{history.previous}")
            self._join(exchange, [self._digests.of_key(key) for key in keys])

    def _learn(self, exchange: Opened, learned: Learned | None) -> None:
        if learned is not None:
            said = [key for output in learned.outputs for key in output.keys]
            self._join(exchange, [*said, learned.id] if learned.id else said)

    def _join(self, exchange: Opened, keys: list[bytes]) -> None:
        for key in keys:
            owner = self._owners.setdefault((exchange.key, key), exchange.number)
            first, second = sorted((self._root(owner), self._root(exchange.number)))
            self._parents[second] = first

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number
