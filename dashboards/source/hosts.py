"""Hosts, and stragglers among them."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import THREADS, Query, board, graph, of, rows
from dashboards.source.choices import BUSY, HOSTS, OF_HOST, OF_SERVICE, OPERATOR
from dashboards.source.queries import name


def make() -> Dashboard:
    where = f"{OF_SERVICE}, {OF_HOST}"
    to_host = of(HOSTS, "service", host="${__data.fields.host}")
    return (
        board(HOSTS, "Opscope / Hosts and stragglers", "Hosts that are slower than the others.")
        .with_variable(choices.service())
        .with_variable(choices.host())
        .with_panel(
            graph(
                "Slowness of hosts",
                "Duration of the host's median operator, relative to the median host of the same"
                " version: the ten slowest hosts.",
                "short",
                Query(
                    f"topk(10, opscope:host_slowness:15m{{{where}}})", "{{instance}} {{model_id}}"
                ),
                decimals=2,
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
                f"topk(50, opscope:host_slowness:15m{{{where}}})",
                ("instance", "service_name", "version", "model_id"),
                "times as long",
                decimals=2,
                links=(("host", "This host alone", to_host),),
            )
        )
        .with_panel(
            graph(
                "Time by host",
                f"Self time of the ten busiest hosts. {BUSY}",
                THREADS,
                Query(
                    f"topk(10, sum by (instance) (opscope:host_self_seconds:rate5m{{{where}}}))",
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
                links=(
                    (
                        "op",
                        "Operator",
                        of(
                            OPERATOR,
                            service="${__data.fields.service_name}",
                            operator="${__data.fields.op}",
                        ),
                    ),
                ),
                width=24,
            )
        )
        .with_panel(
            graph(
                "Time by phase",
                f"Self time on the selected hosts. {BUSY}",
                THREADS,
                Query(f"sum by (phase) (opscope:host_self_seconds:rate5m{{{where}}})", "{{phase}}"),
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
                    f"topk(10, sum by (instance) ({name('opscope.memory.live')}{{{where}}}))",
                    "{{instance}}",
                ),
                width=8,
            )
        )
        .build()
    )
