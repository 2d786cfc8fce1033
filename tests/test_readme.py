"""What the README claims is checked against the code it speaks of."""

import re
import tomllib
from pathlib import Path

import pytest

from midstream import registry
from midstream.cli import main
from midstream.core.metrics import TABLE, Metric

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDONS = (ROOT / "addons" / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def metric_row(metric: Metric) -> str:
    labels = ", ".join(metric.labels) or "-"
    return f"| `{metric.name}` | {metric.type.value} | {labels} | {metric.help} |"


def metric_table() -> str:
    """Return the metrics table as the README shows it."""
    head = ["| name | type | labels | what it counts |", "|---|---|---|---|"]
    return "\n".join([*head, *map(metric_row, TABLE)])


def test_the_metrics_table_is_the_one_in_the_code() -> None:
    assert metric_table() in README, f"put this into README.md:\n{metric_table()}"


def test_the_first_command_is_the_demo_and_the_second_the_tests() -> None:
    assert [block.strip() for block in blocks("console")[:2]] == [
        "uv run midstream demo",
        "uv run pytest",
    ]


def test_the_configuration_shown_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, block in enumerate(blocks("toml")):
        tomllib.loads(block)
        path = tmp_path / f"{number}.toml"
        part = "" if "[[route]]" in block else '\n[[route]]\nupstream = "http://127.0.0.1:8787"\n'
        path.write_text(block + part, encoding="utf-8")
        assert main(["check", "--config", str(path)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", registry.addon_names())
def test_every_repair_stands_in_both_tables_with_its_rules(name: str) -> None:
    assert f"| `{name}` |" in README
    row = next(line for line in ADDONS.splitlines() if line.startswith(f"| `{name}` |"))
    for rule in registry.load_addon(name).rules:
        assert f"`{rule}`" in row


def test_the_repair_written_in_ten_minutes_works(tmp_path: Path) -> None:
    from tests.support import chain_of, texts, ws

    scope: dict[str, object] = {}
    (source,) = blocks("python", ADDONS)
    exec(compile(source, "notice_once.py", "exec"), scope)
    addon = scope["ADDON"]
    chain = chain_of(addon(addon.Options()))  # type: ignore[operator, attr-defined]
    notices = [ws(f'{{"type":"notice","number":{n}}}') for n in (1, 1, 2)]
    out = [frame for notice in notices for frame in chain.run(notice, 0)]
    assert texts(out) == texts([notices[0], notices[2]])
