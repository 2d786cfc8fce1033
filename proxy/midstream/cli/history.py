"""The verb `history`: a provider request body against a ledger."""

import argparse
import sys
from typing import TYPE_CHECKING

from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import ConfigError

if TYPE_CHECKING:
    from midstream.dialects.provider_history import Provider
    from midstream_addons.history_order.repair import Outcome

APIS = ("openai-responses", "openai-chat", "anthropic", "gemini")
MOVED = 1
STDIN = "-"


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "history",
        history,
        "put the history of a provider request into the order of a ledger",
        "midstream history body.json --ledger ledger.jsonl > mended.json\n"
        "midstream history - --ledger ledger.jsonl --api anthropic < body.json",
    )
    parser.add_argument("body", metavar="BODY.json", help="a request body; - reads it from stdin")
    parser.add_argument(
        "--ledger", metavar="FILE", required=True, help="JSON lines: events, or exchanges"
    )
    parser.add_argument(
        "--api", choices=APIS, metavar="API", help=f"one of {', '.join(APIS)}; else recognised"
    )


def history(args: argparse.Namespace) -> int:
    """Print the body that should go upstream, byte for byte the one given if nothing moves."""
    from midstream_addons.history_order.offline import judge

    body = sys.stdin.buffer.read() if args.body == STDIN else _read(args.body)
    ledger = _read(args.ledger)
    provider = _provider(args.api, body, args.body)
    try:
        outcome = judge(provider, body, ledger)
    except ConfigError as error:
        place = args.ledger if str(error).startswith("line ") else args.body
        raise ConfigError(f"{place}: {error}") from None
    sys.stdout.flush()
    sys.stdout.buffer.write(body if outcome.body is None else outcome.body)
    sys.stdout.buffer.flush()
    print(_counts(outcome, provider.api), file=sys.stderr)
    return 0 if outcome.body is None else MOVED


def _provider(api: str | None, body: bytes, path: str) -> "Provider":
    from midstream.dialects.provider_clues import api_of
    from midstream_addons.history_order.addon import PROVIDERS

    api = api or api_of(body)
    if api is None:
        raise ConfigError(f"{path}: cannot tell which API it is for, expected --api")
    return next(provider for provider in PROVIDERS if provider.api == api)


def _counts(outcome: "Outcome", api: str) -> str:
    return (
        f"{api}: {outcome.comparable} comparable pairs, {outcome.inverted_in} inverted, "
        f"{outcome.inverted_out} inverted after, {outcome.moved} items moved"
        + (f" ({outcome.reason})" if outcome.reason else "")
    )


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
