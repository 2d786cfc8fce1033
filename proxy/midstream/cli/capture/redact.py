"""`redact`: take secrets out of a capture that is there already."""

import argparse
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.capture.export import created
from midstream.cli.capture.output import print_json, progress, report_damage
from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import ConfigError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord
    from midstream.adapters.capture_open import Source
    from midstream.adapters.capture_paths import JsonPath
    from midstream.adapters.capture_redact import Redactor

SUFFIX = ".cap"


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "redact",
        redact,
        "write a copy of a capture without its secrets; exit 1 if the capture is damaged",
        "midstream capture redact captures      into NAME-000001.redacted.cap beside it\n"
        "midstream capture redact captures --path user.email --redact x-tenant --out clean.cap\n"
        "midstream capture redact captures --content hash    message text, too: equal texts stay\n"
        "                                                    equal, but a replay is not exact",
    )
    parser.add_argument("file", metavar="FILE", help="a segment, DIR/NAME, or a folder with one")
    parser.add_argument("--out", metavar="FILE", help="where to write; without it beside FILE")
    parser.add_argument(
        "--redact", metavar="HEADER", action="append", default=[],
        help="one more header whose value goes; credentials and cookies always do",
    )  # fmt: skip
    parser.add_argument(
        "--path", metavar="PATH", action="append", default=[],
        help="a JSON path whose value goes, such as user.email or items[*].key",
    )  # fmt: skip
    parser.add_argument(
        "--content", choices=("full", "hash", "none"), default="full",
        help="message text: kept, or a keyed hash or nothing instead (no replay is exact then)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")


def redact(args: argparse.Namespace) -> int:
    from midstream.adapters.capture_open import open_capture
    from midstream.adapters.capture_redact import Redactor
    from midstream.config.schema import CaptureTable

    paths = [_path(text) for text in args.path]
    source = open_capture(args.file)
    names, key = (*CaptureTable().redact, *args.redact), secrets.token_bytes(32)
    first = Redactor(names, key, paths=paths, content=args.content)
    for _ in _cleaned(source, first, "looking for secrets"):
        pass  # what is known in the end is taken out everywhere, also where no name tells of it
    redactor = Redactor(names, key, paths=paths, content=args.content, known=first.check)
    out = Path(args.out) if args.out else _beside(source.paths[0])
    kinds: dict[str, int] = {}
    records, changed, dropped = _write(out, source, redactor, kinds)
    counts = dict(sorted(kinds.items()))
    if args.json:
        print_json({"out": str(out), "records": records, "changed": changed,
                    "dropped": dropped, "redactions": counts})  # fmt: skip
    else:
        said = (
            ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "no secrets found"
        )
        sys.stdout.write(f"{records:,} records written to {out}, {changed:,} changed: {said}\n")
        if dropped:
            sys.stdout.write(
                f"{dropped:,} records left out: they held a secret of another record\n"
            )
    return report_damage(source, "redact")


def _path(text: str) -> "JsonPath":
    from midstream.adapters.capture_paths import parse_path

    try:
        return parse_path(text)
    except ValueError as error:
        raise ConfigError(f"command line: --path: {error}") from None


def _beside(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(SUFFIX) + ".redacted" + SUFFIX)


def _write(
    out: Path, source: "Source", redactor: "Redactor", kinds: dict[str, int]
) -> tuple[int, int, int]:
    """Write the clean records; return how many, how many changed, and how many were left out."""
    from midstream.adapters.capture_format import HEADER, encode

    records = changed = dropped = 0
    with os.fdopen(created(out, source), "wb") as file:
        os.fchmod(file.fileno(), 0o600)  # of a file that was there already, too
        file.write(HEADER)
        for before, clean in _cleaned(source, redactor, "redacting"):
            block = encode(clean)
            if not redactor.check.is_clean(block):
                dropped += 1
                continue
            file.write(block)
            records += 1
            if clean != before:
                changed += 1
                _count(before, clean, kinds)
    return records, changed, dropped


def _cleaned(
    source: "Source", redactor: "Redactor", title: str
) -> "Iterator[tuple[StoredRecord, StoredRecord]]":
    for record in progress(source, title):
        yield record, redactor.stored(record)


def _count(before: "StoredRecord", clean: "StoredRecord", kinds: dict[str, int]) -> None:
    earlier = before.meta.get("redactions") or {}
    for kind, count in (clean.meta.get("redactions") or {}).items():
        if more := count - earlier.get(kind, 0):
            kinds[kind] = kinds.get(kind, 0) + more
