"""The faults of the demo, recorded on loopback, are found whether they were mended or not."""

from pathlib import Path

import pytest
from tests.doctor.recording import record

from midstream.adapters.capture_format import read
from midstream.config import load
from midstream.demo import FAULTS
from midstream.demo.fault import Fault
from midstream.doctor.examine import Doctor
from midstream.doctor.report import Report


def diagnosed(path: Path) -> Report:
    doctor = Doctor(load(environ={}, needs_upstream=False))
    doctor.take(str(path), read(path))
    return doctor.report()


@pytest.mark.parametrize("observe", [False, True], ids=["repair", "observe"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.addon)
async def test_the_fault_of_each_scene_is_found(fault: Fault, observe: bool, tmp_path: Path):
    report = diagnosed(await record(fault, tmp_path, observe=observe))
    [found] = report.faults
    assert found.addon == fault.addon
    assert found.seen.count >= 1
    assert found.seen.mended == (0 if observe else found.seen.count)
    assert report.captures[0].was_mended is not observe
    assert report.captures[0].problems == []
