"""midstream between clients and one server, as a person would start it."""

import asyncio
import re
import sys
import urllib.request

from tests.peers.a2a.rig.places import WORK
from tests.peers.a2a.rig.process import Running, free_port

START_SECONDS = 60.0
STARTS = 2  # a busy machine, or a port that another took meanwhile
METRICS_SECONDS = 5.0
COUNTED = re.compile(
    r"^midstream_(repairs_total|repair_errors_total|repair_skipped_total){(.*)} ([1-9][\d.]*)$"
)


class Midstream:
    """`host` is gateway (`midstream run`) or mitm (`midstream mitm`, in reverse mode).

    `settings` are tables of a configuration file, `[addon.NAME]` for one.
    """

    def __init__(self, host: str, upstream: str, label: str, settings: str = "") -> None:
        self.host = host
        self.upstream = upstream
        self.label = f"{label}-{host}"
        self.settings = settings

    async def start(self) -> str:
        """Start it and return the address that stands in for the server's."""
        for left in reversed(range(STARTS)):
            port, self.admin = free_port(), free_port()
            self.running = Running(self.label, port)
            command = [sys.executable, "-m", "midstream", *self.arguments(port)]
            try:
                await self.running.start(command, START_SECONDS)
            except RuntimeError:
                if not left:
                    raise
            else:
                break
        return f"http://127.0.0.1:{port}"

    async def stop(self) -> None:
        await self.running.stop()

    def arguments(self, port: int) -> list[str]:
        if self.host == "gateway":
            if self.settings:
                lines = [f'listen = "127.0.0.1:{port}"']
                route = ["[[route]]", 'name = "default"', f'upstream = "{self.upstream}"']
                return ["run", "--config", self.file(lines, route)]
            return [
                "run", "--upstream", self.upstream,
                "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{self.admin}",
            ]  # fmt: skip
        return [
            "mitm", "--config", self.file([], []), "--",
            "--mode", f"reverse:{self.upstream}", "--listen-host", "127.0.0.1",
            "--listen-port", str(port), "--set", "termlog_verbosity=warn",
        ]  # fmt: skip

    def file(self, first: list[str], route: list[str]) -> str:
        """Write the configuration: the mitm verb has no flag for the admin port."""
        file = WORK / "run" / f"{self.label}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        admin = f'admin = "127.0.0.1:{self.admin}"'
        file.write_text("\n".join([*first, admin, *route, self.settings, ""]))
        return str(file)

    async def counted(self) -> dict[str, float]:
        """What was mended, declined and failed: each series that is not 0."""
        url = f"http://127.0.0.1:{self.admin}/metrics"

        def read() -> str:
            with urllib.request.urlopen(url, timeout=METRICS_SECONDS) as answer:
                text: str = answer.read().decode()
                return text

        lines = (await asyncio.to_thread(read)).splitlines()
        found = [match for line in lines if (match := COUNTED.match(line))]
        return {f"{name}{{{labels}}}": float(count) for name, labels, count in
                (match.groups() for match in found)}  # fmt: skip
