"""Is it well? The service level, then requests, errors and durations, then what midstream does."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.source.pieces import (
    Query,
    R,
    S,
    board,
    figure,
    lines,
    quantile,
    rate,
    row,
    rows_of,
)

GOOD = 'outcome=~"completed|client_gone|drained"'
SHARE = ((None, "red"), (0.999, "orange"), (0.9995, "green"))


def overview() -> Dashboard:
    closed = "midstream_streams_closed_total"
    latency = "midstream_added_latency_seconds"
    return (
        board(
            "midstream-overview",
            "midstream / overview",
            "Service level, requests, errors and durations of midstream, and what it mends.",
            routes=True,
        )
        .with_row(row("Service level"))
        .with_panel(
            figure(
                "Streams closed well",
                "Share of streams that ended as they should: complete, left by the client, or "
                "drained. The objective is 99.9 %.",
                "percentunit",
                Query(
                    f"sum({rate(closed, f'{R},{GOOD}')}) / (sum({rate(closed)}) > 0)", "closed well"
                ),
                bounds=SHARE,
            )
        )
        .with_panel(
            figure(
                "Frames within 5 ms",
                "Share of frames that midstream handed on within 5 ms. The objective is 99.9 %.",
                "percentunit",
                Query(
                    f"sum({rate(latency + '_bucket', f'{S},le="0.005"')})"
                    f" / (sum({rate(latency + '_count', S)}) > 0)",
                    "within 5 ms",
                ),
                bounds=SHARE,
            )
        )
        .with_panel(
            figure(
                "Repairs without a fault",
                "Share of repairs in which no addon failed; where one does, the frame passes.",
                "percentunit",
                Query(
                    f"1 - sum({rate('midstream_repair_errors_total', S)}) / "
                    f"(sum({rate('midstream_repairs_total')})"
                    f" + sum({rate('midstream_repair_errors_total', S)}) > 0)",
                    "without a fault",
                ),
                bounds=((None, "red"), (0.9999, "green")),
            )
        )
        .with_panel(
            figure(
                "Open streams",
                "WebSockets and event streams that are open now.",
                "short",
                Query(f"sum(midstream_streams_active{{{R}}})", "open"),
            )
        )
        .with_panel(
            figure(
                "Repairs",
                "Frames mended for each second.",
                "ops",
                Query(f"sum({rate('midstream_repairs_total', f'{R},mode="repair"')})", "mended"),
            )
        )
        .with_panel(
            figure(
                "Would be mended",
                "Frames that observe mode would have mended for each second: switch the addon to "
                "repair to have them mended.",
                "ops",
                Query(
                    f"sum({rate('midstream_repairs_total', f'{R},mode="observe"')}) or vector(0)",
                    "would be mended",
                ),
                bounds=((None, "green"), (0.001, "orange")),
            )
        )
        .with_row(row("Requests, errors, durations"))
        .with_panel(
            lines(
                "Requests",
                "Requests answered by class of status; an upgrade to WebSocket counts as 1xx.",
                "reqps",
                Query(
                    f"sum by (code_class) ({rate('midstream_requests_total')})", "{{code_class}}"
                ),
                stacked=True,
            )
        )
        .with_panel(
            lines(
                "Streams that ended badly",
                "Streams that the upstream or midstream broke off, or that reached a limit.",
                "ops",
                Query(
                    f"sum by (route, outcome) "
                    f"({rate(closed, f'{R},outcome=~"upstream_error|proxy_error|limit"')})",
                    "{{route}} {{outcome}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Time to the first event",
                "From the request to the first frame of the server, half and 99 % of the streams.",
                "s",
                Query(
                    quantile(0.5, "midstream_time_to_first_event_seconds", "transport"),
                    "{{transport}} p50",
                ),
                Query(
                    quantile(0.99, "midstream_time_to_first_event_seconds", "transport"),
                    "{{transport}} p99",
                ),
            )
        )
        .with_panel(
            lines(
                "Added latency",
                "What midstream adds to a frame, by the side that sent it.",
                "s",
                Query(quantile(0.5, latency, "side", S), "{{side}} p50"),
                Query(quantile(0.99, latency, "side", S), "{{side}} p99"),
            )
        )
        .with_panel(
            lines(
                "Upstream errors",
                "Requests for which the upstream was not reached, too slow, or broke off.",
                "ops",
                Query(
                    f"sum by (route, reason) ({rate('midstream_upstream_errors_total')})",
                    "{{route}} {{reason}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Refused",
                "Requests, messages and connections that midstream refused, by reason.",
                "ops",
                Query(f"sum by (reason) ({rate('midstream_rejected_total', S)})", "{{reason}}"),
            )
        )
        .with_row(row("What midstream does"))
        .with_panel(
            lines(
                "Mended, and what would be",
                "Repairs by addon: carried out (repair), and counted only (observe).",
                "ops",
                Query(
                    f"sum by (addon, mode) ({rate('midstream_repairs_total')})",
                    "{{addon}} {{mode}}",
                ),
                stacked=True,
            )
        )
        .with_panel(
            rows_of(
                "Versions",
                "The versions that run now; more than one is normal only while they are exchanged.",
                "short",
                Query(f"count by (version, python) (midstream_build_info{{{S}}})", "{{version}}"),
            )
        )
    )
