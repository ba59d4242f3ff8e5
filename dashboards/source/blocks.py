"""The parts of dashboards: panels with their queries, variables, links. The file with a dashboard's
name has its contents.

Every dashboard begins with the question that it answers. Every panel with data has a unit and a
description, every single number has thresholds. Every query names its data source by the variable
`datasource`, so that a dashboard works wherever it is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statushistory,
    table,
    text,
    timeseries,
)
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphTresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.text import TextMode

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "opscope"
THREADS = "threads"
"""A unit that Grafana lacks: it labels the axis, since text after each number is cut off."""

EVENTS, EVENTS_A_MINUTE = "cps", "cpm"

_SPOKEN = {
    "alertname": "alert",
    "device_type": "device",
    "instance": "host",
    "k8s_namespace_name": "namespace",
    "model_id": "model",
    "op": "operator",
    "python_version": "Python",
    "service_name": "service",
}
"""Labels that have another name in tables."""

RULES_EACH = "1m"
"""The interval of the recording rules: there is no value to draw in between."""


Steps = Sequence[tuple[float | None, str]]
"""Thresholds: (from this value on, colour); the first value is None, for all below."""

NEUTRAL: Steps = ((None, "red"), (1e-9, "blue"))
"""A quantity that is neither good nor bad, but should not be zero."""


def up_to(warning: float, critical: float) -> Steps:
    """Green, orange from `warning` on, red from `critical` on."""
    return ((None, "green"), (warning, "orange"), (critical, "red"))


def at_least(critical: float, target: float) -> Steps:
    return ((None, "red"), (critical, "orange"), (target, "green"))


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""
    format: PromQueryFormat = PromQueryFormat.TIME_SERIES
    exemplars: bool = False
    """Whether Grafana also asks for the exemplars of the series that the query names."""


def _target(query: Query, number: int, *, instant: bool = False) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).ref_id(chr(ord("A") + number))
    made = made.legend_format(query.legend or "__auto").format(query.format).datasource(SOURCE)
    made = made.instant() if instant else made.range()
    return made.exemplar(True) if query.exemplars else made


def thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    made = [model.Threshold(value=value, color=color) for value, color in steps]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(made)


def question(asked: str, how_to_read: str) -> text.Panel:
    """The head of a dashboard: what it answers, and where to look."""
    content = f"### {asked}\n{how_to_read}"
    return (
        text.Panel().mode(TextMode.MARKDOWN).content(content).span(24).height(3).transparent(True)
    )


def _unit(unit: str) -> str:
    return "short" if unit == THREADS else unit


def graph(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    height: int = 9,
    stacked: bool = False,
    share: bool = False,
    interval: str | None = None,
    decimals: int | None = None,
    link: tuple[str, str] | None = None,
    log: bool = False,
    limits: Steps = (),
    nothing: str = "",
) -> timeseries.Panel:
    """Lines over time. `stacked`: stacked areas; `share`: stacked to 100 %. `interval`: minimum
    time between two points, RULES_EACH if all queries read rules. `decimals`: fewer than Grafana's
    default of three digits. `log`: a logarithmic axis, where the largest service leaves the others
    their shape. `limits`: dashed lines. `nothing`: what it means to have no data."""
    made = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(_unit(unit))
        .datasource(SOURCE)
        .span(width)
        .height(height)
        .line_width(1)
        .show_points(VisibilityMode.NEVER)
        .fill_opacity(30 if stacked else 0)
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.RIGHT if width > 8 else LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull"])
            .sort_by("Last *")
            .sort_desc(True)
        )
    )
    if log:
        axis = common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10)
        made = made.scale_distribution(axis)
    else:
        made = made.min(0)
    if limits:
        dashed = common.GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED)
        made = made.thresholds(thresholds(limits)).thresholds_style(dashed)
    if unit in (EVENTS, EVENTS_A_MINUTE) and not log:
        # Otherwise the axis goes up to a hundred if there are no data.
        made = made.axis_soft_max(1)
    if decimals is not None:
        made = made.decimals(decimals)
    if stacked:
        mode = StackingMode.PERCENT if share else StackingMode.NORMAL
        made = made.stacking(common.StackingConfig().mode(mode))
    if unit == THREADS:
        made = made.axis_label(THREADS)
    made = made.no_value(nothing) if nothing else made
    if link:
        made = made.data_links([drill_down(*link)])
    if all("opscope:" in query.expr and "[" not in query.expr for query in queries):
        interval = RULES_EACH
    if interval:
        made = made.interval(interval)
    for number, query in enumerate(queries):
        made = made.with_target(_target(query, number))
    return made


def number(
    title: str,
    description: str,
    unit: str,
    expr: str,
    steps: Steps,
    *,
    width: int = 4,
    decimals: int | None = None,
    link: tuple[str, str] | None = None,
) -> stat.Panel:
    """One current number, coloured by its thresholds, over its line of the whole time."""
    made = (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(_unit(unit))
        .datasource(SOURCE)
        .span(width)
        # With less, Grafana leaves out the line.
        .height(5)
        .no_value("-")
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(thresholds(steps))
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.AREA)
        .interval(RULES_EACH)
        .with_target(_target(Query(expr), 0))
    )
    if link:
        made = made.data_links([drill_down(*link)])
    return made if decimals is None else made.decimals(decimals)


def history(
    title: str,
    description: str,
    unit: str,
    query: Query,
    steps: Steps,
    *,
    height: int = 12,
    decimals: int | None = None,
    link: tuple[str, str] | None = None,
) -> statushistory.Panel:
    """A heat map of a row for each series over time, coloured by thresholds."""
    made = (
        statushistory.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .span(24)
        .height(height)
        .interval("3m")
        .max_data_points(120)
        .show_value(VisibilityMode.NEVER)
        .row_height(0.9)
        .col_width(1.0)
        .thresholds(thresholds(steps))
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .with_target(_target(query, 0))
    )
    if link:
        made = made.data_links([drill_down(*link)])
    return made if decimals is None else made.decimals(decimals)


def rows(
    title: str,
    description: str,
    unit: str,
    expr: str,
    columns: Sequence[str],
    value: str,
    *,
    width: int = 12,
    height: int = 9,
    decimals: int | None = None,
    links: Sequence[tuple[str, str, str]] = (),
    others: Sequence[tuple[str, str]] = (),
    steps: Steps = (),
    wide: tuple[str, int] | None = None,
    nothing: str = "",
) -> table.Panel:
    """A table of an instant query: a row for each series, its labels and its value.

    `links`: (column, title, URL) to drill down by. `others`: (query, name) of more values of the
    same series. `steps` colours the first value. `wide`: a column and its least width in
    pixels. `nothing`: what it means to have no row.
    """
    values = [(expr, value), *others]
    names = ["Value"] if not others else [f"Value #{chr(ord('A') + n)}" for n in range(len(values))]
    order = {name: place for place, name in enumerate([*columns, *names])}
    shown_as = dict(zip(names, (name for _, name in values), strict=True))
    made = (
        table.Panel()
        .title(title)
        .description(description)
        .unit(_unit(unit))
        .datasource(SOURCE)
        .span(width)
        .height(height)
    )
    for number, (promql, _) in enumerate(values):
        query = Query(promql, format=PromQueryFormat.TABLE)
        made = made.with_target(_target(query, number, instant=True))
    if others:
        made = made.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    made = made.with_transformation(
        model.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": dict.fromkeys(("Time", "__name__", "job"), True),
                "indexByName": order,
                "renameByName": {**shown_as, **_SPOKEN},
            },
        )
    ).sort_by([common.TableSortByFieldState().display_name(value).desc(True)])
    if decimals is not None:
        made = made.decimals(decimals)
    # Less than Grafana's 150: half a page has no room for four such columns.
    every = [model.DynamicConfigValue("custom.minWidth", 80)]
    if nothing:
        made = made.no_value(nothing)
        every.append(model.DynamicConfigValue("noValue", ""))  # an empty cell stays empty
    made = made.override_by_regexp(".*", every)
    least_widths = [("instance", 110)] if "instance" in columns else []
    least_widths += [(title, 8 * len(title) + 16) for _, title in values if len(title) > 8]
    for column, pixels in [*least_widths, *([wide] if wide else [])]:
        least = model.DynamicConfigValue("custom.minWidth", pixels)
        made = made.override_by_name(_SPOKEN.get(column, column), [least])
    if steps:
        made = made.override_by_name(value, _coloured(steps))
    for column, name, url in links:
        shown = {"title": name, "url": url}
        link = model.DynamicConfigValue("links", [shown])
        made = made.override_by_name(_SPOKEN.get(column, column), [link])
    return made


def _coloured(steps: Steps) -> list[model.DynamicConfigValue]:
    made = thresholds(steps).build()
    shown = {
        "mode": made.mode,
        "steps": [{"value": one.value, "color": one.color} for one in made.steps],
    }
    return [
        model.DynamicConfigValue("thresholds", shown),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
    ]


def durations(
    title: str, description: str, native: str, classic: str, *exemplars: str
) -> heatmap.Panel:
    """A heat map of native histograms, or else of classic ones, under the exemplars of these
    queries."""
    made = (
        heatmap.Panel()
        .title(title)
        .description(description)
        .unit("s")
        .datasource(SOURCE)
        .span(24)
        .height(9)
        .interval(RULES_EACH)
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges"))
        .show_legend()
        .with_target(_target(Query(native, "{{le}}", PromQueryFormat.HEATMAP), 0))
        .with_target(_target(Query(classic, "{{le}}", PromQueryFormat.HEATMAP), 1))
        .exemplars_color(color="rgba(31, 96, 196, 0.8)")
    )
    for number, promql in enumerate(exemplars, 2):
        query = Query(promql, "exemplars", PromQueryFormat.HEATMAP, exemplars=True)
        made = made.with_target(_target(query, number))
    return made


def drill_down(title: str, url: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).url(url)


def of(uid: str, *kept: str, **variables: str) -> str:
    """The URL of a dashboard for the same time range; keeps some variables and sets others."""
    chosen = "".join(f"&${{{name}:queryparam}}" for name in kept)
    chosen += "".join(f"&var-{name}={value}" for name, value in variables.items())
    return f"/d/{uid}?${{__url_time_range}}&var-datasource=${{datasource}}{chosen}"


def choice(
    name: str,
    label: str,
    description: str,
    query: str,
    *,
    several: bool = True,
    all_listed: bool = False,
) -> dashboard.QueryVariable:
    """A variable over the values of a label. If several may be selected, the default is all,
    including series without the label; with `all_listed`, all the values found, so that the
    selection of other variables counts."""
    made = (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(SOURCE)
        .query({"query": query, "refId": name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(several)
        .include_all(several)
    )
    if several:
        everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
        made = made.current(everything) if all_listed else made.all_value(".*").current(everything)
    return made


def one_of(
    name: str, label: str, description: str, values: str, first: str
) -> dashboard.CustomVariable:
    chosen = model.VariableOption(selected=True, text=first, value=first)
    made = dashboard.CustomVariable(name).label(label).description(description)
    return made.values(values).current(chosen)


def board(
    uid: str, title: str, description: str, *variables: dashboard.QueryVariable
) -> dashboard.Dashboard:
    """An empty dashboard with a data source variable, these others, and links to the other
    dashboards."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time("now-3h", "now")
        .refresh("1m")
        .readonly()
        .link(
            dashboard.DashboardLink("Opscope")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(
            dashboard.DatasourceVariable("datasource")
            .label("Data source")
            .description("A Prometheus, or another data source with PromQL.")
            .type("prometheus")
        )
    )
    for variable in variables:
        made = made.with_variable(variable)
    return made
