"""The metric table, and the counts that the hot path adds to.

One table is the source of everything that names a metric: `/metrics`, the README table and the
checks of the dashboards. Counting is an addition in a dictionary; an adapter reads the dictionary
when it is scraped. Every label value comes from a closed set, and every known label set starts
at 0.
"""

from bisect import bisect_left
from collections.abc import Iterator
from enum import StrEnum
from itertools import product

import msgspec


class Type(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(msgspec.Struct, frozen=True):
    """One metric: `labels` in the order of their values; `buckets` in the metric's unit."""

    name: str
    type: Type
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _counter(name: str, help_: str, *labels: str) -> Metric:
    return Metric(f"midstream_{name}_total", Type.COUNTER, help_, labels)


def _gauge(name: str, help_: str, *labels: str) -> Metric:
    return Metric(f"midstream_{name}", Type.GAUGE, help_, labels)


def _histogram(name: str, help_: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(f"midstream_{name}_seconds", Type.HISTOGRAM, help_, labels, buckets)


REQUESTS = _counter(
    "requests", "Requests answered; an upgrade counts as 1xx.", "route", "transport", "code_class"
)
STREAMS_OPENED = _counter(
    "streams_opened", "WebSockets and event streams opened.", "route", "transport"
)
STREAMS_CLOSED = _counter(
    "streams_closed", "WebSockets and event streams closed.", "route", "transport", "outcome"
)
STREAMS_ACTIVE = _gauge(
    "streams_active", "WebSockets and event streams open now.", "route", "transport"
)
FRAMES = _counter("frames", "Frames received.", "route", "transport", "side")
FRAME_BYTES = _counter(
    "frame_bytes", "Bytes of the frames received, after inflating.", "route", "transport", "side"
)
REPAIRS = _counter(
    "repairs", "Frames changed, dropped or inserted for.", "route", "addon", "rule", "mode"
)
REMOVED_BYTES = _counter("repair_removed_bytes", "Bytes that repairs took out.", "route", "addon")
SKIPPED = _counter("repair_skipped", "Times an addon declined to act.", "addon", "reason")
ERRORS = _counter("repair_errors", "Times an addon failed; its frames passed.", "addon")
RECONNECTS = _counter("reconnects", "Reconnects into a running stream.", "route", "result")
HISTORY_PAIRS = _counter("history_pairs", "Pairs of history items compared.", "route", "state")
HISTORY_PREFIX = _counter(
    "history_prefix_items",
    "Items of a conversation's last request, and those of them that lead the next one unchanged.",
    "route",
    "state",
)
ADDED_LATENCY = _histogram(
    "added_latency",
    "Time between a frame's last byte and what it became being handed on.",
    (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25),
    "side",
)
FIRST_EVENT = _histogram(
    "time_to_first_event",
    "Time from the request to the first frame of the server.",
    (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
    "route",
    "transport",
)
STREAM_DURATION = _histogram(
    "stream_duration",
    "Life of a WebSocket or event stream.",
    (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0),
    "route",
    "transport",
)
STALLS = _counter("stream_stalls", "Times a running answer fell silent.", "route")
STORE_SECONDS = _histogram(
    "store_operation",
    "Time of one store operation.",
    (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
    "op",
)
STORE_ERRORS = _counter("store_errors", "Store operations that failed.", "op")
CAPTURE_RECORDS = _counter("capture_records", "Capture records written.", "kind")
CAPTURE_BYTES = _counter("capture_bytes", "Capture bytes written.")
CAPTURE_DROPPED = _counter("capture_dropped", "Capture records not written.", "reason")
REJECTED = _counter("rejected", "Requests, messages or connections refused.", "reason")
UPSTREAM_ERRORS = _counter("upstream_errors", "Times the upstream failed.", "route", "reason")
LOOP_LAG = _histogram(
    "event_loop_lag",
    "How late the event loop runs its timers.",
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
)
CONNECTIONS = _gauge("connections", "Client connections open now.")
CONNECTION_LIMIT = _gauge("connection_limit", "Client connections that may be open at once.")
RELOADS = _counter("config_reloads", "Reloads of the configuration.", "result")
RELOADED = _gauge(
    "config_last_reload_successful", "1, or 0 where the last reload kept the old configuration."
)
DRAINING = _gauge("draining", "1 while the process ends its streams before it exits.")
CONVERSATIONS = _gauge("conversations", "Conversations remembered now.")
CONVERSATION_BYTES = _gauge("conversation_bytes", "Bytes of the conversations remembered now.")
EVICTIONS = _counter("conversation_evictions", "Conversations forgotten to stay within bounds.")
BUILD_INFO = _gauge("build_info", "1, with the version.", "version", "python")

TABLE: tuple[Metric, ...] = tuple(
    sorted(
        (value for value in list(globals().values()) if isinstance(value, Metric)),
        key=lambda metric: metric.name,
    )
)

OUTCOMES = ("completed", "client_gone", "upstream_error", "proxy_error", "drained", "limit")
CODE_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
REJECTIONS = (
    "bad_host", "bad_message", "bad_request", "bad_target", "bad_upgrade", "connections",
    "draining", "header_timeout", "message_too_large", "no_route", "origin",
)  # fmt: skip
UPSTREAM_REASONS = ("connect", "timeout", "broken")
RECONNECT_RESULTS = ("rebuilt", "passed", "unknown")
PAIR_STATES = ("comparable", "inverted_in", "inverted_out")
PREFIX_STATES = ("kept", "sent")
STORE_OPS = ("load", "save")
RELOAD_RESULTS = ("taken", "refused")
STORE_FAILURES = (*STORE_OPS, "size")
"""`size`: a conversation that is larger than what is stored of one."""
CHAIN_REASONS = ("hold_bound", "too_large", "bad_encoding")
"""Reasons that the chain and the session count for every addon, beside the addon's own."""


type Key = tuple[str, tuple[str, ...]]


class Counts:
    """Everything counted so far. Not thread-safe: one event loop adds to it."""

    __slots__ = ("histograms", "values")

    def __init__(self) -> None:
        self.values: dict[Key, float] = {}
        self.histograms: dict[Key, tuple[list[int], list[float]]] = {}

    def key(self, metric: Metric, labels: tuple[str, ...] = ()) -> Key:
        """Return the place of a series in `values`, where a hot path adds; it starts at 0."""
        key = (metric.name, labels)
        self.values.setdefault(key, 0)
        return key

    def add(self, metric: Metric, labels: tuple[str, ...] = (), amount: float = 1) -> None:
        """Add to a counter or a gauge."""
        key = (metric.name, labels)
        self.values[key] = self.values.get(key, 0) + amount

    def set(self, metric: Metric, labels: tuple[str, ...], value: float) -> None:
        """Set a gauge."""
        self.values[metric.name, labels] = value

    def observe(self, metric: Metric, labels: tuple[str, ...], value: float) -> None:
        """Count a value in its bucket of a histogram."""
        counts, total = self._histogram(metric, labels)
        counts[bisect_left(metric.buckets, value)] += 1
        total[0] += value

    def get(self, metric: Metric, labels: tuple[str, ...] = ()) -> float:
        return self.values.get((metric.name, labels), 0)

    def start_at_zero(self, metric: Metric, *label_values: tuple[str, ...]) -> None:
        """Create every combination of the label values given, one tuple of them for each label."""
        for labels in product(*label_values):
            if metric.type is Type.HISTOGRAM:
                self._histogram(metric, labels)
            else:
                self.values.setdefault((metric.name, labels), 0)

    def samples(self, metric: Metric) -> Iterator[tuple[tuple[str, ...], float]]:
        """Return the label values and value of every series of a counter or gauge."""
        return (
            (labels, value) for (name, labels), value in self.values.items() if name == metric.name
        )

    def _histogram(self, metric: Metric, labels: tuple[str, ...]) -> tuple[list[int], list[float]]:
        found = self.histograms.get((metric.name, labels))
        if found is None:
            found = ([0] * (len(metric.buckets) + 1), [0.0])
            self.histograms[metric.name, labels] = found
        return found
