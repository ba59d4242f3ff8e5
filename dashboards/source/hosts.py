"""Hosts, and stragglers among them."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import (
    NEUTRAL,
    THREADS,
    Query,
    board,
    graph,
    history,
    number,
    of,
    question,
    rows,
)
from dashboards.source.changes import operator_of_row, silent_agents
from dashboards.source.choices import (
    BUSY,
    HOSTS,
    OF_HOST,
    OF_SERVICE,
    SELECTED,
    SLOWNESS,
)
from dashboards.source.queries import name


def make() -> Dashboard:
    everywhere = f'{OF_SERVICE}, instance=~"$host"'
    where = f'{everywhere}, version=~"$version"'
    seconds = f"opscope:host_self_seconds:rate5m{{{everywhere}}}"
    slowness = f"opscope:host_slowness:15m{{{where}}}"
    stragglers = f'ALERTS{{alertname=~"Opscope(Operator)?Straggler", {everywhere}}}'
    to_host = of(HOSTS, *SELECTED, "version", host="${__data.fields.host}")
    return (
        board(
            HOSTS,
            "Opscope / Hosts and stragglers",
            "Hosts that are slower than the others.",
            *choices.where(),
            choices.version(),
            choices.host(),
        )
        .with_panel(
            question(
                "Which host slows its service down, and since when?",
                "A red row in the heat map is a slow host. A host has no colour if fewer than five"
                " hosts run its version, or if it has just changed it. Click a host to see its"
                " operators.",
            )
        )
        .with_panel(
            number(
                "Stragglers",
                "Hosts with a pending or firing alert OpscopeStraggler or"
                " OpscopeOperatorStraggler.",
                "short",
                f"count(count by (cluster, instance) ({stragglers})) or vector(0)",
                choices.ALERTS,
                width=6,
            )
        )
        .with_panel(
            number(
                "Slowest host",
                "Duration of its median operator, relative to the median host of its version.",
                "short",
                f"max({slowness})",
                SLOWNESS,
                width=6,
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Hosts compared",
                "Hosts whose slowness is known: of a version on five hosts or more.",
                "short",
                f"count(count by (cluster, instance) ({slowness}))",
                NEUTRAL,
                width=6,
            )
        )
        .with_panel(silent_agents(6))
        .with_panel(
            history(
                "Hosts over time",
                "Slowness of the forty hosts that were slowest in the time range: duration of"
                " the host's median operator, relative to the median host of the same version."
                " Green is as fast as the others, red 1.2 times as slow.",
                "short",
                Query(
                    f"max by (cluster, instance) ({slowness}) and on (cluster, instance)"
                    " topk(40, max by (cluster, instance)"
                    f" (max_over_time({slowness}[$__range] @ end())))",
                    "{{instance}}",
                ),
                SLOWNESS,
                decimals=2,
                link=(
                    "This host alone",
                    of(HOSTS, *SELECTED, "version", host="${__field.labels.instance}"),
                ),
            )
        )
        .with_panel(
            graph(
                "Slowness of hosts",
                "Duration of the host's median operator, relative to the median host of the same"
                " version: the ten slowest hosts.",
                "short",
                Query(f"topk(10, {slowness})", "{{instance}} {{model_id}}"),
                decimals=2,
                limits=((None, "transparent"), *SLOWNESS[-2:]),
            )
        )
        .with_panel(
            graph(
                "Spread between hosts",
                "Standard deviation of the slowness, from its quartiles. A straggler exceeds the"
                " median host by five of these and by 10 %, among at least five hosts.",
                "percentunit",
                Query(
                    f"opscope:slowness_spread:15m{{{OF_SERVICE}}}",
                    "{{service_name}} {{version}} {{model_id}}",
                ),
                decimals=1,
            )
        )
        .with_panel(
            rows(
                "Slowest hosts",
                "Duration of the host's median operator, relative to the median host of the same"
                " version.",
                "short",
                f"topk(50, {slowness})",
                ("instance", "service_name", "version", "model_id"),
                "times as long",
                decimals=2,
                steps=SLOWNESS,
                wide=("host", 130),
                links=(("host", "This host alone", to_host),),
            )
        )
        .with_panel(
            graph(
                "Time by host",
                f"Self time of the ten busiest hosts. {BUSY}",
                THREADS,
                Query(
                    f"topk(10, sum by (instance) ({seconds}))",
                    "{{instance}}",
                ),
            )
        )
        .with_panel(
            rows(
                "Operators that are slow on a host",
                "Duration of a call relative to the median host of the same version, if it is above"
                " 1.1.",
                "short",
                f"topk(50, opscope:host_op_slowness:15m{{{where}}})",
                ("instance", "service_name", "version", "op", "phase", "model_id"),
                "times as long",
                decimals=2,
                wide=("op", 220),
                nothing="No operator is 1.1 times as slow on a host.",
                links=(operator_of_row("version"),),
                width=24,
            )
        )
        .with_panel(
            graph(
                "Time by phase",
                f"Self time on the selected hosts. {BUSY}",
                THREADS,
                Query(
                    f"sum by (phase) ({seconds})",
                    "{{phase}}",
                ),
                stacked=True,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Processes",
                "Observed live processes: the ten hosts with the most.",
                "short",
                Query(f"topk(10, {name('opscope.processes')}{{{OF_HOST}}})", "{{instance}}"),
                width=8,
            )
        )
        .with_panel(
            graph(
                "Allocated memory",
                "Live bytes of tensor libraries: the ten hosts with the most.",
                "bytes",
                Query(
                    f"topk(10, sum by (instance) ({name('opscope.memory.live')}{{{everywhere}}}))",
                    "{{instance}}",
                ),
                width=8,
                nothing="No tensor library reports it.",
            )
        )
        .build()
    )
