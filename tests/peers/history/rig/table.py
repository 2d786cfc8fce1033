"""results.md: what was seen last."""

from collections.abc import Iterable

from tests.peers.history.rig.install import versions
from tests.peers.history.rig.modes import CLIENTS, ORDERS, VIAS, Cell, goals
from tests.peers.history.rig.places import RIG
from tests.peers.history.rig.play import Found, Row

RESULTS = RIG / "results.md"
HEAD = """\
# What reached the provider

Written by `python -m tests.peers.history.run`; do not edit. README.md says what the modes and the
words mean. Every cell is one conversation of four requests, compared with those that the same
client's normal loop sends without a proxy.
"""


def table(found: Found) -> str:
    """Return the whole page."""
    columns = [(order, via) for order in ORDERS for via in VIAS if (order, via) != ORIGIN]
    lines = [HEAD]
    for client, pins in versions().items():
        lines.append(f"- {client}: {pins}")
    names = [f"{order}, {via}" for order, via in columns]
    lines += ["", _line(["client", "mode", *names]), _line(["---"] * (len(columns) + 2))]
    for client, modes in CLIENTS.items():
        for mode in modes:
            rows = [found.rows[Cell(client, mode, *column)] for column in columns]
            lines.append(_line([client, mode, *map(_word, rows)]))
    lines += ["", "Not as it should be: " + _wrong(found.rows.values()), "", "## Counted", ""]
    for via, counted in found.counted.items():
        lines += [f"    {via:8} {series} {count:g}" for series, count in sorted(counted.items())]
    return "\n".join(lines) + "\n"


ORIGIN = (ORDERS[0], VIAS[0])


def _word(row: Row) -> str:
    word = "error" if row.held["error"] else row.word
    return word if word in goals(row.cell) else f"**{word}**"


def _wrong(rows: Iterable[Row]) -> str:
    bad = [row.cell for row in rows if _word(row).startswith("*")]
    return f"{len(bad)} (set in bold)" if bad else "none."


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
