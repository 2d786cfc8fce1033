"""The two kits: how each is run against an address, and what it says."""

import json
import os
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.peers.a2a.tck.rig import WORK, environment

RUN_SECONDS = 540

type Results = dict[str, str]
"""What became of each test and each (requirement, transport): PASS, FAIL, SKIPPED ..."""


@dataclass(frozen=True)
class Kit:
    """One branch of the kit; `variable` names its checkout."""

    name: str
    sut: str
    variable: str
    run: Callable[[Path, Path, str, Path], Results]

    def checkout(self) -> Path | None:
        """Return the folder of the checkout, if one is given."""
        given = os.environ.get(self.variable)
        return Path(given).resolve() if given else None

    def results(self, url: str, name: str) -> Results:
        """Run the whole kit against this address."""
        checkout = self.checkout()
        assert checkout is not None
        # what the kit needs, as it declares it; the kit itself runs from its checkout
        project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
        python = environment(f"kit{self.name}", *project["dependencies"])
        reports = WORK / "reports"
        reports.mkdir(parents=True, exist_ok=True)
        return self.run(python, checkout, url, reports / name)


def pytest_run(python: Path, checkout: Path, report: Path, *arguments: str) -> Results:
    """Run tests of the checkout without writing to it; return what became of each."""
    junit = report.with_suffix(".xml")
    junit.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", *arguments, f"--junitxml={junit}"]
    command += ["-q", "--tb=line", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=checkout,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=RUN_SECONDS,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    report.with_suffix(".log").write_text(done.stdout)
    # 0: all passed, 1: some failed; everything else is a run that did not take place
    assert done.returncode in (0, 1), done.stdout[-2000:]
    return outcomes(junit)


def outcomes(junit: Path) -> Results:
    """Read a report of pytest."""
    found: Results = {}
    for case in ET.parse(junit).getroot().iter("testcase"):
        marks = {child.tag: child.get("type", "") for child in case}
        outcome = "PASS"
        if "failure" in marks or "error" in marks:
            outcome = "FAIL"
        elif "skipped" in marks:
            outcome = "XFAIL" if marks["skipped"] == "pytest.xfail" else "SKIPPED"
        found[f"{case.get('classname')}.{case.get('name')}"] = outcome
    return found


def run_10(python: Path, checkout: Path, url: str, report: Path) -> Results:
    """Run the kit of 1.0, all levels, JSON-RPC and HTTP+JSON (gRPC is skipped: none is named)."""
    results = pytest_run(
        python,
        checkout,
        report,
        "tests/compatibility/",
        f"--sut-host={url}",
        f"--compatibility-report={report}",
    )
    requirements = json.loads(report.with_suffix(".json").read_text())["per_requirement"]
    for name, requirement in requirements.items():
        for transport, outcome in requirement["transports"].items():
            results[f"{name} {transport}"] = outcome
    return results


CATEGORIES_03 = {
    "mandatory": ("tests/mandatory/", "-m", "mandatory_jsonrpc or mandatory_protocol"),
    "capabilities": ("tests/optional/capabilities/",),
}


def run_03(python: Path, checkout: Path, url: str, report: Path) -> Results:
    """Run the kit of 0.3, what is mandatory and what the card declares, on both transports."""
    results: Results = {}
    for transport in ("jsonrpc", "rest"):
        for category, selected in CATEGORIES_03.items():
            found = pytest_run(
                python,
                checkout,
                report.with_name(f"{report.name}-{transport}-{category}"),
                *selected,
                f"--sut-url={url}/",
                "--test-scope=all",
                f"--transports={transport}",
            )
            results |= {f"{name} {transport}": outcome for name, outcome in found.items()}
    return results


KITS = (
    Kit("10", "sut10", "MIDSTREAM_A2A_TCK_10", run_10),
    Kit("03", "sut03", "MIDSTREAM_A2A_TCK_03", run_03),
)


def differences(direct: Results, proxied: Results) -> list[str]:
    """Return one line for each result that is not the same."""
    return [
        f"{name}: {direct.get(name, 'absent')} direct, {proxied.get(name, 'absent')} proxied"
        for name in sorted(direct.keys() | proxied.keys())
        if direct.get(name) != proxied.get(name)
    ]


def summary(results: Results) -> str:
    """Return the counts in one line."""
    kinds = Counter(results.values())
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
