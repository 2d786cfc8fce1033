"""A diagnosis as text: a summary for tired people, then the details. Colour only in a terminal."""

import io
import os
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from midstream.doctor import phrases
from midstream.doctor.report import Level, Report, Talk, total
from midstream.doctor.words import shown

PIPED_COLUMNS = 1000
"""Wide enough that nothing is wrapped where no person looks."""

MAX_TALKS = 50

type Cell = str | Text


def write(report: Report, out: TextIO) -> None:
    """Print a diagnosis."""
    is_terminal = out.isatty()
    file = out if is_terminal else io.StringIO()
    console = Console(
        file=file,
        width=None if is_terminal else PIPED_COLUMNS,
        no_color=bool(os.environ.get("NO_COLOR")),
        highlight=False,
        emoji=False,
        markup=False,
    )
    _Writer(console, is_terminal).write(report)
    if isinstance(file, io.StringIO):  # a table fills its last column with spaces
        out.writelines(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


class _Writer:
    def __init__(self, console: Console, is_terminal: bool) -> None:
        self._console = console
        self._is_terminal = is_terminal

    def write(self, report: Report) -> None:
        style = "bold green" if report.is_clean else "bold red"
        self._line(Text(phrases.verdict(report), style))
        self._line(Text(phrases.traffic(report), "dim"))
        for capture in report.captures:
            if capture.damage:
                self._line(Text(shown(capture.damage), "yellow"))
            for problem in capture.problems:
                self._line(Text(f"{shown(capture.path)}: note: {problem}", "yellow"))
        self._faults(report)
        self._findings(report)
        self._pairs(report)
        self._mends(report)
        self._talks(report)
        self._declined(report)

    def _faults(self, report: Report) -> None:
        if not report.faults:
            return
        self._title("known faults")
        table = self._table("fault", ">count", "mended", "first at", "what people see")
        for fault in report.faults:
            table.add_row(
                Text(fault.addon, "bold red"),
                f"{fault.seen.count:,}",
                phrases.mended(fault),
                Text(phrases.places(fault, report)),
                Text(fault.meaning),
            )
            for rule in fault.rules:
                word, meaning = Text(f"  {rule.word}", "dim"), Text(rule.meaning, "dim")
                table.add_row(word, f"{rule.count:,}", "", "", meaning)
        self._console.print(table)

    def _findings(self, report: Report) -> None:
        if not report.findings:
            return
        self._title("on the wire")
        table = self._table("finding", ">count", "mended by", "mended", "first at", "what it is")
        for finding in report.findings:
            is_fault = finding.level is Level.FAULT
            detail = f" ({finding.detail})" if finding.detail else ""
            table.add_row(
                Text(finding.name, "bold red" if is_fault else "yellow"),
                phrases.counted_in(finding.seen.count, finding.unit),
                Text(phrases.remedy(finding)),
                phrases.mended(finding),
                Text(phrases.places(finding, report)),
                Text(f"{finding.title}{detail}"),
            )
        self._console.print(table)

    def _pairs(self, report: Report) -> None:
        rows = report.pairs
        if not rows:
            return
        named = [(phrases.talk_name(row, report), row) for row in rows]
        self._title("history pairs: an assistant text, and a later call of its turn")
        table = self._table(
            "conversation", ">requests", ">inverted", ">after mending", ">largest request"
        )
        for name, row in [*named, *([("all", total(rows))] if len(rows) > 1 else [])]:
            table.add_row(
                Text(name),
                f"{row.requests:,}",
                Text(phrases.rate(row.inverted, row.comparable), "red" if row.inverted else ""),
                phrases.rate(row.after, row.comparable),
                phrases.rate(row.largest_inverted, row.largest),
            )
        self._console.print(table)

    def _mends(self, report: Report) -> None:
        lines = {mend: None for fault in report.faults for mend in [fault.mend]}
        lines |= {f.mend: None for f in report.findings if f.mend and f.level is Level.FAULT}
        if not lines:
            return
        self._title("what mends it (every addon does by default: midstream run --upstream URL)")
        for mend in lines:
            for line in mend.splitlines():
                self._line(Text(f"  {line}", "cyan"))

    def _talks(self, report: Report) -> None:
        sick = [talk for talk in report.talks if talk.faults]
        if not sick:
            return
        self._title("by conversation")
        faults = _faults_by_exchange(report)
        for talk in sick[:MAX_TALKS]:
            self._talk(talk, report, faults)
        if len(sick) > MAX_TALKS:
            self._line(Text(f"and {len(sick) - MAX_TALKS} more conversations", "dim"))

    def _talk(self, talk: Talk, report: Report, faults: dict[tuple[int, int], str]) -> None:
        self._line(Text(phrases.talk_name(talk, report), "bold"))
        table = self._table("exchange", "request", ">status", ">frames", "ended", "faults")
        for exchange in talk.exchanges:
            table.add_row(
                f"  {exchange.shown}",
                Text(f"{exchange.transport} {exchange.label}"),
                f"{exchange.status or '-'}",
                f"{exchange.frames:,}",
                Text(exchange.ending or "open"),
                Text(faults.get((talk.capture, exchange.number), ""), "red"),
            )
        self._console.print(table)

    def _declined(self, report: Report) -> None:
        if not report.declined:
            return
        self._title("left alone, and why")
        table = self._table("addon", ">count", "reason", "what it means")
        for declined in report.declined:
            meaning = Text(declined.meaning)
            table.add_row(declined.addon, f"{declined.count:,}", declined.reason, meaning)
        self._console.print(table)

    def _title(self, text: str) -> None:
        self._console.print()
        self._line(Text(text, "bold"))

    def _line(self, text: Text) -> None:
        self._console.print(text, soft_wrap=not self._is_terminal)

    def _table(self, *columns: str) -> Table:
        """Return a table without lines; a column that begins with `>` is one of numbers."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for column in columns:
            is_number = column.startswith(">")
            table.add_column(
                column.removeprefix(">"),
                justify="right" if is_number else "left",
                no_wrap=is_number,
                overflow="fold",
            )
        return table


def _faults_by_exchange(report: Report) -> dict[tuple[int, int], str]:
    """Name the faults of each exchange with their counts."""
    found: dict[tuple[int, int], list[str]] = {}
    for fault in report.faults:
        for place in fault.seen.places:
            told = found.setdefault((place.capture, place.exchange), [])
            told.append(f"{fault.addon} {place.count:,}")
    return {key: ", ".join(told) for key, told in found.items()}
