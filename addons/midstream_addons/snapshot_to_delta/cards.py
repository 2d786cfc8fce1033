"""Makes the addresses in an agent card lead through the proxy.

A client follows the card, not the address it fetched it from: with the card untouched it would talk
to the agent past the proxy. An address is rewritten where it leads to the upstream of this route,
or to what the options call it, and its path belongs to the route; any other is let be.
"""

from urllib.parse import urlsplit

from midstream.core.addon import KEEP, Context, Verdict
from midstream.core.edit import Path
from midstream.core.exchange import Exchange
from midstream.core.frames import Frame
from midstream.dialects import a2a, a2a_card
from midstream.dialects.a2a_card import Card
from midstream_addons.snapshot_to_delta import prior
from midstream_addons.snapshot_to_delta.options import Options
from midstream_addons.snapshot_to_delta.state import Agent, Stream

GRPC = "GRPC"


def judge(frame: Frame, ctx: Context[Stream, Agent], options: Options) -> Verdict:
    """Judge the body of a response to a question for the agent card."""
    card = a2a_card.read_card(frame.payload)
    if card is None:
        has_failed = isinstance(a2a.read(frame), a2a.Failure)
        return KEEP if has_failed else Verdict.skip("malformed")
    prior.meet(ctx.conversation, f"{card.name} {card.version}")
    urls = _urls(card, ctx.exchange, options) if options.card == "rewrite" else {}
    dropped = [
        interface.entry
        for interface in card.interfaces
        if interface.binding == GRPC and interface.entry is not None
        if options.card_grpc == "drop"
    ]
    if not urls and not dropped:
        leads_here = all(_is_origin(one.url, ctx.exchange.origin) for one in card.interfaces)
        is_wanted = options.card == "rewrite" and not leads_here
        return Verdict.skip("foreign_url") if is_wanted else KEEP
    out = frame.with_payload(a2a_card.with_urls(frame.payload, urls, dropped))
    return KEEP if out == frame else Verdict.replace("card_url", out)


def _urls(card: Card, exchange: Exchange, options: Options) -> dict[Path, str]:
    if not exchange.origin:
        return {}
    places = (exchange.upstream, *options.card_origins)
    return {
        one.at: a2a_card.through(one.url, exchange.origin)
        for one in card.interfaces
        if one.binding != GRPC
        and any(a2a_card.leads_to(one.url, place) for place in places)
        and _is_on_route(one.url, exchange.pattern)
    }


def _is_origin(url: str, origin: str) -> bool:
    return bool(origin) and a2a_card.leads_to(url, origin)


def _is_on_route(url: str, pattern: str) -> bool:
    path = urlsplit(url).path or "/"
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
