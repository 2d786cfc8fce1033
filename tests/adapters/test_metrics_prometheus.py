import re

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from midstream.adapters.metrics_prometheus import Exposition
from midstream.core import metrics
from midstream.core.metrics import Counts, Type

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def samples(
    counts: Counts, accept: str = ""
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    body, _ = Exposition(counts).render(accept)
    parse = parse_openmetrics if accept else parse_text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(body.decode())
        for sample in family.samples
    }


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_a_counter_and_a_gauge_show_what_was_counted(accept):
    counts = Counts()
    counts.add(metrics.REJECTED, ("origin",), 3)
    counts.set(metrics.DRAINING, (), 1)
    shown = samples(counts, accept)
    assert shown["midstream_rejected_total", (("reason", "origin"),)] == 3
    assert shown["midstream_draining", ()] == 1


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_a_histogram_is_cumulative_and_has_a_sum_and_a_count(accept):
    counts = Counts()
    for seconds in (0.00001, 0.002, 0.002, 7.0):
        counts.observe(metrics.ADDED_LATENCY, ("server",), seconds)
    shown = samples(counts, accept)

    def bucket(bound: str) -> float:
        return shown["midstream_added_latency_seconds_bucket", (("le", bound), ("side", "server"))]

    assert [bucket("5e-05"), bucket("0.001"), bucket("0.0025"), bucket("+Inf")] == [1, 1, 3, 4]
    assert shown["midstream_added_latency_seconds_count", (("side", "server"),)] == 4
    assert shown["midstream_added_latency_seconds_sum", (("side", "server"),)] == pytest.approx(
        7.00401
    )


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_every_metric_of_the_table_is_named_with_its_type_and_help(accept):
    body, _ = Exposition(Counts()).render(accept)
    text = body.decode()
    for metric in metrics.TABLE:
        name = metric.name
        if accept and metric.type is Type.COUNTER:
            name = name.removesuffix("_total")
        assert f"# TYPE {name} {metric.type.value}\n" in text
        assert f"# HELP {name} {metric.help}\n" in text


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_no_created_series_and_at_most_twelve_buckets(accept):
    counts = Counts()
    for metric in metrics.TABLE:
        labels = tuple("x" for _ in metric.labels)
        if metric.type is Type.HISTOGRAM:
            counts.observe(metric, labels, 1.0)
        else:
            counts.add(metric, labels)
    text = Exposition(counts).render(accept)[0].decode()
    assert "_created" not in text
    buckets = re.findall(r"^(midstream_\w+)_bucket", text, re.MULTILINE)
    assert buckets
    assert all(buckets.count(name) <= 12 for name in buckets)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html, */*", "text/plain; version=0.0.4; charset=utf-8"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ],
)
def test_the_format_is_chosen_by_the_accept_header(accept, content_type):
    body, shown = Exposition(Counts()).render(accept)
    assert shown.startswith(content_type)
    assert body.endswith(b"# EOF\n") == ("openmetrics" in content_type)


def test_the_process_is_shown_too():
    shown = samples(Counts())
    assert shown["process_resident_memory_bytes", ()] > 0
    assert ("python_gc_collections_total", (("generation", "0"),)) in shown


def test_label_values_are_escaped():
    counts = Counts()
    counts.add(metrics.REJECTED, ('a"b\\c\nd',))
    assert samples(counts)["midstream_rejected_total", (("reason", 'a"b\\c\nd'),)] == 1
