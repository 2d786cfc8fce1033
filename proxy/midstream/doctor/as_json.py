"""A diagnosis as one JSON document: for scripts and CI.

Keys may be added, never renamed. Times are ISO 8601 in UTC, absent ones null; an exchange is named
by the path of its capture and its number there.
"""

from datetime import UTC, datetime

from midstream.doctor.report import RUN, Fault, Finding, PairRow, Report, Seen, Talk, total

type Json = dict[str, object]

NS_PER_MS = 1_000_000


def document(report: Report) -> Json:
    """Return the diagnosis as what JSON can hold."""
    paths = [capture.path for capture in report.captures]
    return {
        "clean": report.is_clean,
        "captures": [
            {
                "path": capture.path,
                "records": capture.records,
                "exchanges": capture.exchanges,
                "frames": capture.frames,
                "bytes": capture.size,
                "first": moment(capture.first_ns),
                "last": moment(capture.last_ns),
                "mended_while_recorded": capture.was_mended,
                "damage": capture.damage or None,
                "notes": capture.problems,
            }
            for capture in report.captures
        ],
        "faults": [_fault(fault, paths) for fault in report.faults],
        "findings": [_finding(finding, paths) for finding in report.findings],
        "history_pairs": {
            "conversations": [_pairs(row, paths) for row in report.pairs],
            "total": _pairs(total(report.pairs), None),
        },
        "declined": [
            {"addon": d.addon, "reason": d.reason, "count": d.count, "meaning": d.meaning}
            for d in report.declined
        ],
        "conversations": [_talk(talk, paths) for talk in report.talks],
    }


def moment(wall_ns: int) -> str | None:
    """Return a time as ISO 8601 with milliseconds."""
    if not wall_ns:
        return None
    when = datetime.fromtimestamp(wall_ns // NS_PER_MS / 1000, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fault(fault: Fault, paths: list[str]) -> Json:
    return {
        "addon": fault.addon,
        "count": fault.seen.count,
        "meaning": fault.meaning,
        "mend": fault.mend,
        "rules": [{"rule": r.word, "count": r.count, "meaning": r.meaning} for r in fault.rules],
        **_seen(fault.seen, paths),
    }


def _finding(finding: Finding, paths: list[str]) -> Json:
    return {
        "name": finding.name,
        "title": finding.title,
        "level": finding.level.value,
        "count": finding.seen.count,
        "unit": finding.unit,
        "detail": finding.detail,
        "meaning": finding.meaning,
        "mends": finding.mends or None,
        "mend": finding.mend or None,
        **_seen(finding.seen, paths),
    }


def _seen(seen: Seen, paths: list[str]) -> Json:
    return {
        "mended": seen.mended,
        "exchanges": [
            {
                "capture": paths[place.capture],
                "exchange": place.shown,
                "seq": place.seq,
                "count": place.count,
                "mended": place.mended,
            }
            for place in seen.places
        ],
        "first": moment(seen.first_ns),
        "last": moment(seen.last_ns),
    }


def _pairs(row: PairRow, paths: list[str] | None) -> Json:
    named: Json = {}
    if paths is not None:
        named = {"capture": paths[row.capture], "conversation": row.conversation}
    return {
        **named,
        "requests": row.requests,
        "comparable": row.comparable,
        "inverted": row.inverted,
        "inverted_after_mending": row.after,
        "rate": row.rate,
        "comparable_in_largest_request": row.largest,
        "inverted_in_largest_request": row.largest_inverted,
    }


def _talk(talk: Talk, paths: list[str]) -> Json:
    return {
        "capture": paths[talk.capture],
        "title": talk.title,
        "faults": talk.faults,
        "exchanges": [
            {
                "exchange": exchange.shown,
                "request": exchange.label,
                "transport": exchange.transport,
                "status": exchange.status,
                "frames": exchange.frames,
                "bytes": exchange.size,
                "ending": exchange.ending or None,
                "follows": exchange.follows % RUN or None,
            }
            for exchange in talk.exchanges
        ],
    }
