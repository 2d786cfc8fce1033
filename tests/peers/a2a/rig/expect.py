"""expected.txt: what each cell must come to, one line for all agents that agree.

SCENARIO CLIENT/VIEW AGENT,AGENT DIRECT GATEWAY MITM [why it is not `once`]
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.peers.a2a.rig.places import EXPECTED, VIAS

FINE = ("once", "own")


@dataclass(frozen=True)
class Line:
    scenario: str
    client: str
    view: str
    agents: tuple[str, ...]
    words: dict[str, str]
    reason: str = ""


def lines() -> Iterator[Line]:
    for text in EXPECTED.read_text().splitlines() if EXPECTED.exists() else ():
        if not text.strip() or text.startswith("#"):
            continue
        scenario, who, agents, direct, gateway, mitm, *why = text.split(maxsplit=6)
        client, _, view = who.partition("/")
        words = dict(zip(VIAS, (direct, gateway, mitm), strict=True))
        yield Line(scenario, client, view, tuple(agents.split(",")), words, " ".join(why))


def expected() -> dict[tuple[str, ...], str]:
    """The word of each cell, by (agent, scenario, client, view, via)."""
    return {
        (agent, line.scenario, line.client, line.view, via): word
        for line in lines()
        for agent in line.agents
        for via, word in line.words.items()
    }


def key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("agent", "scenario", "client", "view", "via"))


def worse_rows(rows: Iterable[dict[str, Any]]) -> list[str]:
    """What is worse than expected.txt has it, or wrong in another way, a line each."""
    known = expected()
    found = []
    for row in rows:
        word, wanted = row["verdict"], known.get(key(row), "no line")
        if word and word not in (*FINE, *wanted.split("|")):  # better than expected is no fault
            found.append(f"{' '.join(key(row))}: {word}, expected {wanted}; {held(row)}")
    return found


def held(row: dict[str, Any]) -> str:
    told = [f"{name}={text!r}" for name, text in row["held"].items()]
    told += [f"{name}: {row[name]!r}" for name in ("message", "error") if row[name]]
    return " ".join(told) or "nothing"


def accept(rows: Iterable[dict[str, Any]]) -> str:
    """Return the text of expected.txt as these rows would have it. Reasons stay."""
    seen_now = {key(row): row["verdict"] for row in rows if row["verdict"]}
    words = {**expected(), **seen_now}
    reasons: dict[tuple[str, ...], str] = {
        (agent, line.scenario, line.client, line.view): line.reason
        for line in lines()
        for agent in line.agents
    }
    merged: dict[tuple[str, ...], list[str]] = {}
    for cell in sorted({cell[:4] for cell in words}, key=lambda cell: (cell[1:], cell[0])):
        agent, scenario, client, view = cell
        seen = [words.get((*cell, via), "-") for via in VIAS]
        reason = reasons.get(cell, "") if set(seen[1:]) - set(FINE) else ""
        merged.setdefault((scenario, f"{client}/{view}", *seen, reason), []).append(agent)
    text = [
        f"{scenario:18} {who:18} {','.join(agents)} {' '.join(seen)} {reason}".rstrip()
        for (scenario, who, *seen, reason), agents in merged.items()
    ]
    heading = (__doc__ or "").strip().splitlines()
    return "\n".join([*(f"# {line}".rstrip() for line in heading), *text]) + "\n"
