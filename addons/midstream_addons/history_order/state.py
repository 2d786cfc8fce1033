"""What the repair remembers of one exchange. What outlives it is the `Ledger`."""

from hashlib import blake2b

import msgspec

from midstream.core.addon import Context
from midstream.core.conversation import CREDENTIAL_HEADERS
from midstream.core.exchange import Exchange
from midstream.dialects.provider_history import Digests, Listener, Provider
from midstream_addons.history_order.ledger import Begun, Ledger

MAX_STREAMS = 64
"""How many streams of one connection are followed at a time."""


class Answer(msgspec.Struct):
    """A response on its way: the request it answers, and who follows it until it is over."""

    begun: Begun
    listener: Listener


class Call(msgspec.Struct):
    """One exchange. `answers` by stream: a request over HTTP has one, without a name."""

    provider: Provider | None = None
    digests: Digests | None = None
    answers: dict[str, Answer] = msgspec.field(default_factory=dict)


type Ctx = Context[Call, Ledger]


def digests_of(exchange: Exchange) -> Digests:
    """Return the digests of a credential's ledger.

    They are keyed with the credential itself, which is nowhere stored: who reads a stored ledger
    cannot even check a guess. And the same traffic gives the same digests in every process.
    """
    secret = blake2b(exchange.upstream.encode("utf-8", "surrogateescape"), digest_size=32)
    for name, value in exchange.head.headers:
        if name.lower() in CREDENTIAL_HEADERS:
            secret.update(f"\n{name.lower()}:{value}".encode("utf-8", "surrogateescape"))
    return Digests(secret.digest())
