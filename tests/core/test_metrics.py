"""The metric table and the counts."""

import pytest

from midstream.core import metrics
from midstream.core.metrics import TABLE, Counts, Type

CONTRACT = {
    "midstream_requests_total": ("route", "transport", "code_class"),
    "midstream_streams_opened_total": ("route", "transport"),
    "midstream_streams_closed_total": ("route", "transport", "outcome"),
    "midstream_streams_active": ("route", "transport"),
    "midstream_frames_total": ("route", "transport", "side"),
    "midstream_frame_bytes_total": ("route", "transport", "side"),
    "midstream_repairs_total": ("route", "addon", "rule", "mode"),
    "midstream_repair_removed_bytes_total": ("route", "addon"),
    "midstream_repair_skipped_total": ("addon", "reason"),
    "midstream_repair_errors_total": ("addon",),
    "midstream_reconnects_total": ("route", "result"),
    "midstream_history_pairs_total": ("route", "state"),
    "midstream_history_prefix_items_total": ("route", "state"),
    "midstream_added_latency_seconds": ("side",),
    "midstream_time_to_first_event_seconds": ("route", "transport"),
    "midstream_stream_duration_seconds": ("route", "transport"),
    "midstream_stream_stalls_total": ("route",),
    "midstream_store_operation_seconds": ("op",),
    "midstream_store_errors_total": ("op",),
    "midstream_capture_records_total": ("kind",),
    "midstream_capture_bytes_total": (),
    "midstream_capture_dropped_total": ("reason",),
    "midstream_rejected_total": ("reason",),
    "midstream_upstream_errors_total": ("route", "reason"),
    "midstream_event_loop_lag_seconds": (),
    "midstream_draining": (),
    "midstream_build_info": ("version", "python"),
}
"""The names that dashboards and alerts outside this package rely on."""


def test_every_name_of_the_contract_is_in_the_table_with_its_labels():
    table = {metric.name: metric.labels for metric in TABLE}
    assert table.items() >= CONTRACT.items()


def test_names_are_unique_and_sorted_and_tell_their_type():
    names = [metric.name for metric in TABLE]
    assert names == sorted(set(names))
    for metric in TABLE:
        assert metric.name.startswith("midstream_")
        assert metric.name.endswith("_total") is (metric.type is Type.COUNTER)
        assert metric.name.endswith("_seconds") is (metric.type is Type.HISTOGRAM)
        assert metric.help.endswith(".")


def test_a_histogram_has_at_most_12_buckets_with_the_infinite_one_and_they_rise():
    for metric in TABLE:
        assert len(metric.buckets) + 1 <= 12
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert bool(metric.buckets) is (metric.type is Type.HISTOGRAM)


def test_counts_add_and_gauges_are_set():
    counts = Counts()
    counts.add(metrics.STALLS, ("a",))
    counts.add(metrics.STALLS, ("a",), 2)
    counts.add(metrics.STREAMS_ACTIVE, ("a", "ws"), -1)
    counts.set(metrics.DRAINING, (), 1)
    assert counts.get(metrics.STALLS, ("a",)) == 3
    assert counts.get(metrics.STALLS, ("b",)) == 0
    assert counts.get(metrics.STREAMS_ACTIVE, ("a", "ws")) == -1
    assert counts.get(metrics.DRAINING) == 1


def test_a_key_is_a_place_to_add_to():
    counts = Counts()
    counts.add(metrics.STALLS, ("a",), 2)
    counts.values[counts.key(metrics.STALLS, ("a",))] += 1
    counts.values[counts.key(metrics.STALLS, ("b",))] += 1
    assert dict(counts.samples(metrics.STALLS)) == {("a",): 3, ("b",): 1}


@pytest.mark.parametrize(
    ("value", "bucket"), [(0.0, 0), (0.001, 0), (0.0011, 1), (1.0, 9), (1.1, 10), (99.0, 10)]
)
def test_a_value_counts_in_the_first_bucket_that_is_not_below_it(value, bucket):
    counts = Counts()
    counts.observe(metrics.LOOP_LAG, (), value)
    buckets, total = counts.histograms[metrics.LOOP_LAG.name, ()]
    assert buckets.index(1) == bucket
    assert (sum(buckets), total) == (1, [value])


def test_values_of_a_histogram_add_up():
    counts = Counts()
    for value in (0.5, 0.25, 7.0):
        counts.observe(metrics.LOOP_LAG, (), value)
    buckets, total = counts.histograms[metrics.LOOP_LAG.name, ()]
    assert (sum(buckets), total) == (3, [7.75])


def test_starting_at_zero_makes_every_combination_and_keeps_what_was_counted():
    counts = Counts()
    counts.add(metrics.STREAMS_OPENED, ("a", "ws"), 5)
    counts.start_at_zero(metrics.STREAMS_OPENED, ("a", "b"), ("ws", "sse"))
    counts.start_at_zero(metrics.LOOP_LAG)
    counts.start_at_zero(metrics.CAPTURE_BYTES)
    assert dict(counts.samples(metrics.STREAMS_OPENED)) == {
        ("a", "ws"): 5,
        ("a", "sse"): 0,
        ("b", "ws"): 0,
        ("b", "sse"): 0,
    }
    assert counts.histograms[metrics.LOOP_LAG.name, ()] == ([0] * 11, [0.0])
    assert dict(counts.samples(metrics.CAPTURE_BYTES)) == {(): 0}
