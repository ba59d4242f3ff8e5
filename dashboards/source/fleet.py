"""Fleet overview: where the time of all hosts goes. Its sums come from the recording rules, so that
it opens as fast for 10,000 hosts as for ten."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import THREADS, Query, board, graph, number, of, rows
from dashboards.source.choices import BUSY, FLEET, MODEL, OF_SERVICE, OPERATOR


def make() -> Dashboard:
    # Each panel takes the smallest sum that tells it.
    seconds = f"opscope:op_self_seconds:rate5m{{{OF_SERVICE}}}"
    of_models = f"opscope:model_self_seconds:rate5m{{{OF_SERVICE}}}"
    calls = f"opscope:framework_calls:rate5m{{{OF_SERVICE}}}"
    to_operator = of(OPERATOR, "service", operator="${__field.labels.op}")
    to_model = of(MODEL, service="${__field.labels.service}")
    return (
        board(FLEET, "Opscope / Fleet overview", "Where the time of all hosts goes.")
        .with_variable(choices.service())
        .with_panel(
            number(
                "Hosts",
                "Hosts whose agent reports.",
                "short",
                "sum(opscope:hosts:count)",
            )
        )
        .with_panel(
            number(
                "Processes",
                "Live processes that are observed.",
                "short",
                "sum(opscope:processes:sum)",
            )
        )
        .with_panel(number("Calls", "Operator calls a second.", "cps", f"sum({calls})"))
        .with_panel(
            number(
                "Busy threads",
                f"Threads that are within an operator. {BUSY}",
                THREADS,
                f"sum({of_models})",
            )
        )
        .with_panel(
            number(
                "Overhead",
                "Share of CPU time that recording takes: of the process where it is worst.",
                "percentunit",
                f"max(opscope:service_overhead_ratio:max{{{OF_SERVICE}}})",
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Stragglers",
                "Hosts that OpscopeStraggler names, or is about to.",
                "short",
                f'count(count by (instance) (ALERTS{{alertname="OpscopeStraggler", {OF_SERVICE}}}))'
                " or vector(0)",
            )
        )
        .with_panel(
            graph(
                "Time by operator",
                f"The ten operators that take most, without those they call. {BUSY}",
                THREADS,
                Query(f"topk(10, sum by (op) ({seconds}))", "{{op}}"),
                stacked=True,
                link=("Operator", to_operator),
            )
        )
        .with_panel(
            graph(
                "Time by service",
                f"The ten services that take most. {BUSY}",
                THREADS,
                Query(f"topk(10, sum by (service) ({of_models}))", "{{service}}"),
                stacked=True,
                link=("Models of the service", to_model),
            )
        )
        .with_panel(
            graph(
                "Time by framework",
                f"Whose operators they are. {BUSY}",
                THREADS,
                Query(
                    f"sum by (framework) (opscope:framework_self_seconds:rate5m{{{OF_SERVICE}}})",
                    "{{framework}}",
                ),
                stacked=True,
            )
        )
        .with_panel(
            graph(
                "Time by phase",
                f"What the operators ran for. {BUSY}",
                THREADS,
                Query(f"sum by (phase) ({of_models})", "{{phase}}"),
                stacked=True,
            )
        )
        .with_panel(
            graph(
                "Calls by framework",
                "Operator calls a second.",
                "cps",
                Query(f"sum by (framework) ({calls})", "{{framework}}"),
            )
        )
        .with_panel(
            graph(
                "Hosts and processes",
                "Agents that report, and live processes that are observed.",
                "short",
                Query("sum(opscope:hosts:count)", "hosts"),
                Query("sum(opscope:processes:sum)", "processes"),
            )
        )
        .with_panel(
            rows(
                "Operators",
                f"The 50 that take most time, as of now. {BUSY}",
                THREADS,
                f"topk(50, sum by (service, op, framework) ({seconds}))",
                ("service", "op", "framework"),
                "threads",
                width=24,
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
                    ("service", "Models", of(MODEL, service="${__data.fields.service}")),
                ),
            )
        )
        .build()
    )
