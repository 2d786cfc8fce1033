"""What is written down: captures, and the conversations that outlive a connection."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.source.pieces import Query, S, board, lines, quantile, rate, row

OPERATION = "midstream_store_operation_seconds"


def stores() -> Dashboard:
    return (
        board(
            "midstream-stores",
            "midstream / capture and stores",
            "Captures of traffic, conversations in memory, and the store that keeps them.",
            routes=False,
        )
        .with_row(row("Capture"))
        .with_panel(
            lines(
                "Records written",
                "Records that went into capture files, by kind.",
                "ops",
                Query(f"sum by (kind) ({rate('midstream_capture_records_total', S)})", "{{kind}}"),
                stacked=True,
            )
        )
        .with_panel(
            lines(
                "Records not written",
                "Records that were left out, by reason. Streams are never slowed for them.",
                "ops",
                Query(
                    f"sum by (reason) ({rate('midstream_capture_dropped_total', S)})",
                    "{{reason}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Bytes written",
                "Bytes that went into capture files.",
                "Bps",
                Query(
                    f"sum by (instance) ({rate('midstream_capture_bytes_total', S)})",
                    "{{instance}}",
                ),
            )
        )
        .with_row(row("Conversations"))
        .with_panel(
            lines(
                "In memory",
                "Conversations remembered now.",
                "short",
                Query(f"sum by (instance) (midstream_conversations{{{S}}})", "{{instance}}"),
            )
        )
        .with_panel(
            lines(
                "Their size",
                "About how many bytes they take.",
                "bytes",
                Query(f"sum by (instance) (midstream_conversation_bytes{{{S}}})", "{{instance}}"),
            )
        )
        .with_panel(
            lines(
                "Forgotten",
                "Conversations forgotten to stay within bounds, the longest unused first.",
                "ops",
                Query(
                    f"sum by (instance) ({rate('midstream_conversation_evictions_total', S)})",
                    "{{instance}}",
                ),
            )
        )
        .with_row(row("Store"))
        .with_panel(
            lines(
                "Operations",
                "Loads and saves of conversations.",
                "ops",
                Query(f"sum by (op) ({rate(OPERATION + '_count', S)})", "{{op}}"),
            )
        )
        .with_panel(
            lines(
                "Time of an operation",
                "How long the store takes; an exchange waits for its load, nothing for a save.",
                "s",
                Query(quantile(0.5, OPERATION, "op", S), "{{op}} p50"),
                Query(quantile(0.99, OPERATION, "op", S), "{{op}} p99"),
            )
        )
        .with_panel(
            lines(
                "Failures",
                "Operations that failed; midstream runs on with what it has in memory. `size` is a "
                "conversation too large to be stored.",
                "ops",
                Query(f"sum by (op) ({rate('midstream_store_errors_total', S)})", "{{op}}"),
            )
        )
    )
