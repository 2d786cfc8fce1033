"""Starts every series that a set of routes can ever count at 0.

A series that appears with its first event has no rate before it, and an alert cannot tell "never
happened" from "not exported". An addon has one mode on a route, so only that mode is started: with
both, eight routes with all addons would not stay under 1,500 series.
"""

from collections.abc import Iterable, Sequence

from midstream.core import metrics
from midstream.core.addon import AnyAddon, Mode
from midstream.core.exchange import Transport
from midstream.core.frames import Side
from midstream.core.metrics import Counts
from midstream.core.ports import RecordKind

TRANSPORTS = tuple(transport.value for transport in Transport)
STREAMS = (Transport.WS.value, Transport.SSE.value)
SIDES = tuple(side.value for side in Side)

type RouteAddons = tuple[str, Sequence[tuple[AnyAddon, Mode]]]


def start_known_series(counts: Counts, routes: Iterable[RouteAddons]) -> None:
    """Start what these routes, each with its name and addons, and their process can count."""
    _start_process(counts)
    for name, addons in routes:
        _start_route(counts, (name,))
        for addon, mode in addons:
            if mode is not Mode.OFF:
                _start_addon(counts, (name,), addon, mode)


def _start_process(counts: Counts) -> None:
    for metric in (
        metrics.CAPTURE_BYTES,
        metrics.CONNECTIONS,
        metrics.CONNECTION_LIMIT,
        metrics.CONVERSATIONS,
        metrics.CONVERSATION_BYTES,
        metrics.DRAINING,
        metrics.EVICTIONS,
        metrics.LOOP_LAG,
    ):
        counts.start_at_zero(metric)
    counts.start_at_zero(metrics.ADDED_LATENCY, SIDES)
    counts.start_at_zero(metrics.CAPTURE_RECORDS, tuple(kind.value for kind in RecordKind))
    counts.start_at_zero(metrics.REJECTED, metrics.REJECTIONS)
    counts.start_at_zero(metrics.RELOADS, metrics.RELOAD_RESULTS)
    counts.start_at_zero(metrics.RELOADED)
    counts.start_at_zero(metrics.STORE_SECONDS, metrics.STORE_OPS)
    counts.start_at_zero(metrics.STORE_ERRORS, metrics.STORE_FAILURES)


def _start_route(counts: Counts, route: tuple[str]) -> None:
    counts.start_at_zero(metrics.REQUESTS, route, TRANSPORTS, metrics.CODE_CLASSES)
    counts.start_at_zero(metrics.STREAMS_OPENED, route, STREAMS)
    counts.start_at_zero(metrics.STREAMS_CLOSED, route, STREAMS, metrics.OUTCOMES)
    counts.start_at_zero(metrics.STREAMS_ACTIVE, route, STREAMS)
    counts.start_at_zero(metrics.STREAM_DURATION, route, STREAMS)
    counts.start_at_zero(metrics.FIRST_EVENT, route, STREAMS)
    counts.start_at_zero(metrics.FRAMES, route, TRANSPORTS, SIDES)
    counts.start_at_zero(metrics.FRAME_BYTES, route, TRANSPORTS, SIDES)
    counts.start_at_zero(metrics.RECONNECTS, route, metrics.RECONNECT_RESULTS)
    counts.start_at_zero(metrics.HISTORY_PAIRS, route, metrics.PAIR_STATES)
    counts.start_at_zero(metrics.HISTORY_PREFIX, route, metrics.PREFIX_STATES)
    counts.start_at_zero(metrics.STALLS, route)
    counts.start_at_zero(metrics.UPSTREAM_ERRORS, route, metrics.UPSTREAM_REASONS)


def _start_addon(counts: Counts, route: tuple[str], addon: AnyAddon, mode: Mode) -> None:
    name = (addon.name,)
    counts.start_at_zero(metrics.REPAIRS, route, name, addon.rules, (mode.value,))
    counts.start_at_zero(metrics.REMOVED_BYTES, route, name)
    counts.start_at_zero(metrics.SKIPPED, name, (*addon.reasons, *metrics.CHAIN_REASONS))
    counts.start_at_zero(metrics.ERRORS, name)
