"""Dashboards, rules and runbooks say nothing that the exporter does not."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from dashboards.source.__main__ import ALL, written
from midstream.core.metrics import TABLE, Type

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
RULES = FOLDER / "rules"
RUNBOOKS = ROOT / "deploy" / "runbooks"
BOARDS = sorted(FOLDER.glob("*.json"))
PROMTOOL = shutil.which("promtool")

SCRAPED = {"job", "instance"}
PROCESS = {
    "process_cpu_seconds_total", "process_max_fds", "process_open_fds",
    "process_resident_memory_bytes", "process_start_time_seconds", "up",
}  # fmt: skip
KNOWN_UNITS = {"Bps", "bytes", "ops", "percentunit", "reqps", "s", "short"}


def exported() -> dict[str, set[str]]:
    """Return every series name with its labels."""
    found = {name: set(SCRAPED) for name in PROCESS}
    for metric in TABLE:
        labels = {*metric.labels, *SCRAPED}
        if metric.type is Type.HISTOGRAM:
            found |= {f"{metric.name}_{end}": labels for end in ("sum", "count")}
            found[f"{metric.name}_bucket"] = labels | {"le"}
        else:
            found[metric.name] = labels
    return found


EXPORTED = exported()


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in board["panels"]:
        yield from (p for p in [panel, *panel.get("panels", [])] if p["type"] != "row")


def selectors(expr: Any) -> Iterator[Any]:
    """Return the vector selectors of a parsed expression."""
    if isinstance(expr, promql.VectorSelector):
        yield expr
    for name in ("expr", "lhs", "rhs", "vector_selector", "vs", "args"):
        inner = getattr(expr, name, None)
        for each in inner if isinstance(inner, list) else [inner]:
            if each is not None and not isinstance(each, str):
                yield from selectors(each)


def check(expr: str, known: dict[str, set[str]]) -> list[Any]:
    """Parse an expression; every metric and label that it selects by must exist."""
    text = re.sub(r"\$__(rate_)?interval|\$__range", "5m", expr)
    found = list(selectors(promql.parse(text)))
    assert found, expr
    for selector in found:
        assert selector.name in known, (selector.name, expr)
        for matcher in selector.matchers.matchers:
            assert matcher.name in known[selector.name] | {"__name__"}, (matcher.name, expr)
    return found


def rules() -> list[dict[str, Any]]:
    files = [RULES / "recording.yaml", RULES / "alerts.yaml"]
    return [r for f in files for g in yaml.safe_load(f.read_text())["groups"] for r in g["rules"]]


ALERTS = [rule["alert"] for rule in rules() if "alert" in rule]


@pytest.mark.parametrize("name", ALL)
def test_the_files_are_what_their_source_writes(name: str):
    assert (FOLDER / f"{name}.json").read_text() == written(ALL[name])


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_query_selects_what_is_exported_by_job_and_instance(path: Path):
    for panel in panels(json.loads(path.read_text())):
        for target in panel["targets"]:
            for selector in check(target["expr"], EXPORTED):
                matched = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
                assert matched["job"] == "$job"
                assert matched["instance"] == "$instance"
                if "route" in EXPORTED[selector.name]:
                    assert matched["route"] == "$route", panel["title"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_panel_tells_what_it_shows_and_in_which_unit(path: Path):
    board = json.loads(path.read_text())
    assert board["uid"].startswith("midstream-")
    assert len(board["uid"]) <= 40
    assert board["editable"] is False
    assert board["time"]["from"].startswith("now-")
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names[:3] == ["datasource", "job", "instance"]
    titles = []
    for panel in panels(board):
        titles.append(panel["title"])
        assert panel["description"].endswith((".", "`"))
        assert panel["fieldConfig"]["defaults"]["unit"] in KNOWN_UNITS
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert target["refId"]
            assert target["legendFormat"]
            assert "rate(" not in target["expr"] or "$__rate_interval" in target["expr"]
    assert len(titles) == len(set(titles)) or path.stem == "mending"


def test_every_metric_of_the_table_is_shown_or_alerted_on():
    texts = [path.read_text() for path in BOARDS] + [(RULES / "alerts.yaml").read_text()]
    shown = "\n".join(texts)
    assert [metric.name for metric in TABLE if metric.name not in shown] == []


def test_rules_select_what_is_exported_or_recorded():
    known = dict(EXPORTED)
    for rule in rules():
        if "record" in rule:
            known[rule["record"]] = {"job", "addon", "mode"}
    for rule in rules():
        check(rule["expr"], known)


def test_there_are_enough_alerts_and_each_is_complete():
    assert len(ALERTS) >= 10
    assert len(ALERTS) == len(set(ALERTS))
    uids = {json.loads(path.read_text())["uid"] for path in BOARDS}
    for rule in rules():
        if "alert" not in rule:
            continue
        said = rule["annotations"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert said["summary"]
        assert said["description"]
        assert (ROOT / said["runbook_url"]).is_file()
        assert said["dashboard"].removeprefix("/d/") in uids


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_a_runbook_and_is_tested_firing_and_silent(name: str):
    text = (RUNBOOKS / f"{name}.md").read_text()
    for part in (f"# {name}", "## What it means", "## What to do", "## Metrics to look at"):
        assert part in text
    for metric in re.findall(r"^- `(\w+)`$", text, re.MULTILINE):
        assert metric in EXPORTED or f"{metric}_count" in EXPORTED, metric
    for link in re.findall(r"\]\((\w+\.md)\)", text):
        assert (RUNBOOKS / link).is_file()
    tests = yaml.safe_load((RULES / "alerts_test.yaml").read_text())["tests"]
    expected = [
        case["exp_alerts"] for test in tests for case in test["alert_rule_test"]
        if case["alertname"] == name
    ]  # fmt: skip
    assert any(expected)
    assert not all(expected)


def test_no_runbook_is_without_an_alert():
    assert sorted(path.stem for path in RUNBOOKS.glob("*.md")) == sorted(ALERTS)


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, Debian's package prometheus")
def test_promtool_finds_the_rules_right_and_their_tests_pass():
    for arguments in (
        ["check", "rules", "recording.yaml", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
    ):
        run = subprocess.run(
            [str(PROMTOOL), *arguments], cwd=RULES, capture_output=True, text=True, timeout=120
        )
        assert run.returncode == 0, run.stdout + run.stderr
