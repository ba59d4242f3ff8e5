"""Fleet overview: where all hosts spend their time. It uses sums of the recording rules, so that it
opens as fast for 10,000 hosts as for ten."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import THREADS, Query, board, graph, number, of, rows
from dashboards.source.choices import BUSY, FLEET, MODEL, OF_SERVICE, OPERATOR


def make() -> Dashboard:
    # Each panel uses the smallest recorded sum that suffices.
    seconds = f"opscope:op_self_seconds:rate5m{{{OF_SERVICE}}}"
    of_models = f"opscope:model_self_seconds:rate5m{{{OF_SERVICE}}}"
    calls = f"opscope:framework_calls:rate5m{{{OF_SERVICE}}}"
    to_operator = of(OPERATOR, "service", operator="${__field.labels.op}")
    to_model = of(MODEL, service="${__field.labels.service_name}")
    return (
        board(FLEET, "Opscope / Fleet overview", "Where all hosts spend their time.")
        .with_variable(choices.service())
        .with_panel(
            number(
                "Hosts",
                "Hosts with a running agent.",
                "short",
                "sum(opscope:hosts:count)",
            )
        )
        .with_panel(
            number(
                "Processes",
                "Observed live processes.",
                "short",
                "sum(opscope:processes:sum)",
            )
        )
        .with_panel(number("Calls", "Operator calls per second.", "cps", f"sum({calls})"))
        .with_panel(
            number(
                "Busy threads",
                f"Mean number of threads inside operators. {BUSY}",
                THREADS,
                f"sum({of_models})",
            )
        )
        .with_panel(
            number(
                "Overhead",
                "Share of CPU time spent recording: the highest of all processes.",
                "percentunit",
                f"max(opscope:service_overhead_ratio:max{{{OF_SERVICE}}})",
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Stragglers",
                "Hosts with a pending or firing alert OpscopeStraggler.",
                "short",
                f'count(count by (instance) (ALERTS{{alertname="OpscopeStraggler", {OF_SERVICE}}}))'
                " or vector(0)",
            )
        )
        .with_panel(
            graph(
                "Time by operator",
                f"Self time of the ten operators with the most. {BUSY}",
                THREADS,
                Query(f"topk(10, sum by (op) ({seconds}))", "{{op}}"),
                stacked=True,
                link=("Operator", to_operator),
            )
        )
        .with_panel(
            graph(
                "Time by service",
                f"The ten services with the most operator time. {BUSY}",
                THREADS,
                Query(f"topk(10, sum by (service_name) ({of_models}))", "{{service_name}}"),
                stacked=True,
                link=("Models of the service", to_model),
            )
        )
        .with_panel(
            graph(
                "Time by framework",
                f"Self time by the operators' framework. {BUSY}",
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
                f"Self time by phase of the program's work. {BUSY}",
                THREADS,
                Query(f"sum by (phase) ({of_models})", "{{phase}}"),
                stacked=True,
            )
        )
        .with_panel(
            graph(
                "Calls by framework",
                "Operator calls per second.",
                "cps",
                Query(f"sum by (framework) ({calls})", "{{framework}}"),
            )
        )
        .with_panel(
            graph(
                "Hosts and processes",
                "Running agents and observed live processes.",
                "short",
                Query("sum(opscope:hosts:count)", "hosts"),
                Query("sum(opscope:processes:sum)", "processes"),
            )
        )
        .with_panel(
            rows(
                "Operators",
                f"The 50 operators with the most self time now. {BUSY}",
                THREADS,
                f"topk(50, sum by (service_name, op, framework) ({seconds}))",
                ("service_name", "op", "framework"),
                "threads",
                width=24,
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
                    ("service_name", "Models", of(MODEL, service="${__data.fields.service_name}")),
                ),
            )
        )
        .build()
    )
