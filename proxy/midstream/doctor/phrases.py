"""The sentences that text and page have in common."""

from datetime import UTC, datetime
from typing import Final

from midstream.doctor.report import Fault, Finding, Level, PairRow, Report, Talk, name_of
from midstream.doctor.words import shown

NS_PER_S: Final = 1_000_000_000


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def verdict(report: Report) -> str:
    """Return the diagnosis in one sentence."""
    told = [finding for finding in report.findings if finding.level is Level.FAULT]
    if not report.faults and not told:
        return "No known fault."
    kinds = counted(len(report.faults), "known fault") if report.faults else "No addon's fault"
    sick = [talk for talk in report.talks if talk.faults]
    where = f" in {len(sick)} of {counted(len(report.talks), 'conversation')}" if sick else ""
    return f"{kinds}{where}. {_mended(report)}"


def traffic(report: Report) -> str:
    """Return what was read, in one line."""
    captures = report.captures
    frames = sum(capture.frames for capture in captures)
    exchanges = sum(capture.exchanges for capture in captures)
    size = sum(capture.size for capture in captures)
    begin = min((c.first_ns for c in captures if c.first_ns), default=0)
    end = max((c.last_ns for c in captures), default=0)
    when = f", {_span(begin, end)}" if begin else ""
    return (
        f"{counted(len(captures), 'capture')}, {counted(len(report.talks), 'conversation')}, "
        f"{counted(exchanges, 'exchange')}, {counted(frames, 'frame')}, {bytes_of(size)}{when}"
    )


def counted_in(number: int, unit: str) -> str:
    """Return a number with its unit, which is given in the plural."""
    singular = unit.removesuffix("s")
    return f"{number:,} {singular if number == 1 else unit}"


def mended(seen: Fault | Finding) -> str:
    """Tell how much was mended while the capture was made."""
    if isinstance(seen, Finding) and not seen.mends:
        return "-"
    return f"{seen.seen.mended:,} of {seen.seen.count:,}"


def remedy(finding: Finding) -> str:
    """Tell which addon mends a finding, or that none does."""
    return finding.mends or "nothing mends it"


def places(seen: Fault | Finding, report: Report) -> str:
    """Name the first exchanges, as `midstream capture why` takes them."""
    several = len(report.captures) > 1
    names = []
    for place in seen.seen.places[: 2 if several else 3]:
        where = f"{place.shown}:{place.seq}" if place.seq else f"{place.shown}"
        if several:
            where = f"{shown(name_of(report.captures[place.capture].path))} {where}"
        names.append(where)
    more = len(seen.seen.places) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def talk_name(row: PairRow | Talk, report: Report) -> str:
    """Name a conversation, with its capture where there are several."""
    title = row.conversation if isinstance(row, PairRow) else row.title
    if len(report.captures) == 1:
        return title
    return f"{shown(name_of(report.captures[row.capture].path))}: {title}"


def rate(inverted: int, comparable: int) -> str:
    """Return a share as the report of the fault writes it."""
    return f"{inverted:,}/{comparable:,}" if comparable else "-"


def bytes_of(size: int) -> str:
    """Return a size for people."""
    if size < 10_000:
        return f"{size:,} bytes"
    if size < 10_000_000:
        return f"{size / 1000:,.0f} kB"
    return f"{size / 1_000_000:,.0f} MB"


def _span(begin_ns: int, end_ns: int) -> str:
    """Return when something was, and how long it took."""
    began, ended = (datetime.fromtimestamp(ns // NS_PER_S, UTC) for ns in (begin_ns, end_ns))
    until = f"{ended:%H:%M:%S}" if ended.date() == began.date() else f"{ended:%Y-%m-%d %H:%M:%S}"
    seconds = (end_ns - begin_ns) / NS_PER_S
    return f"{began:%Y-%m-%d %H:%M:%S} to {until} UTC ({seconds:,.1f} s)"


def _mended(report: Report) -> str:
    count = sum(fault.seen.count for fault in report.faults)
    done = sum(fault.seen.mended for fault in report.faults)
    if not count:
        return "See what was seen on the wire."
    if done == count:
        return "All of it was mended while this was recorded."
    if done:
        return f"{done:,} of {count:,} times it was mended while this was recorded."
    return "Nothing was mended while this was recorded; midstream would mend it."
