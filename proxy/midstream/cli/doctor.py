"""`doctor`: which known faults traffic shows, how often, and what mends them."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.parser import Verbs, add_verb
from midstream.core.errors import ConfigError

if TYPE_CHECKING:
    from midstream.adapters.capture_format import StoredRecord

LONG_BYTES = 8 << 20
"""Below this much to read, a progress bar would only flicker."""

FAULTS_FOUND = 1


def add_verbs(verbs: Verbs) -> None:
    parser = add_verb(
        verbs,
        "doctor",
        doctor,
        "tell which known faults captures show, how often, and what mends them",
        "midstream doctor captures/\n"
        "midstream doctor captures/chat-000001.cap --html report.html\n"
        "midstream doctor before.cap after.cap --json | jq '.faults[] | {addon, count}'",
    )
    parser.add_argument(
        "captures", metavar="CAPTURE", nargs="+", help="a capture file, or a folder of them"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--html", metavar="FILE", help="write one page that needs nothing else")
    parser.add_argument("--config", metavar="FILE", help="a TOML file: its routes and options")


def doctor(args: argparse.Namespace) -> int:
    """Return 1 if any fault was found."""
    from midstream.config import load
    from midstream.doctor import as_html, as_json, as_text, sources
    from midstream.doctor.examine import Doctor

    config = load(args.config, needs_upstream=False)
    readers = sources.opened(args.captures)
    if args.html is not None:
        _check_writable(Path(args.html), [path for _, one in readers for path in one.paths])
    examiner = Doctor(config, is_given=args.config is not None, is_drawn=args.html is not None)
    with _progress(sources.size_of(readers)) as tick:
        for path, reader in readers:
            examiner.take(path, reader, tick)
    report = examiner.report()
    if args.json:
        print(json.dumps(as_json.document(report), indent=2))
    else:
        as_text.write(report, sys.stdout)
    if args.html is not None:
        _write(Path(args.html), as_html.page(report))
        print(f"\nwrote {args.html}")
    for capture in report.captures:
        if capture.damage:
            print(f"midstream doctor: {capture.damage}", file=sys.stderr)
    return 0 if report.is_clean else FAULTS_FOUND


def _check_writable(path: Path, captures: list[Path]) -> None:
    """Refuse before the work what could not be written after it."""
    if any(path.exists() and path.samefile(capture) for capture in captures):
        raise ConfigError(f"{path}: is a capture that is read, name another file to write")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: cannot be written: expected a file in a folder that exists")


def _write(path: Path, page: str) -> None:
    """Write for its owner alone: a page says as much as the capture it is made of."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _progress(size_bytes: int) -> Iterator[Callable[["StoredRecord"], None]]:
    """Show how far the reading is, where the work is long and a person looks."""
    if size_bytes < LONG_BYTES or not sys.stderr.isatty():
        yield lambda _record: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("examining", total=size_bytes)
        yield lambda record: progress.advance(task, len(record.data))
