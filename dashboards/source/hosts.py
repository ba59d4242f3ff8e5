"""Hosts, and those that are slower than the others."""

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
        board(HOSTS, "Opscope / Hosts and stragglers", "Which host is slower than the others.")
        .with_variable(choices.service())
        .with_variable(choices.host())
        .with_panel(
            graph(
                "Slowness of hosts",
                "How many times as long the median operator takes as on the median host of the same"
                " version: the ten slowest.",
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
                "Standard deviation of the slowness, from its quartiles: a straggler is one of at"
                " least five hosts that is more than five of these, and 10 %, off.",
                "percentunit",
                Query(
                    f"opscope:slowness_spread:15m{{{OF_SERVICE}}}",
                    "{{service}} {{version}} {{model_id}}",
                ),
                decimals=1,
            )
        )
        .with_panel(
            rows(
                "Slowest hosts",
                "How many times as long their median operator takes as on the median host of the"
                " same version.",
                "short",
                f"topk(50, opscope:host_slowness:15m{{{where}}})",
                ("instance", "service", "version", "model_id"),
                "times as long",
                decimals=2,
                links=(("host", "This host alone", to_host),),
            )
        )
        .with_panel(
            graph(
                "Time by host",
                f"The ten busiest. {BUSY}",
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
                "How many times as long a call takes as on the median host of the same version,"
                " where that is more than 1.1.",
                "short",
                f"topk(50, opscope:host_op_slowness:15m{{{where}}})",
                ("instance", "service", "version", "op", "phase", "model_id"),
                "times as long",
                decimals=2,
                links=(
                    (
                        "op",
                        "Operator",
                        of(
                            OPERATOR,
                            service="${__data.fields.service}",
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
                f"On the chosen hosts. {BUSY}",
                THREADS,
                Query(f"sum by (phase) (opscope:host_self_seconds:rate5m{{{where}}})", "{{phase}}"),
                stacked=True,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Processes",
                "Live processes that are observed: the ten hosts with most.",
                "short",
                Query(f"topk(10, {name('opscope.processes')}{{{OF_HOST}}})", "{{instance}}"),
                width=8,
            )
        )
        .with_panel(
            graph(
                "Allocated memory",
                "Live bytes of tensor libraries: the ten hosts with most.",
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
