"""How the processes do: event loop, CPU, memory, files, connections."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.source.pieces import Query, S, board, lines, quantile, rate, row, rows_of


def runtime() -> Dashboard:
    return (
        board(
            "midstream-runtime",
            "midstream / runtime",
            "The processes of midstream: event loop, CPU, memory, files and connections.",
            routes=False,
        )
        .with_row(row("Event loop and CPU"))
        .with_panel(
            lines(
                "Event loop lag",
                "How late the event loop runs its timers: how long a frame may have to wait.",
                "s",
                Query(
                    quantile(0.5, "midstream_event_loop_lag_seconds", "instance", S),
                    "{{instance}} p50",
                ),
                Query(
                    quantile(0.99, "midstream_event_loop_lag_seconds", "instance", S),
                    "{{instance}} p99",
                ),
            )
        )
        .with_panel(
            lines(
                "CPU",
                "Processor time used; 1 is one core.",
                "short",
                Query(
                    f"sum by (instance) ({rate('process_cpu_seconds_total', S)})", "{{instance}}"
                ),
            )
        )
        .with_row(row("Memory and files"))
        .with_panel(
            lines(
                "Memory",
                "Resident memory of the process.",
                "bytes",
                Query(f"sum by (instance) (process_resident_memory_bytes{{{S}}})", "{{instance}}"),
            )
        )
        .with_panel(
            lines(
                "Open files",
                "Open files and sockets, as a share of what the process may open.",
                "percentunit",
                Query(f"process_open_fds{{{S}}} / process_max_fds{{{S}}}", "{{instance}}"),
                top=1,
            )
        )
        .with_row(row("Connections and life"))
        .with_panel(
            lines(
                "Connections",
                "Client connections, as a share of `limits.max_connections`.",
                "percentunit",
                Query(
                    f"midstream_connections{{{S}}} / midstream_connection_limit{{{S}}}",
                    "{{instance}}",
                ),
                top=1,
            )
        )
        .with_panel(
            lines(
                "Up for",
                "Time since the process started.",
                "s",
                Query(f"time() - process_start_time_seconds{{{S}}}", "{{instance}}"),
            )
        )
        .with_panel(
            rows_of(
                "Draining",
                "1 while a process ends its streams before it exits.",
                "short",
                Query(f"sum by (instance) (midstream_draining{{{S}}})", "{{instance}}"),
            )
        )
        .with_panel(
            lines(
                "Reloads of the configuration",
                "Reloads that were taken over, and those that were refused: then the old one "
                "runs on.",
                "ops",
                Query(
                    f"sum by (result) ({rate('midstream_config_reloads_total', S)})", "{{result}}"
                ),
            )
        )
        .with_panel(
            rows_of(
                "Last reload of the configuration",
                "1 where the last reload was taken over, 0 where the old configuration runs on.",
                "short",
                Query(
                    f"min by (instance) (midstream_config_last_reload_successful{{{S}}})",
                    "{{instance}}",
                ),
            )
        )
    )
