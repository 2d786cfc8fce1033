"""Write results.md from the JSON of a run.

python -m tests.peers.a2a.table [FILE of a run]
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.peers.a2a.rig.expect import lines
from tests.peers.a2a.rig.places import RESULTS, RIG, VIAS
from tests.peers.a2a.scenarios import SCENARIOS, SCRIPTS

type Row = dict[str, Any]

VIEWS = {
    "app": "An application that honours the flags, and shows the message of the last status",
    "appender": "An application that appends every update, and shows no messages",
    "manager": "The task of a2a-sdk 0.3's own task manager",
    "helper": "`get_stream_response_text` of a2a-sdk 1.x, joined",
    "content": "agno's client: the contents of its events, joined",
    "result": "strands' A2AAgent",
    "session": "google-adk's RemoteA2aAgent",
    "newsession": "google-adk's RemoteA2aAgent, asking for the new executor",
    "stored": "GetTask after the stream",
    "unary": "`message/send`: no stream at all",
    "events": "agno's client: the contents of all its events, the Task's too",
    "answer": "agno's client, `message/send`",
    "url": "Where the agent card leads",
}
SHOWN = {"once": "once", "own": "here"}


def counted(rows: Iterable[Row]) -> str:
    """`once (12), twice (2)`, the most frequent first."""
    words = Counter(row["verdict"] for row in rows if row["verdict"])
    return ", ".join(f"{SHOWN.get(word, word)} ({n})" for word, n in words.most_common()) or "-"


def table(rows: list[Row], names: Iterable[str], column: str, title: str) -> list[str]:
    """One line a name, one column for each way; nothing where there are no rows."""
    text = [f"| {title} | without midstream | gateway | mitmproxy |", "|---|---|---|---|"]
    for name in names:
        found = [row for row in rows if row[column] == name]
        if any(row["verdict"] for row in found):
            cells = (counted(row for row in found if row["via"] == via) for via in VIAS)
            text.append(f"| `{name}` | {' | '.join(cells)} |")
    return text if len(text) > 2 else []


def frameworks(rows: list[Row]) -> list[str]:
    """The agents of frameworks by view: all scripts together."""
    text = ["| agent | client | without midstream | gateway | mitmproxy |", "|---|---|---|---|---|"]
    places = sorted({(row["agent"], row["client"], row["view"]) for row in rows})
    for place in places:
        found = [row for row in rows if (row["agent"], row["client"], row["view"]) == place]
        cells = (counted(row for row in found if row["via"] == via) for via in VIAS)
        text.append(f"| {place[0]} | {place[1]}, {place[2]} | {' | '.join(cells)} |")
    return text


def not_mended() -> list[str]:
    """The cells that expected.txt says are not `once` through midstream, by their reasons."""
    by_reason: dict[str, set[str]] = {}
    for line in lines():
        if line.reason:
            by_reason.setdefault(line.reason, set()).add(f"{line.scenario} ({line.view})")
    return [f"- {reason}: {', '.join(sorted(cells))}." for reason, cells in by_reason.items()]


def page(rows: list[Row]) -> str:
    scripted = [row for row in rows if row["scenario"] in SCENARIOS]
    own = [row for row in rows if row["scenario"] in SCRIPTS]
    text = ["# Real A2A peers: what was seen", "", (RIG / "results-notes.md").read_text().strip()]
    text += ["", "## All cells", "", *table(rows, VIEWS, "view", "what is held in the end")]
    text += ["", "## The agents of frameworks, with a scripted model", "", *frameworks(own)]
    for view, about in VIEWS.items():
        lines = table([row for row in scripted if row["view"] == view], SCENARIOS, "scenario",
                      "scenario")  # fmt: skip
        if lines:
            text += ["", f"## {about}", "", *lines]
    text += ["", "## What is not mended, and why", "", *not_mended()]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "last.json"
    (RIG / "results.md").write_text(page(json.loads(source.read_text())["rows"]))
