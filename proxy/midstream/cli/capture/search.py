"""`grep` and `cut`: find frames, and keep a part of a capture."""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.export import created
from midstream.cli.capture.lines import Choice, Telling, add_choices, is_mended
from midstream.cli.capture.look import _add_looks, _print
from midstream.cli.capture.output import progress, report_damage
from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import ConfigError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord

FOUND, NOTHING = 0, 1


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "grep",
        grep,
        "find records by what they hold or mean; exit 1 if there is none",
        "midstream capture grep 'tool-output' captures\n"
        "midstream capture grep -i hello captures --side server",
    )
    parser.add_argument("pattern", metavar="PATTERN", help="a regular expression of Python")
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="upper and lower case")
    parser.add_argument("-c", "--count", action="store_true", help="print only how many")
    _add_looks(parser)
    parser = add_verb(
        verbs,
        "cut",
        cut,
        "write a part of a capture to a new one",
        "midstream capture cut captures --exchange 3 --out case.cap\n"
        "midstream capture cut captures --mended --out mended.cap",
    )
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("--out", metavar="FILE", required=True, help="where to write")
    add_choices(parser)


def grep(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_open import open_capture

    try:
        pattern = re.compile(args.pattern, re.IGNORECASE if args.ignore_case else 0)
    except re.error as error:
        raise ConfigError(
            f'command line: PATTERN: found "{args.pattern}", expected a regular expression: {error}'
        ) from None
    choice, telling, found = Choice.of(args), Telling(), 0
    source = open_capture(args.file)
    for record in telling.follow(source):
        if choice.takes(record) and _matches(pattern, record, telling):
            found += 1
            if not args.count:
                _print(record, telling, args)
    if args.count:
        sys.stdout.write(f"{found}\n")
    report_damage(source, "grep")
    return FOUND if found else NOTHING


def _matches(pattern: re.Pattern[str], record: "StoredRecord", telling: Telling) -> bool:
    texts = [record.data, *(wire for _, _, wire in record.sent or ())]
    if any(pattern.search(data.decode("utf-8", "replace")) for data in texts):
        return True
    return pattern.search(telling.meaning(record)) is not None


def cut(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_format import HEADER, encode
    from midstream.adapters.capture_open import open_capture

    choice, source, out = Choice.of(args), open_capture(args.file), Path(args.out)
    whole = {record.exchange for record in source if choice.mended and is_mended(record)}
    count = 0
    with os.fdopen(created(out, source), "wb") as file:
        file.write(HEADER)
        for record in progress(source, "cutting"):
            if record.exchange in whole if choice.mended else choice.takes(record):
                file.write(encode(record))
                count += 1
    sys.stdout.write(f"{count} records written to {out}\n")
    return report_damage(source, "cut")
