"""Ledgers to judge requests by, without a proxy around them: one that listens, and one given.

ledger = Observed("openai-responses")
ledger.responds({"input": []}, [{"type": "response.created", …}, …])
outcome = ledger.judge(b'{"input": […]}')
"""

import json
from typing import Any

import msgspec

from midstream.dialects.provider_history import Digests, Provider
from midstream_addons.history_order.addon import PROVIDERS
from midstream_addons.history_order.explicit import Event, entries_of
from midstream_addons.history_order.ledger import Begun, Bounds, Ledger
from midstream_addons.history_order.quoted import quote
from midstream_addons.history_order.repair import Outcome, repair
from midstream_addons.history_order.request import consider

type Fields = dict[str, Any]

BOUNDS = Bounds(max_responses=100_000, max_bytes=1 << 30, max_age_s=86_400)


def provider_of(api: str) -> Provider:
    return next(provider for provider in PROVIDERS if provider.api == api)


def written(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Observed:
    """A ledger learned from responses."""

    def __init__(self, api: str, bounds: Bounds = BOUNDS) -> None:
        self.provider = provider_of(api)
        self.digests = Digests(b"secret")
        self.ledger = Ledger()
        self.bounds = bounds
        self.now_s = 0

    def asks(self, request: object) -> Begun:
        """A request is sent; return where the response to it will belong."""
        return self._consider(written(request))[1]

    def answers(self, begun: Begun, events: list[Fields]) -> int:
        """The provider streams a response; return its number."""
        listener = self.provider.listen(self.digests)
        for event in events:
            listener.receive(written(event))
        return self.ledger.commit(begun, listener.learned(), self.now_s, self.bounds)

    def responds(self, request: object, events: list[Fields]) -> int:
        return self.answers(self.asks(request), events)

    def judge(self, body: bytes) -> Outcome:
        return self._consider(body)[0]

    def _consider(self, body: bytes) -> tuple[Outcome, Begun]:
        history = self.provider.read_request(body)
        assert history is not None
        return consider(self.provider, history, self.ledger, self.digests, self.now_s)


class Explicit:
    """A ledger of events."""

    def __init__(self, api: str, events: list[Fields]) -> None:
        self.provider = provider_of(api)
        self.digests = Digests(b"")
        self.entries = entries_of(msgspec.convert(events, list[Event]), self.digests)

    def judge(self, body: bytes) -> Outcome:
        history = self.provider.read_request(body)
        assert history is not None
        quoted = quote(history.items, self.digests)
        return repair(self.provider, history, quoted, self.entries)


def ledger_of(vector: Fields) -> Observed | Explicit:
    """Return the ledger of a vector; `tests/vectors/history/README.md` tells its schema."""
    ledger = vector["ledger"]
    if ledger["mode"] == "explicit":
        return Explicit(vector["api"], ledger["events"])
    observed = Observed(vector["api"])
    for response in ledger["responses"]:
        observed.responds(response["request"], response["events"])
    return observed
