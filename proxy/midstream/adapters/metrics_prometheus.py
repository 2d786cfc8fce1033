"""Shows the counts to Prometheus.

A collector reads the counts when it is scraped; nothing is registered for each series and nothing
is paid on the hot path. Histograms are cumulative there and plain in the counts. No `_created`
series: a reset is seen in the counter itself.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from midstream.core import metrics
from midstream.core.metrics import Counts, Type


class Exposition:
    """Renders the counts with what Prometheus wants to know of every process."""

    def __init__(self, counts: Counts) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(CountsCollector(counts))
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the body and its content type: OpenMetrics or text, by the `Accept` header."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class CountsCollector(Collector):
    """Turns the counts into metric families, in the order of the table."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        series = _by_metric(self._counts)
        for metric in metrics.TABLE:
            if metric.type is Type.HISTOGRAM:
                yield self._histogram(metric)
            else:
                yield _family(metric, series.get(metric.name, []))

    def _histogram(self, metric: metrics.Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        bounds = [_bound(bucket) for bucket in metric.buckets] + ["+Inf"]
        for (name, labels), (counts, total) in self._counts.histograms.items():
            if name == metric.name:
                buckets = list(zip(bounds, accumulate(counts), strict=True))
                family.add_metric(labels, buckets, sum_value=total[0])
        return family


def _by_metric(counts: Counts) -> dict[str, list[tuple[tuple[str, ...], float]]]:
    found: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for (name, labels), value in counts.values.items():
        found.setdefault(name, []).append((labels, value))
    return found


def _family(
    metric: metrics.Metric, series: list[tuple[tuple[str, ...], float]]
) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.type is Type.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in series:
        family.add_metric(labels, value)
    return family


def _bound(value: float) -> str:
    """Write a bucket bound as Prometheus does, without rounding."""
    return repr(float(value))
