"""Tables and colour in a terminal, plain aligned text everywhere else."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from midstream.adapters.capture_open import Source

NUMBERS = frozenset("0123456789,.")
PROGRESS_EVERY = 2_000


def is_terminal() -> bool:
    """Tell whether standard output shows colour: NO_COLOR and FORCE_COLOR have their say."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def printable(text: str) -> str:
    """Return a text as one line that tells a terminal nothing: what cannot be seen is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def print_json(value: object) -> None:
    """Print one JSON document on one line."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns; columns of numbers stand to the right."""
    right = [all(_is_number(row[index]) for row in rows) for index in range(len(columns))]
    if is_terminal():
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, is_right in zip(columns, right, strict=True):
            table.add_column(column, justify="right" if is_right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_plain(cell) for cell in row))
        Console(highlight=False).print(table)
        return
    cells = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    for row in cells:
        line = "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        )
        sys.stdout.write(line.rstrip() + "\n")


def styled(text: str, style: str) -> str:
    """Return a text in one of a few styles where the output shows them."""
    if not is_terminal():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def progress[T](items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Pass items on, and show in a terminal how far they are."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        for number, item in enumerate(items, 1):
            if number % PROGRESS_EVERY == 0:
                bar.update(task, completed=number)
            yield item


def report_damage(source: "Source", verb: str) -> int:
    """Tell on standard error where a capture is damaged; return the exit code."""
    damage = source.damage
    if damage is None:
        return 0
    sys.stderr.write(
        f"midstream capture {verb}: {damage.path}: damaged at byte {damage.offset}: "
        f"{damage.reason}\n"
    )
    return 1


def _is_number(cell: str) -> bool:
    return bool(cell) and NUMBERS.issuperset(cell)


def _plain(cell: str) -> Any:
    from rich.text import Text

    return Text.from_ansi(cell)
