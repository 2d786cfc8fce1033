"""What the `meta` of a stored record says, as the core's own types.

open      route, upstream, origin (where known), method, target, headers
headers   status, headers
frame     unread: why that side is read no more, its bytes being cut anywhere; or
          cut: true for the unfinished rest of an aborted exchange, which leaves at its close
repair    with a side: gave_up: why that side is read no more from here on
ask       number, ask, answer
close     with a side: that side has ended (code, reason of a WebSocket)
          without: the exchange is over (ending, and what broke it)
gap       count, reason
"""

import msgspec

from midstream.adapters.capture_format import StoredRecord
from midstream.core.addon import Answer, Ask, Fetch, Wait
from midstream.core.chain import Pending
from midstream.core.errors import CaptureError
from midstream.core.exchange import Headers, RequestHead, ResponseHead


def request_head(record: StoredRecord) -> RequestHead:
    """Return the request head of an `open` record. Raises CaptureError if it has none."""
    meta = record.meta
    try:
        return RequestHead(text(meta["method"]), text(meta["target"]), _headers(meta["headers"]))
    except (KeyError, TypeError, ValueError):
        raise CaptureError(f"exchange {record.exchange}: open record without a head") from None


def client_origin(record: StoredRecord) -> str:
    """Return the `Exchange.origin` of an `open` record; empty in one that has none."""
    value = record.meta.get("origin")
    return value if isinstance(value, str) else ""


def upstream_of(record: StoredRecord) -> str:
    """Return where the exchange of an `open` record went; empty in one that does not say."""
    value = record.meta.get("upstream")
    return value if isinstance(value, str) else ""


def response_head(record: StoredRecord) -> ResponseHead:
    """Return the response head of a `headers` record. Raises CaptureError if it has none."""
    try:
        return ResponseHead(int(record.meta["status"]), _headers(record.meta.get("headers", ())))
    except (KeyError, TypeError, ValueError):
        raise CaptureError(f"exchange {record.exchange}: headers record without a head") from None


def asked(record: StoredRecord) -> tuple[Pending, Answer]:
    """Return what an `ask` record holds. Raises CaptureError if it does not."""
    try:
        ask: Ask = msgspec.convert(record.meta["ask"], Fetch | Wait)
        answer = msgspec.convert(record.meta["answer"], Answer)
        return Pending(int(record.meta["number"]), ask), answer
    except (KeyError, TypeError, ValueError):
        raise CaptureError(f"exchange {record.exchange}: ask record without an ask") from None


def text(value: str | bytes) -> str:
    """Undo what the format does to text that is not UTF-8."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _headers(pairs: object) -> Headers:
    if not isinstance(pairs, list | tuple):
        raise TypeError("headers are not a list")
    return tuple((text(name), text(value)) for name, value in pairs)
