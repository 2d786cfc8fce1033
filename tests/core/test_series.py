"""Series: all known ones start at 0, and traffic makes no others."""

import pytest
from tests.support import (
    CLIENT,
    EVENT_STREAM,
    SERVER,
    FakeAddon,
    FakeDialect,
    request,
    upgrade,
)

from midstream.core import metrics
from midstream.core.addon import Compared, Mode, Prefixed, Reconnected, Verdict
from midstream.core.engine import Engine, Route
from midstream.core.exchange import ResponseHead
from midstream.core.frames import Kind, Side
from midstream.core.metrics import TABLE, Counts, Metric, Type
from midstream.core.series import start_known_series

MAX_SERIES = 1_500
RUNTIME_SERIES = 40
"""Room for what the metrics library exports of the process itself."""


class LargeAddon(FakeAddon):
    """As many words as a large repair declares."""

    rules = tuple(f"rule_{i}" for i in range(6))
    reasons = tuple(f"reason_{i}" for i in range(6))


def labels_of(counts: Counts, metric: Metric) -> set[tuple[str, ...]]:
    if metric.type is Type.HISTOGRAM:
        return {labels for name, labels in counts.histograms if name == metric.name}
    return {labels for labels, _ in counts.samples(metric)}


def series(counts: Counts) -> int:
    """Count series as Prometheus does: a histogram has one a bucket, the sum and the count."""
    return len(counts.values) + sum(len(buckets) + 2 for buckets, _ in counts.histograms.values())


def test_everything_starts_at_zero():
    counts = Counts()
    start_known_series(counts, [("a", [(FakeAddon(), Mode.REPAIR)])])
    assert set(counts.values.values()) == {0}
    assert all(not any(buckets) and total == [0.0] for buckets, total in counts.histograms.values())


def test_every_metric_of_the_table_has_a_series_but_those_that_others_start():
    counts = Counts()
    start_known_series(counts, [("a", [(FakeAddon(), Mode.REPAIR)])])
    missing = {metric.name for metric in TABLE if not labels_of(counts, metric)}
    assert missing == {metrics.BUILD_INFO.name, metrics.CAPTURE_DROPPED.name}
    for metric in TABLE:
        assert {len(labels) for labels in labels_of(counts, metric)} <= {len(metric.labels)}


def test_an_addon_has_its_words_in_its_own_mode_on_its_own_route():
    counts = Counts()
    routes = [
        ("a", [(FakeAddon(), Mode.OBSERVE), (FakeAddon("off"), Mode.OFF)]),
        ("b", [(FakeAddon(), Mode.REPAIR)]),
    ]
    start_known_series(counts, routes)
    assert labels_of(counts, metrics.REPAIRS) == {
        ("a", "fake", "cut", "observe"),
        ("a", "fake", "swap", "observe"),
        ("b", "fake", "cut", "repair"),
        ("b", "fake", "swap", "repair"),
    }
    assert labels_of(counts, metrics.SKIPPED) == {
        ("fake", reason) for reason in ("unsure", "hold_bound", "too_large", "bad_encoding")
    }
    assert labels_of(counts, metrics.ERRORS) == {("fake",)}
    assert labels_of(counts, metrics.REMOVED_BYTES) == {("a", "fake"), ("b", "fake")}


def test_stream_metrics_exist_for_streams_only():
    counts = Counts()
    start_known_series(counts, [("a", [])])
    for metric in (metrics.STREAMS_OPENED, metrics.FIRST_EVENT, metrics.STREAM_DURATION):
        assert labels_of(counts, metric) == {("a", "ws"), ("a", "sse")}
    assert len(labels_of(counts, metrics.REQUESTS)) == 15


@pytest.mark.parametrize("mode", [Mode.REPAIR, Mode.OBSERVE])
def test_eight_routes_with_five_large_addons_stay_under_1500_series(mode):
    addons = tuple((LargeAddon(f"addon-{i}"), mode) for i in range(5))
    routes = [Route(f"route-{i}", f"/{i}/*", "http://a", addons) for i in range(8)]
    counts = Engine(routes, [], secret=b"s").counts
    assert 1_000 < series(counts) + RUNTIME_SERIES < MAX_SERIES


def test_no_traffic_makes_a_series_that_was_not_there_at_the_start():
    notes = (Reconnected("rebuilt"), Compared("comparable", 1), Prefixed(1, 2))
    verdicts: list[Verdict | Exception] = [
        Verdict.drop("cut"),
        Verdict.skip("unsure"),
        Verdict.keep(notes=notes),
        Verdict.drop("made up by the payload"),
        RuntimeError("made up by the payload"),
    ]
    at = iter(range(10**6))

    def judge(*_arguments: object) -> Verdict:
        verdict = verdicts[next(at) % len(verdicts)]
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    route = Route("chat", "/*", "http://a", ((FakeAddon(frame=judge, size=10), Mode.REPAIR),))
    engine = Engine([route], [FakeDialect()], secret=b"s")
    known = set(engine.counts.values), set(engine.counts.histograms)
    for number in range(1_000):
        head = upgrade(f"/chat/{number}?token={number}", Cookie=str(number), x_id=str(number))
        if number % 2:
            head = request(f"/chat/{number}", method=f"M{number}")
        session = engine.open(head, route)
        session.open(0)
        if head.is_websocket:
            for side in Side:
                session.receive_message(side, Kind.WS_TEXT, str(number).encode(), 1)
        else:
            session.receive(CLIENT, str(number).encode(), 1)
            session.end(CLIENT, 1)
            session.respond(EVENT_STREAM if number % 4 == 1 else ResponseHead(number), 1)
            session.receive(SERVER, b"data: a\n\n", 2)
        session.abort(3)
    assert (set(engine.counts.values), set(engine.counts.histograms)) == known
    assert engine.counts.get(metrics.REPAIRS, ("chat", "fake", "cut", "repair")) > 0
