"""A diagnosis as one page: no resource of its own or of others, and readable without scripts.

Everything on it that comes from a capture is data: escaped where it stands in HTML, and in the JSON
for the script without a single `<`. The policy of the page allows the script and the style that are
part of it, and nothing else.
"""

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from midstream import __version__
from midstream.doctor import phrases
from midstream.doctor.report import (
    Fault,
    Finding,
    Frame,
    Level,
    PairRow,
    Report,
    Seen,
    Talk,
    name_of,
    total,
)
from midstream.doctor.words import shown

SCRIPTS: Final = ("model.js", "lanes.js", "page.js")
SIDES: Final = {"client": 0, "server": 1}
MAX_LINKS: Final = 8
MAX_NAME_CHARS: Final = 32


def page(report: Report) -> str:
    """Return the page."""
    style, script = _part("report.css"), "\n".join(_part(name) for name in SCRIPTS)
    names = [name_of(capture.path) for capture in report.captures]
    return Template(_part("report.html")).substitute(
        policy=_policy(style, script),
        title=escape(f"midstream doctor: {shown(', '.join(names))}"),
        style=style,
        state="clean" if report.is_clean else "sick",
        verdict=escape(phrases.verdict(report)),
        traffic=escape(phrases.traffic(report)),
        warnings=_warnings(report),
        faults=_faults(report),
        findings=_findings(report),
        pairs=_pairs(report),
        declined=_declined(report),
        version=escape(__version__),
        data=_data(report),
        script=script,
    )


def _part(name: str) -> str:
    return (files("midstream.doctor") / "page" / name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    def source(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


# --- what is readable without scripts -------------------------------------------------------------


def _warnings(report: Report) -> str:
    lines = [shown(capture.damage) for capture in report.captures if capture.damage]
    for capture in report.captures:
        lines += [f"{shown(capture.path)}: note: {problem}" for problem in capture.problems]
    return "".join(f'<p class="warn">{escape(line)}</p>' for line in lines)


def _faults(report: Report) -> str:
    if not report.faults:
        return ""
    cards = "".join(_card(fault, report) for fault in report.faults)
    return f'<section><h2>Known faults</h2><div class="cards">{cards}</div></section>'


def _card(fault: Fault, report: Report) -> str:
    seen = fault.seen
    is_mended = seen.mended == seen.count
    rules = "".join(
        f"<li><b>{rule.count:,}</b><span>{escape(_said(rule.word, rule.meaning))}</span></li>"
        for rule in fault.rules
    )
    share = 100 * seen.mended / seen.count
    return (
        f'<article class="card{" mended" if is_mended else ""}">'
        f"<h3>{escape(fault.addon)} <span>{seen.count:,}&times;</span></h3>"
        f"<p>{escape(fault.meaning)}</p><ul>{rules}</ul>"
        f'<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="all" width="100" height="6"/>'
        f'<rect class="part" width="{share:.1f}" height="6"/></svg>'
        f'<p class="dim">mended while recorded: {phrases.mended(fault)}</p>'
        f'<p class="where">{_links(seen, report)}</p>'
        f"<pre>{escape(fault.mend)}</pre></article>"
    )


def _said(word: str, meaning: str) -> str:
    return f"{word}: {meaning}" if meaning else word


def _links(seen: Seen, report: Report) -> str:
    several = len(report.captures) > 1
    links = []
    for place in seen.places[:MAX_LINKS]:
        name = shown(name_of(report.captures[place.capture].path), MAX_NAME_CHARS)
        name = f"{name} {place.shown}" if several else f"{place.shown}"
        target = f"#x-{place.capture}-{place.exchange}-{place.seq}"
        links.append(f'<a href="{target}">{escape(name)}</a>')
    more = len(seen.places) - len(links)
    return "exchange " + " ".join(links) + (f" and {more:,} more" if more > 0 else "")


def _findings(report: Report) -> str:
    if not report.findings:
        return ""
    head = _head("Finding", ">Count", "What it is", "Mended by", "Mended", "Where")
    rows = "".join(_finding(finding, report) for finding in report.findings)
    return _table("On the wire", head, rows)


def _finding(finding: Finding, report: Report) -> str:
    kind = "fault" if finding.level is Level.FAULT else "note"
    detail = f"<br>{escape(finding.detail)}" if finding.detail else ""
    return (
        f'<tr><td class="{kind}">{escape(finding.name)}</td>'
        f'<td class="n">{escape(phrases.counted_in(finding.seen.count, finding.unit))}</td>'
        f'<td class="what">{escape(finding.title)}{detail}<br>'
        f'<span class="dim">{escape(finding.meaning)}</span>'
        f"</td><td>{escape(phrases.remedy(finding))}</td><td>{phrases.mended(finding)}</td>"
        f'<td class="where">{_links(finding.seen, report)}</td></tr>'
    )


def _pairs(report: Report) -> str:
    rows = report.pairs
    if not rows:
        return ""
    head = _head(
        "Conversation", ">Requests", ">Comparable pairs inverted", ">After mending",
        ">In the largest request",
    )  # fmt: skip
    body = "".join(_pair(row, phrases.talk_name(row, report)) for row in rows)
    if len(rows) > 1:
        body += _pair(total(rows), "all", ' class="sum"')
    return _table("History pairs: an assistant text, and a later call of its turn", head, body)


def _pair(row: PairRow, name: str, kind: str = "") -> str:
    is_faulty = ' class="n fault"' if row.inverted else ' class="n"'
    return (
        f"<tr{kind}><td>{escape(name)}</td>"
        f'<td class="n">{row.requests:,}</td>'
        f"<td{is_faulty}>{phrases.rate(row.inverted, row.comparable)}</td>"
        f'<td class="n">{phrases.rate(row.after, row.comparable)}</td>'
        f'<td class="n">{phrases.rate(row.largest_inverted, row.largest)}</td></tr>'
    )


def _declined(report: Report) -> str:
    if not report.declined:
        return ""
    head = _head("Addon", ">Count", "Why")
    rows = "".join(
        f'<tr><td>{escape(one.addon)}</td><td class="n">{one.count:,}</td>'
        f"<td>{escape(_said(one.reason, one.meaning))}</td></tr>"
        for one in report.declined
    )
    table = f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>'
    return f"<section><details><summary>Left alone, and why</summary>{table}</details></section>"


def _table(title: str, head: str, rows: str) -> str:
    return (
        f'<section><h2>{escape(title)}</h2><div class="scroll"><table>{head}'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _head(*names: str) -> str:
    """Return the head of a table; a name that begins with `>` is of a column of numbers."""
    cells = "".join(
        f'<th class="n" scope="col">{name[1:]}</th>'
        if name.startswith(">")
        else f'<th scope="col">{name}</th>'
        for name in names
    )
    return f"<thead><tr>{cells}</tr></thead>"


# --- what the script draws ------------------------------------------------------------------------


def _data(report: Report) -> str:
    """Return the timelines as JSON that cannot end the element it stands in."""
    document = {
        "captures": [shown(capture.path) for capture in report.captures],
        "names": [shown(name_of(capture.path)) for capture in report.captures],
        "talks": [_talk(talk) for talk in report.talks],
    }
    text = json.dumps(document, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _talk(talk: Talk) -> dict[str, object]:
    lanes = {exchange.number: place for place, exchange in enumerate(talk.exchanges)}
    return {
        "capture": talk.capture,
        "title": talk.title,
        "faults": talk.faults,
        "left_out": talk.left_out,
        "lanes": [
            {
                "number": exchange.number,
                "name": exchange.shown,
                "label": exchange.label,
                "transport": exchange.transport,
                "begin": exchange.begin_ms,
                "end": exchange.end_ms,
                "ending": exchange.ending,
                "frames": exchange.frames,
                "follows": exchange.follows,
                "replays": exchange.replays,
            }
            for exchange in talk.exchanges
        ],
        "frames": [_frame(frame, lanes) for frame in talk.frames],
    }


def _frame(frame: Frame, lanes: dict[int, int]) -> list[object]:
    return [
        lanes[frame.exchange],
        frame.seq,
        frame.at_ms,
        SIDES.get(frame.side, 2),
        frame.kind,
        frame.size,
        frame.sent,
        frame.text,
        frame.faults,
        frame.mended,
        frame.declined,
        frame.why,
    ]
