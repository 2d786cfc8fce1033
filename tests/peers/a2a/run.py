"""Play real A2A servers against real clients, directly and through midstream.

python -m tests.peers.a2a.run [--server S,S] [--agent A,A] [--via V,V] [--client C,C]
    [--scenario N,N] [--settings FILE] [--out FILE]
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

from tests.peers.a2a.rig.cells import Found, Wanted, play
from tests.peers.a2a.rig.expect import key, worse_rows
from tests.peers.a2a.rig.install import install
from tests.peers.a2a.rig.places import CLIENTS, RESULTS, SERVERS, VIAS
from tests.peers.a2a.scenarios import SCENARIOS, SCRIPTS


def chosen(text: str | None, known: list[str], what: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else tuple(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"unknown {what} {name}, known are {', '.join(known)}")
    return names


def wanted_of(options: argparse.Namespace) -> Wanted:
    agents = [agent for server in SERVERS.values() for agent in server.agents]
    servers = list(SERVERS)
    if options.agent:
        picked = options.agent.split(",")
        servers = [name for name in servers if set(picked) & set(SERVERS[name].agents)]
    return Wanted(
        chosen(options.server, servers, "server"),
        chosen(options.agent, agents, "agent"),
        chosen(options.via, list(VIAS), "way"),
        chosen(options.client, list(CLIENTS), "client"),
        chosen(options.scenario, [*SCENARIOS, *SCRIPTS], "scenario"),
        options.settings.read_text() if options.settings else "",
    )


def environments_of(wanted: Wanted) -> set[str]:
    found = {SERVERS[name].environment for name in wanted.servers}
    for name in wanted.servers:
        for agent, about in SERVERS[name].agents.items():
            if agent in wanted.agents:
                found |= {CLIENTS[client] for client in about.clients if client in wanted.clients}
    return found


def show(found: Found, took_s: float) -> list[str]:
    """Print what was seen; return what is worse than expected."""
    for row in sorted(found.rows, key=key):
        if row["verdict"]:
            print(*key(row), row["verdict"])
    for where, counts in sorted(found.counted.items()):
        print(f"# {where}: " + (", ".join(f"{name} {n:g}" for name, n in counts.items()) or "-"))
    worse = [*found.failures, *worse_rows(found.rows)]
    for line in worse:
        print(f"WORSE {line}")
    print(f"{len(found.rows)} rows in {took_s:.0f} s, {len(worse)} worse than expected")
    return worse


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for name in ("server", "agent", "via", "client", "scenario"):
        parser.add_argument(f"--{name}", help="names, with commas between them; default: all")
    parser.add_argument("--settings", type=Path, help="a file of [addon.NAME] tables for midstream")
    parser.add_argument("--out", type=Path, default=RESULTS / "last.json")
    options = parser.parse_args()
    wanted = wanted_of(options)
    install(environments_of(wanted))
    start = time.monotonic()
    found = asyncio.run(play(wanted))
    worse = show(found, time.monotonic() - start)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    result = {"rows": found.rows, "counted": found.counted, "failures": found.failures}
    options.out.write_text(json.dumps(result, indent=1, ensure_ascii=True))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
