"""Breaks one rule at a time, and tells whether any test notices.

Each mutant is a copy of both packages with one passage exchanged; the tests given run against the
copy, and must fail.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]
PACKAGES = ("addons/midstream_addons", "proxy/midstream")
TIMEOUT_S = 600


class Mutant(msgspec.Struct):
    """A passage of a file, and what stands there instead."""

    name: str
    file: str
    old: str
    new: str


def fails(
    mutant: Mutant, tests: Sequence[str], environ: Mapping[str, str], arguments: Sequence[str] = ()
) -> bool:
    """Run tests against a mutant, in their order, up to the first that fails.

    Raises ValueError where its passage is gone, or pytest itself breaks off.
    """
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            shutil.copytree(ROOT / package, Path(folder) / package)
        path = Path(folder) / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            found = text.count(mutant.old)
            raise ValueError(f"{mutant.name}: its passage stands {found} times in {mutant.file}")
        path.write_text(text.replace(mutant.old, mutant.new))
        paths = [str(Path(folder) / "addons"), str(Path(folder) / "proxy"), str(ROOT)]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments,
             *tests],
            cwd=ROOT,
            env={
                **os.environ,
                **environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
        said = run.stdout.decode()
        if run.returncode != 0 and " failed" not in said:
            raise ValueError(f"{mutant.name}: {said[-500:]}")
        return run.returncode != 0


def tell(
    names: Sequence[str],
    mutants: Sequence[Mutant],
    untouched: Mutant,
    is_caught: Callable[[Mutant], bool],
) -> int:
    """Print which of the mutants are caught; return 1 if any survives."""
    known = {mutant.name: mutant for mutant in mutants}
    survived = 0
    if is_caught(untouched):
        print("the tests fail without any mutant")
        return 1
    for name in names or known:
        caught = is_caught(known[name])
        survived += not caught
        print(f"{name:40} {'caught' if caught else 'SURVIVED'}", flush=True)
    print(f"{survived} survived")
    return 1 if survived else 0
