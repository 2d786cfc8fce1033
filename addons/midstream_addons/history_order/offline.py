"""Judges one request body by a ledger in a file, without any traffic.

A ledger is JSON lines. Either each line is an event of a ledger with step identities (see
`explicit.py`), or each is an exchange with the provider, in the order in which they happened:

    {"request": {…the body sent…}, "events": [{…the data of an event…}, …]}
    {"request": {…the body sent…}, "response": {…the body of the answer…}}

Empty lines are skipped.
"""

from collections.abc import Sequence

import msgspec

from midstream.core.errors import ConfigError
from midstream.dialects.provider_history import Digests, Learned, Provider
from midstream_addons.history_order.explicit import Event, entries_of
from midstream_addons.history_order.ledger import Bounds, Ledger
from midstream_addons.history_order.quoted import quote
from midstream_addons.history_order.repair import Outcome, repair
from midstream_addons.history_order.request import consider

DIGESTS = Digests(b"")
UNBOUNDED = Bounds(max_responses=1 << 32, max_bytes=1 << 62, max_age_s=1)


class Exchange(msgspec.Struct):
    """A request to a provider, and what it answered: events, or one body."""

    request: msgspec.Raw
    events: list[msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    response: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Form(msgspec.Struct):
    request: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


type Lines = Sequence[tuple[int, bytes]]

_EVENT = msgspec.json.Decoder(Event)
_EXCHANGE = msgspec.json.Decoder(Exchange)
_FORM = msgspec.json.Decoder(_Form)


def judge(provider: Provider, body: bytes, ledger: bytes) -> Outcome:
    """Return what should become of a body.

    Raises ConfigError: which line of the ledger is wrong, or that the body holds no history.
    """
    lines = [(number, line) for number, line in enumerate(ledger.splitlines(), 1) if line.strip()]
    observed = bool(lines) and _read(_FORM, *lines[0]).request is not msgspec.UNSET
    learned = _learn(provider, lines) if observed else None
    events = [] if observed else [_read(_EVENT, *line) for line in lines]
    history = provider.read_request(body)
    if history is None:
        raise ConfigError(f"found no history of {provider.api}, expected a request body of it")
    if learned is not None:
        return consider(provider, history, learned, DIGESTS)[0]
    if history.is_delta:
        return Outcome(None, "server_side_history")
    entries = entries_of(events, DIGESTS)
    return repair(provider, history, quote(history.items, DIGESTS), entries)


def _learn(provider: Provider, lines: Lines) -> Ledger:
    ledger = Ledger()
    for number, line in lines:
        exchange = _read(_EXCHANGE, number, line)
        history = provider.read_request(bytes(exchange.request))
        learned = _answer(provider, exchange)
        if history is None or learned is None:
            raise ConfigError(f"line {number}: found no exchange of {provider.api}")
        begun = consider(provider, history, ledger, DIGESTS)[1]
        ledger.commit(begun, learned, 0, UNBOUNDED)
    return ledger


def _answer(provider: Provider, exchange: Exchange) -> Learned | None:
    if exchange.response is not msgspec.UNSET:
        return provider.read_response(bytes(exchange.response), DIGESTS)
    if exchange.events is msgspec.UNSET:
        return None
    listener = provider.listen(DIGESTS)
    for event in exchange.events:
        listener.receive(bytes(event))
    return listener.learned()


def _read[T](decoder: "msgspec.json.Decoder[T]", number: int, line: bytes) -> T:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error)
        raise ConfigError(f"line {number}: {text[:1].lower()}{text[1:]}") from None
