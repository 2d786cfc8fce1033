"""Play every cell that is asked for: servers, proxies before them, clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.peers.a2a.rig.install import python_of
from tests.peers.a2a.rig.judge import verdict
from tests.peers.a2a.rig.midstream import Midstream
from tests.peers.a2a.rig.places import CLIENTS, SERVERS, WORK, Agent
from tests.peers.a2a.rig.process import Running, free_port, output_of
from tests.peers.a2a.scenarios import SCENARIOS, SCRIPTS

SERVER_SECONDS = 90.0
CLIENT_SECONDS = 400.0
SERVERS_AT_ONCE = 2
CLIENTS_AT_ONCE = 2

type Row = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """Which part of the matrix."""

    servers: tuple[str, ...]
    agents: tuple[str, ...]
    vias: tuple[str, ...]
    clients: tuple[str, ...]
    scenarios: tuple[str, ...]
    settings: str = ""
    """Tables for midstream's configuration file."""

    def scenarios_of(self, agent: Agent) -> list[str]:
        played: Iterable[str] = SCENARIOS if agent.scripted else SCRIPTS
        return [name for name in played if name in self.scenarios]


@dataclass
class Found:
    rows: list[Row] = field(default_factory=list)
    counted: dict[str, dict[str, float]] = field(default_factory=dict)
    """What each midstream counted, by server and host."""
    failures: list[str] = field(default_factory=list)
    """Peers or proxies that did not come up, clients that ended badly."""


async def play(wanted: Wanted) -> Found:
    found = Found()
    servers = asyncio.Semaphore(SERVERS_AT_ONCE)
    clients = asyncio.Semaphore(CLIENTS_AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for name in wanted.servers:
            group.create_task(one_server(name, wanted, found, servers, clients))
    return found


async def one_server(
    name: str,
    wanted: Wanted,
    found: Found,
    servers: asyncio.Semaphore,
    clients: asyncio.Semaphore,
) -> None:
    async with servers:
        try:
            async with doors(name, wanted, found) as bases, asyncio.TaskGroup() as group:
                for client in wanted.clients:
                    group.create_task(one_client(client, name, bases, wanted, found, clients))
        except (RuntimeError, OSError) as error:
            found.failures.append(f"{name}: {error}")


@asynccontextmanager
async def doors(name: str, wanted: Wanted, found: Found) -> AsyncIterator[dict[str, str]]:
    """The server's address, and one of a midstream for each other way to it."""
    server = Running(name, free_port())
    upstream = f"http://127.0.0.1:{server.port}"
    proxies = {
        via: Midstream(via, upstream, name, wanted.settings)
        for via in wanted.vias
        if via != "direct"
    }
    module = f"tests.peers.a2a.servers.{name}_server"
    started: list[Running | Midstream] = [server]
    try:
        python = python_of(SERVERS[name].environment)
        await server.start([python, "-m", module, "--port", str(server.port)], SERVER_SECONDS)
        bases = {"direct": upstream} if "direct" in wanted.vias else {}
        for via, proxy in proxies.items():
            bases[via] = await proxy.start()
            started.append(proxy)
        yield bases
        for via, proxy in proxies.items():
            found.counted[f"{name} {via}"] = await proxy.counted()
    finally:
        for running in reversed(started):
            await running.stop()


async def one_client(
    client: str,
    server: str,
    bases: dict[str, str],
    wanted: Wanted,
    found: Found,
    clients: asyncio.Semaphore,
) -> None:
    """Play all that one client has to do at one server, directly and through the proxies."""
    jobs: list[str] = []
    for agent, about in SERVERS[server].agents.items():
        scenarios = ",".join(wanted.scenarios_of(about))
        if agent in wanted.agents and client in about.clients and scenarios:
            for via, base in bases.items():
                jobs += [f"{agent} {via}", f"{base}/{about.path}".rstrip("/"), scenarios]
    if not jobs:
        return
    module = f"tests.peers.a2a.clients.{client}_client"
    log = WORK / "logs" / f"{server}-{client}-client.log"
    async with clients:
        try:
            command: list[str | Path] = [python_of(CLIENTS[client]), "-m", module, *jobs]
            printed = await output_of(command, CLIENT_SECONDS, log)
        except (RuntimeError, TimeoutError) as error:
            found.failures.append(f"{client} at {server}: {error or 'took too long'}")
            return
    found.rows += [judged(client, json.loads(line)) for line in printed.splitlines()]


def judged(client: str, row: Row) -> Row:
    agent, via = row.pop("at").split()
    word = verdict(row["scenario"], row["view"], row["held"], row["message"], row["error"])
    return {"agent": agent, "client": client, "via": via, **row, "verdict": word}
