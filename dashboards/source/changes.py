"""Tables of what changed and what fires, and a number and a link, for several dashboards."""

from __future__ import annotations

from grafana_foundation_sdk.builders import stat, table

from dashboards.source.blocks import number, of, rows
from dashboards.source.choices import (
    BURNT,
    CHANGE,
    NONE,
    OBJECTIVES,
    OF_CLUSTER,
    OF_HOST,
    OF_SERVICE,
    OPERATOR,
    SELECTED,
)

_DEVIATIONS = 1.96
"""Of a normal distribution, to each side of an interval that has the truth 95 times in 100."""


BUT_SERVICE = tuple(one for one in SELECTED if one != "service")
"""What the link of a row keeps, whose service is that of the row."""


def operator_of_row(*kept: str) -> tuple[str, str, str]:
    """The link of a table's operators; keeps more variables besides."""
    url = of(
        OPERATOR,
        *BUT_SERVICE,
        *kept,
        service="${__data.fields.service_name}",
        operator="${__data.fields.op}",
    )
    return "op", "Operator", url


def silent_agents(width: int) -> stat.Panel:
    return number(
        "Agents that do not answer",
        "Hosts whose agent Prometheus cannot scrape.",
        "short",
        f'count(up{{job="opscope", {OF_HOST}}} == 0) or vector(0)',
        NONE,
        width=width,
    )


def regressions(title: str, since: str, ratio: str, where: str = OF_SERVICE) -> table.Panel:
    """Operators whose calls surely take longer: the rule `ratio`, which has a rule of its error."""
    base, _, window = ratio.rpartition(":")
    value, error = f"{ratio}{{{where}}}", f"{base}_error:{window}{{{where}}}"
    is_sure = f"and {value} - {_DEVIATIONS} * {error} > 1"
    columns = ["service_name", "op", "phase", "model_id"]
    if "version" in ratio:
        columns.insert(1, "version")
    return rows(
        title,
        f"Duration of a call relative to {since}, on the median host, with the interval that has"
        " the truth 95 times in 100. Lists only operators whose whole interval is above 1, on five"
        " hosts or more; communication is left out.",
        "short",
        f"topk(20, {value} {is_sure})",
        columns,
        "times as long",
        width=24,
        height=6,
        decimals=2,
        nothing="No operator is surely slower.",
        wide=("op", 250),
        others=(
            (f"{value} - {_DEVIATIONS} * {error} {is_sure}", "at least"),
            (f"{value} + {_DEVIATIONS} * {error} {is_sure}", "at most"),
        ),
        steps=CHANGE,
        links=(operator_of_row(),),
    )


def firing(title: str) -> table.Panel:
    return rows(
        title,
        "Alerts of Opscope that fire, with their labels. RUNBOOK.md has a section for each.",
        "short",
        "topk(50, count by (alertname, severity, service_name, instance, op)"
        f' (ALERTS{{alertname=~"Opscope.+", alertstate="firing", {OF_CLUSTER}}}))',
        ("alertname", "severity", "service_name", "instance", "op"),
        "alerts",
        width=15,
        height=7,
        decimals=0,
        nothing="No alert fires.",
        wide=("alertname", 235),
    )


def objectives(title: str) -> table.Panel:
    """Each objective over the last week, and the share of its error budget that is gone."""

    def each(formula: str) -> str:
        made = []
        for objective, target, share in OBJECTIVES:
            week = f"avg(avg_over_time({share}[7d]))"
            value = formula.format(share=week, rest=f"{1 - target:.4g}")
            name = f"{objective} ({100 * target:g} %)"
            made.append(f'label_replace({value}, "objective", "{name}", "", "")')
        return " or ".join(made)

    return rows(
        title,
        "Shares of the last seven days, and how much of what each objective allows to fail (its"
        " budget of errors) is used up. Agents that push are not asked whether they answer.",
        "percentunit",
        each("(1 - {share}) / {rest}"),
        ("objective",),
        "used up",
        others=((each("{share}"), "reached"),),
        width=9,
        height=7,
        decimals=1,
        steps=BURNT,
        wide=("objective", 245),
    )
