"""What dashboards are made of: panels with their queries, variables, links. What is on which
dashboard is in the file of its name.

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
"""A unit that Grafana has not: it stands at the axis, as text behind each number is cut off."""

EVENTS, EVENTS_A_MINUTE = "cps", "cpm"

RULES_EACH = "1m"
"""How often the recording rules say something: between two such moments nothing is to be drawn."""


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
    """Lines over time; `stacked`: areas on each other; `share`: and of 100 %. `interval`: the least
    between two points, that of rules where all is of them. `decimals`: where Grafana's three digits
    are too many."""
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
        # Else an axis up to a hundred where there is none.
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
    """One number, as of now."""
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
    # Less than Grafana's 150, of which half a page has no room for four.
    made = made.override_by_regexp(".*", [model.DynamicConfigValue("custom.minWidth", 80)])
    for column, name, url in links:
        shown = {"title": name, "url": url}
        made = made.override_by_name(column, [model.DynamicConfigValue("links", [shown])])
    return made


def durations(title: str, description: str, native: str, classic: str) -> heatmap.Panel:
    """A heat map: of the native histogram, or of the classic one where there is none."""
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
    """The URL of a dashboard at the same time range, with some variables kept and some set."""
    chosen = "".join(f"&${{{name}:queryparam}}" for name in kept)
    chosen += "".join(f"&var-{name}={value}" for name, value in variables.items())
    return f"/d/{uid}?${{__url_time_range}}&var-datasource=${{datasource}}{chosen}"


def choice(
    name: str, label: str, description: str, query: str, *, several: bool = True
) -> dashboard.QueryVariable:
    """A variable over the values of a label; of several, all at first, those without it too."""
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
    """An empty dashboard with the data source to choose and links to the others."""
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
            .description("A Prometheus, or whatever answers PromQL.")
            .type("prometheus")
        )
    )
