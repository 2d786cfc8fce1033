"""Which peers there are, and where the rig keeps what it makes."""

import os
from dataclasses import dataclass
from pathlib import Path

RIG = Path(__file__).parent.parent
REPOSITORY = RIG.parents[2]
WORK = Path(os.environ.get("PEERS_A2A_DIR", RIG / ".work"))
EXPECTED = RIG / "expected.txt"
RESULTS = WORK / "results"

VIAS = ("direct", "gateway", "mitm")


@dataclass(frozen=True)
class Agent:
    """One agent of a server: its path, who talks to it, and what is played."""

    path: str
    clients: tuple[str, ...]
    scripted: bool = True
    """It plays scenarios; else the scripts of a model, through a framework's own code."""


@dataclass(frozen=True)
class Server:
    """One process. `environment` names a file of requirements/."""

    environment: str
    agents: dict[str, Agent]


SERVERS: dict[str, Server] = {
    "sdk1": Server(
        "sdk1",
        {
            "sdk1-rpc1": Agent("rpc1", ("sdk1", "adk")),
            "sdk1-rest1": Agent("rest1", ("sdk1",)),
            "sdk1-compat03": Agent("compat03", ("sdk03", "sdk1")),
            "sdk1-rest03": Agent("rest03", ("sdk03",)),
        },
    ),
    "sdk03": Server(
        "sdk03",
        {
            "sdk03-rpc03": Agent("rpc03", ("sdk03", "sdk1", "strands", "agno")),
            "sdk03-rest03": Agent("restown03", ("sdk03",)),
        },
    ),
    "adk": Server(
        "adk",
        {
            f"adk-{path}": Agent(path, ("sdk1", "adk"), scripted=False)
            for path in ("legacy-sse", "legacy-none", "new-sse", "new-none")
        },
    ),
    "strands": Server(
        "strands",
        {
            f"strands-{path}": Agent(path, ("sdk03", "strands"), scripted=False)
            for path in ("default", "compliant")
        },
    ),
    "fasta2a": Server("fasta2a", {"fasta2a": Agent("", ("fasta2a",), scripted=False)}),
    "agno": Server("agno", {"agno": Agent("a2a/agents/scripted", ("agno",), scripted=False)}),
}

CLIENTS = {
    "sdk1": "sdk1",
    "sdk03": "sdk03",
    "adk": "adk",
    "strands": "strands",
    "fasta2a": "fasta2a",
    "agno": "agno",
}
"""Each client's environment."""
