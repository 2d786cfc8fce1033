"""The demo shows every fault, and says so truthfully."""

import pytest

from midstream import demo, registry, wiring


def test_every_fault_is_shown_and_mended(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    out = capsys.readouterr().out
    for name in registry.addon_names():
        assert f"\n{name}: mended\n" in out
    assert "not mended" not in out
    assert "word4 | word0" in out  # what a person sees without the proxy


def test_a_fault_that_is_not_mended_is_not_called_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = wiring.engine
    monkeypatch.setattr(wiring, "engine", lambda config: engine(config, observe=True))
    assert demo.main() == 1
    assert capsys.readouterr().out.count(": not mended\n") == len(registry.addon_names())
