"""`grep` and `cut`: find frames, and keep a part of a capture."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.export import created
from midstream.cli.capture.lines import Choice, Telling, add_choices
from midstream.cli.capture.look import Printer, add_looks
from midstream.cli.capture.output import progress, report_damage
from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import ConfigError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord
    from midstream.adapters.capture_open import Source

FOUND, NOTHING = 0, 1
HEADS = ("open", "headers")
"""What a cut keeps of every exchange that it keeps something of: without, it could not be read."""


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
    add_looks(parser)
    parser = add_verb(
        verbs,
        "cut",
        cut,
        "write a part of a capture to a new one; exit 1 if there is nothing of that",
        "midstream capture cut captures --exchange 3 --out case.cap\n"
        "midstream capture cut captures --mended --out mended.cap      whole exchanges\n"
        "midstream capture cut captures --from 12.5 --to 14 --out part.cap",
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
    choice, printer, found = Choice.of(args), Printer(args), 0
    source, telling = open_capture(args.file), printer.telling
    for record in telling.follow(source):
        if choice.takes(record, telling.began_ns) and _matches(pattern, record, telling):
            found += 1
            if not args.count:
                printer.print(record)
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
    kept = {record.exchange for record in _chosen(choice, source)}
    if not kept:
        damaged = report_damage(source, "cut")
        sys.stderr.write(f"midstream capture cut: {args.file}: holds nothing of that\n")
        return damaged or NOTHING
    count, began_ns = 0, 0
    with os.fdopen(created(out, source), "wb") as file:
        file.write(HEADER)
        for record in progress(source, "cutting"):
            began_ns = began_ns or record.wall_ns
            if record.exchange in kept and (
                choice.mended or record.kind.value in HEADS or choice.takes(record, began_ns)
            ):
                file.write(encode(record))
                count += 1
    exchanges = f"{len(kept):,} exchange{'' if len(kept) == 1 else 's'}"
    sys.stdout.write(f"{count:,} records of {exchanges} written to {out}\n")
    return report_damage(source, "cut")


def _chosen(choice: Choice, source: "Source") -> "Iterator[StoredRecord]":
    began_ns = 0
    for record in progress(source, "searching"):
        began_ns = began_ns or record.wall_ns
        if choice.takes(record, began_ns):
            yield record
