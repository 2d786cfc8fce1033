"""The argument parser: argparse, but a usage error is one line that says what was meant."""

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from midstream import __version__
from midstream.core.errors import ConfigError

COMMAND_LINE = "command line"
EPILOG = """\
examples:
  midstream run --upstream http://127.0.0.1:8787    listen on 127.0.0.1:8080, mend what passes
  midstream run --config midstream.toml --observe   count what would be mended, change nothing
  midstream check --config midstream.toml           is this file right, what does it amount to?

settings: flags win over the environment (MIDSTREAM_LISTEN, MIDSTREAM_ADMIN, MIDSTREAM_STORE,
MIDSTREAM_WORKERS, MIDSTREAM_UPSTREAM, MIDSTREAM_OBSERVE, and MIDSTREAM_SECTION_KEY such as
MIDSTREAM_LIMITS_MAX_FRAME_BYTES; commas separate the items of a list), which wins over the file.

exit codes: 0 ok, 1 differences or faults found, 2 usage or configuration error
"""

type Verbs = argparse._SubParsersAction[Parser]
type Verb = Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are raised, for `main` to print in one line."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(
            f"{COMMAND_LINE}: {message.removeprefix('argument ')}, see {self.prog} -h"
        )


def new_parser() -> tuple[Parser, Verbs]:
    """Return the parser, and where verbs are added to it."""
    parser = Parser(
        prog="midstream",
        description="A proxy that mends agent streams (WebSocket, SSE) on the wire.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"midstream {__version__}")
    return parser, parser.add_subparsers(title="verbs", metavar="VERB", dest="verb_name")


def add_verb(verbs: Verbs, name: str, verb: Verb, summary: str, examples: str) -> Parser:
    """Add a verb. `examples` are lines of shell."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=_examples(examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(verb=verb, options=[], parser=parser)
    return parser


def _examples(examples: str) -> str:
    lines = "".join(f"  {line}\n" for line in examples.strip().splitlines())
    return f"examples:\n{lines}"


def add_group(verbs: Verbs, name: str, summary: str, examples: str) -> Verbs:
    """Add a verb that has verbs of its own, and return where they are added."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=_examples(examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(options=[], parser=parser)
    return parser.add_subparsers(
        title="verbs", metavar="VERB", dest=f"{name}_verb", required=True, parser_class=Parser
    )


def parse(parser: Parser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. What stands behind `--` is kept in `options` for `mitm` alone."""
    verbs = _verbs(parser)
    name = argv[0] if argv else ""
    if not argv or (not name.startswith("-") and name not in verbs):
        raise ConfigError(f"{COMMAND_LINE}: {_verb_hint(name, verbs)}, see midstream -h")
    options: list[str] = []
    if name == "mitm" and "--" in argv:
        at = list(argv).index("--")
        argv, options = argv[:at], list(argv[at + 1 :])
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        raise ConfigError(f"{COMMAND_LINE}: {_unknown_hint(unknown[0], args, parser)}")
    args.options = options
    return args


def _verbs(parser: Parser) -> list[str]:
    actions = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return [name for action in actions for name in action.choices]


def _verb_hint(name: str, verbs: Sequence[str]) -> str:
    from midstream.config.wording import near  # msgspec is imported for an error only

    found = f'found "{name}"' if name else "no verb found"
    return f"{found}, expected one of {', '.join(verbs)}{near(name, verbs)}"


def _unknown_hint(argument: str, args: argparse.Namespace, parser: Parser) -> str:
    from midstream.config.wording import near

    parser = getattr(args, "parser", parser)
    name = argument.partition("=")[0]
    flags = (flag for action in parser._actions for flag in action.option_strings)
    words = [flag.lstrip("-") for flag in flags]  # alike dashes would make all flags alike
    hint = near(name.lstrip("-"), words).replace('"', '"--', 1)
    behind = ", put options of mitmproxy behind --" if args.verb_name == "mitm" else ""
    return f'unknown argument "{name}"{hint}{behind}, see {parser.prog} -h'
