"""How streams live: opened and closed, how soon they begin, how long they last, and stalls."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.source.pieces import Query, R, S, board, lines, quantile, rate, row

FIRST = "midstream_time_to_first_event_seconds"
LIFE = "midstream_stream_duration_seconds"
LATENCY = "midstream_added_latency_seconds"


def streams() -> Dashboard:
    return (
        board(
            "midstream-streams",
            "midstream / streams",
            "WebSockets and event streams: outcomes, durations, stalls and what they carry.",
            routes=True,
        )
        .with_row(row("Open and closed"))
        .with_panel(
            lines(
                "Open",
                "Streams that are open now.",
                "short",
                Query(
                    f"sum by (route, transport) (midstream_streams_active{{{R}}})",
                    "{{route}} {{transport}}",
                ),
                stacked=True,
            )
        )
        .with_panel(
            lines(
                "Closed, by outcome",
                "How streams ended: complete, left by the client, broken by the upstream or by "
                "midstream, drained, or over a limit.",
                "ops",
                Query(
                    f"sum by (outcome) ({rate('midstream_streams_closed_total')})", "{{outcome}}"
                ),
                stacked=True,
            )
        )
        .with_panel(
            lines(
                "Opened",
                "Streams opened.",
                "ops",
                Query(
                    f"sum by (route, transport) ({rate('midstream_streams_opened_total')})",
                    "{{route}} {{transport}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Stalls",
                "Times a running answer fell silent for 30 s; comments that keep a connection "
                "alive are no answer.",
                "ops",
                Query(f"sum by (route) ({rate('midstream_stream_stalls_total')})", "{{route}}"),
            )
        )
        .with_row(row("Time"))
        .with_panel(
            lines(
                "Time to the first event",
                "From the request to the first frame of the server.",
                "s",
                Query(quantile(0.5, FIRST, "route"), "{{route}} p50"),
                Query(quantile(0.95, FIRST, "route"), "{{route}} p95"),
                Query(quantile(0.99, FIRST, "route"), "{{route}} p99"),
            )
        )
        .with_panel(
            lines(
                "Life of a stream",
                "How long streams were open, counted when they close.",
                "s",
                Query(quantile(0.5, LIFE, "transport"), "{{transport}} p50"),
                Query(quantile(0.95, LIFE, "transport"), "{{transport}} p95"),
            )
        )
        .with_panel(
            lines(
                "Added latency",
                "What midstream adds to a frame, by the side that sent it.",
                "s",
                Query(quantile(0.5, LATENCY, "side", S), "{{side}} p50"),
                Query(quantile(0.99, LATENCY, "side", S), "{{side}} p99"),
                Query(quantile(0.999, LATENCY, "side", S), "{{side}} p99.9"),
            )
        )
        .with_row(row("Content"))
        .with_panel(
            lines(
                "Frames",
                "Frames received, by transport and by the side that sent them.",
                "ops",
                Query(
                    f"sum by (transport, side) ({rate('midstream_frames_total')})",
                    "{{transport}} {{side}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Bytes",
                "Bytes of these frames, after inflating.",
                "Bps",
                Query(
                    f"sum by (transport, side) ({rate('midstream_frame_bytes_total')})",
                    "{{transport}} {{side}}",
                ),
            )
        )
    )
