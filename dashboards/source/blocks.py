"""The parts of dashboards: panels with their queries, variables, links. The file with a dashboard's
name has its contents.

Every panel has a unit and a description. Every query names its data source by the variable
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
    table,
    timeseries,
)
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "opscope"
THREADS = "threads"
"""A unit that Grafana lacks: it labels the axis, since text after each number is cut off."""

EVENTS, EVENTS_A_MINUTE = "cps", "cpm"

RULES_EACH = "1m"
"""The interval of the recording rules: there is no value to draw in between."""


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""
    format: PromQueryFormat = PromQueryFormat.TIME_SERIES


def _target(query: Query, number: int, *, instant: bool = False) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).ref_id(chr(ord("A") + number))
    made = made.legend_format(query.legend or "__auto").format(query.format).datasource(SOURCE)
    return made.instant() if instant else made.range()


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
) -> timeseries.Panel:
    """Lines over time. `stacked`: stacked areas; `share`: stacked to 100 %. `interval`: minimum
    time between two points, RULES_EACH if all queries read rules. `decimals`: fewer than Grafana's
    default of three digits."""
    made = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(_unit(unit))
        .datasource(SOURCE)
        .span(width)
        .height(height)
        .min(0)
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
    if unit in (EVENTS, EVENTS_A_MINUTE):
        # Otherwise the axis goes up to a hundred if there are no data.
        made = made.axis_soft_max(1)
    if decimals is not None:
        made = made.decimals(decimals)
    if stacked:
        mode = StackingMode.PERCENT if share else StackingMode.NORMAL
        made = made.stacking(common.StackingConfig().mode(mode))
    if unit == THREADS:
        made = made.axis_label(THREADS)
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
    *,
    width: int = 4,
    decimals: int | None = None,
) -> stat.Panel:
    """One current number."""
    made = (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(_unit(unit))
        .datasource(SOURCE)
        .span(width)
        .height(4)
        .no_value("-")
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(_target(Query(expr), 0, instant=True))
    )
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
) -> table.Panel:
    """A table of an instant query: a row for each series, its labels and its value.

    `links`: (column, title, URL) to drill down by.
    """
    order = {name: place for place, name in enumerate([*columns, "Value"])}
    made = (
        table.Panel()
        .title(title)
        .description(description)
        .unit(_unit(unit))
        .datasource(SOURCE)
        .span(width)
        .height(height)
        .with_target(_target(Query(expr, format=PromQueryFormat.TABLE), 0, instant=True))
        .with_transformation(
            model.DataTransformerConfig(
                id_val="organize",
                options={
                    "excludeByName": {"Time": True, "__name__": True, "job": True},
                    "indexByName": order,
                    "renameByName": {"Value": value, "instance": "host"},
                },
            )
        )
        .sort_by([common.TableSortByFieldState().display_name(value).desc(True)])
    )
    if decimals is not None:
        made = made.decimals(decimals)
    # Less than Grafana's 150: half a page has no room for four such columns.
    made = made.override_by_regexp(".*", [model.DynamicConfigValue("custom.minWidth", 80)])
    for column, name, url in links:
        shown = {"title": name, "url": url}
        made = made.override_by_name(column, [model.DynamicConfigValue("links", [shown])])
    return made


def durations(title: str, description: str, native: str, classic: str) -> heatmap.Panel:
    """A heat map of native histograms, or else of classic ones."""
    return (
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
    )


def drill_down(title: str, url: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).url(url)


def of(uid: str, *kept: str, **variables: str) -> str:
    """The URL of a dashboard for the same time range; keeps some variables and sets others."""
    chosen = "".join(f"&${{{name}:queryparam}}" for name in kept)
    chosen += "".join(f"&var-{name}={value}" for name, value in variables.items())
    return f"/d/{uid}?${{__url_time_range}}&var-datasource=${{datasource}}{chosen}"


def choice(
    name: str, label: str, description: str, query: str, *, several: bool = True
) -> dashboard.QueryVariable:
    """A variable over the values of a label. If several may be selected, the default is all,
    including series without the label."""
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
        made = made.all_value(".*").current(everything)
    return made


def one_of(
    name: str, label: str, description: str, values: str, first: str
) -> dashboard.CustomVariable:
    chosen = model.VariableOption(selected=True, text=first, value=first)
    made = dashboard.CustomVariable(name).label(label).description(description)
    return made.values(values).current(chosen)


def board(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """An empty dashboard with a data source variable and links to the other dashboards."""
    return (
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
