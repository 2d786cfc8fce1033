"""The command line: one file for each group of verbs. `main` is the entry point.

Exit codes: 0 ok; 1 differences or faults found; 2 a usage or configuration error, told in one line.
Verbs import what they run when they run it, so that `--help` is quick and a missing extra says so.
"""

import os
import sys
from collections.abc import Sequence

from midstream.cli import capture, describe, doctor, health, history, offline, serve, sessions
from midstream.cli.parser import Parser, new_parser, parse
from midstream.core.errors import Error

OK = 0
USAGE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        args = parse(_parser(), arguments)
        code: int = args.verb(args)
        sys.stdout.flush()
    except Error as error:
        print(" ".join(str(error).splitlines()), file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # The reader (`head`, a pager) has had enough. Nothing may be flushed to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _parser() -> Parser:
    parser, verbs = new_parser()
    for group in (serve, offline, capture, doctor, sessions, history, describe, health):
        group.add_verbs(verbs)
    return parser
