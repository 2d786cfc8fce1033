"""Panels, rows and variables as all dashboards have them."""

from collections.abc import Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    VariableHide,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

S = 'job=~"$job",instance=~"$instance"'
"""What every query selects by."""
R = f'{S},route=~"$route"'
"""The same, for a metric that has a route."""
RATE = "$__rate_interval"
WIDTH = 24
HEIGHT = 8

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")


class Query(NamedTuple):
    """A PromQL expression, and how its series are called."""

    expr: str
    legend: str


def increase(metric: str, selector: str = R) -> str:
    """Return how much a counter grew over the time shown."""
    return f"increase({metric}{{{selector}}}[$__range])"


def rate(metric: str, selector: str = R) -> str:
    """Return how fast a counter grows."""
    return f"rate({metric}{{{selector}}}[{RATE}])"


def quantile(share: float, metric: str, by: str, selector: str = R) -> str:
    """Return a quantile of a histogram by labels."""
    labels = ", ".join(filter(None, ["le", by]))
    return f"histogram_quantile({share}, sum by ({labels}) ({rate(metric + '_bucket', selector)}))"


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    span: int = WIDTH // 2,
    stacked: bool = False,
    top: float | None = None,
) -> timeseries.Panel:
    """Return a graph of one or more queries."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .span(span)
        .height(HEIGHT)
        .line_width(1)
        .fill_opacity(30 if stacked else 8)
        .show_points(looks.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(looks.LegendDisplayMode.TABLE)
            .placement(looks.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI))
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL))
    if top is not None:
        panel = panel.max(top)
    return _with(panel, queries)


def figure(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    bounds: Sequence[tuple[float | None, str]] = ((None, "text"),),
    span: int = 4,
) -> stat.Panel:
    """Return one number; `bounds` are the values from which it has a colour, ascending."""
    steps = [Threshold(value=value, color=color) for value, color in bounds]
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(span)
        .height(4)
        .graph_mode(looks.BigValueGraphMode.AREA)
        .color_scheme(dashboard.FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    )
    return _with(panel, (query,))


def rows_of(
    title: str, description: str, unit: str, query: Query, *, span: int = WIDTH // 2
) -> table.Panel:
    """Return a table with a row for each series as it stands at the end of the time shown."""
    return (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(span)
        .height(HEIGHT)
        .with_target(
            prometheus.Dataquery()
            .datasource(SOURCE)
            .expr(query.expr)
            .legend_format(query.legend)
            .format(PromQueryFormat.TABLE)
            .instant()
            .ref_id("A")
        )
    )


def board(uid: str, title: str, description: str, *, routes: bool) -> dashboard.Dashboard:
    """Return an empty dashboard with its variables; `routes` tells whether it can select routes."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["midstream"])
        .readonly()
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("datasource").type("prometheus")
        )
        .with_variable(_choice("job", "label_values(midstream_build_info, job)"))
        .with_variable(
            _choice("instance", 'label_values(midstream_build_info{job=~"$job"}, instance)')
        )
        .annotation(
            dashboard.AnnotationQuery()
            .name("starts")
            .datasource(SOURCE)
            .enable(True)
            .icon_color("blue")
            .expr(f"changes(process_start_time_seconds{{{S}}}[$__interval]) > 0")
        )
        .link(
            dashboard.DashboardLink("midstream")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["midstream"])
            .as_dropdown(True)
            .keep_time(True)
            .include_vars(True)
        )
    )
    if routes:
        query = f"label_values(midstream_requests_total{{{S}}}, route)"
        made = made.with_variable(_choice("route", query))
    return made


def row(title: str) -> dashboard.Row:
    return dashboard.Row(title)


def _choice(name: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(name)
        .hide(VariableHide.DONT_HIDE)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".+")
    )


def _with[P: (timeseries.Panel, stat.Panel)](panel: P, queries: Sequence[Query]) -> P:
    for number, query in enumerate(queries):
        panel = panel.with_target(
            prometheus.Dataquery()
            .datasource(SOURCE)
            .expr(query.expr)
            .legend_format(query.legend)
            .ref_id(chr(ord("A") + number))
        )
    return panel
