"""What is mended: by addon and rule, observed against repaired, declined and why."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.source.pieces import (
    Query,
    R,
    S,
    board,
    figure,
    increase,
    lines,
    rate,
    row,
    rows_of,
)

REPAIRS = "midstream_repairs_total"


def mending() -> Dashboard:
    return (
        board(
            "midstream-mending",
            "midstream / mending",
            "What midstream mends, what it would mend, and where it declines, with the reason.",
            routes=True,
        )
        .with_row(row("What would be mended"))
        .with_panel(
            figure(
                "Mended",
                "Frames mended in the time shown.",
                "short",
                Query(f"sum({increase(REPAIRS, f'{R},mode="repair"')})", "mended"),
                span=6,
            )
        )
        .with_panel(
            figure(
                "Would be mended",
                "Frames that observe mode would have mended in the time shown: each is a fault "
                "that somebody met.",
                "short",
                Query(
                    f"sum({increase(REPAIRS, f'{R},mode="observe"')}) or vector(0)",
                    "would be mended",
                ),
                bounds=((None, "green"), (1, "orange")),
                span=6,
            )
        )
        .with_panel(
            figure(
                "Bytes taken out",
                "Bytes that repairs took out in the time shown.",
                "bytes",
                Query(f"sum({increase('midstream_repair_removed_bytes_total')})", "taken out"),
                span=6,
            )
        )
        .with_panel(
            figure(
                "Faults of addons",
                "Times an addon failed in the time shown; its frames passed as they came.",
                "short",
                Query(f"sum({increase('midstream_repair_errors_total', S)})", "faults"),
                bounds=((None, "green"), (1, "red")),
                span=6,
            )
        )
        .with_row(row("Repairs"))
        .with_panel(
            lines(
                "By rule",
                "Repairs by addon and rule, those only counted in observe mode included.",
                "ops",
                Query(
                    f"sum by (addon, rule, mode) ({rate(REPAIRS)}) > 0",
                    "{{addon}} {{rule}} ({{mode}})",
                ),
                stacked=True,
            )
        )
        .with_panel(
            rows_of(
                "By rule, in the time shown",
                "How often each rule was used in the time shown, by route.",
                "short",
                Query(
                    f"sum by (route, addon, rule, mode) ({increase(REPAIRS)}) > 0",
                    "{{addon}} {{rule}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Observe against repair",
                "The same faults, by mode: what is mended, and what would be.",
                "ops",
                Query(f"sum by (mode) ({rate(REPAIRS)})", "{{mode}}"),
            )
        )
        .with_panel(
            lines(
                "Bytes taken out",
                "Bytes that repairs took out: text that would have stood twice.",
                "Bps",
                Query(
                    f"sum by (addon) ({rate('midstream_repair_removed_bytes_total')})", "{{addon}}"
                ),
            )
        )
        .with_row(row("Declined"))
        .with_panel(
            lines(
                "Declined, by reason",
                "Times an addon had nothing sure to go by and let a frame pass. Reasons are those "
                "of `midstream addons`.",
                "ops",
                Query(
                    f"sum by (addon, reason) ({rate('midstream_repair_skipped_total', S)}) > 0",
                    "{{addon}} {{reason}}",
                ),
                stacked=True,
            )
        )
        .with_panel(
            lines(
                "Faults of addons",
                "Times an addon failed; its frames passed. Anything but 0 is worth a report.",
                "ops",
                Query(f"sum by (addon) ({rate('midstream_repair_errors_total', S)})", "{{addon}}"),
            )
        )
        .with_row(row("Reconnects and histories"))
        .with_panel(
            lines(
                "Reconnects",
                "Reconnects into a running stream: made whole (rebuilt), left alone (passed), or "
                "into a stream that midstream does not know (unknown).",
                "ops",
                Query(f"sum by (result) ({rate('midstream_reconnects_total')})", "{{result}}"),
            )
        )
        .with_panel(
            lines(
                "Inverted pairs of histories",
                "Share of the comparable pairs of a text and a later call that requests have the "
                "other way round: as they came in, and as they went out.",
                "percentunit",
                Query(
                    "sum("
                    + rate("midstream_history_pairs_total", f'{R},state="inverted_in"')
                    + ") / (sum("
                    + rate("midstream_history_pairs_total", f'{R},state="comparable"')
                    + ") > 0)",
                    "in",
                ),
                Query(
                    "sum("
                    + rate("midstream_history_pairs_total", f'{R},state="inverted_out"')
                    + ") / (sum("
                    + rate("midstream_history_pairs_total", f'{R},state="comparable"')
                    + ") > 0)",
                    "out",
                ),
                top=1,
            )
        )
        .with_panel(
            lines(
                "Prompt prefix kept",
                "Share of a conversation's last request that leads the next one unchanged: what "
                "the prompt caches of providers live on.",
                "percentunit",
                Query(
                    "sum("
                    + rate("midstream_history_prefix_items_total", f'{R},state="kept"')
                    + ") / (sum("
                    + rate("midstream_history_prefix_items_total", f'{R},state="sent"')
                    + ") > 0)",
                    "kept",
                ),
                top=1,
            )
        )
    )
