"""Fleet overview: where all hosts spend their time. It uses sums of the recording rules, so that it
opens as fast for 10,000 hosts as for ten."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import (
    NEUTRAL,
    THREADS,
    Query,
    board,
    graph,
    number,
    of,
    question,
    rows,
)
from dashboards.source.changes import (
    BUT_SERVICE,
    firing,
    objectives,
    operator_of_row,
    regressions,
)
from dashboards.source.choices import (
    BUSY,
    FLEET,
    HOSTS,
    ITSELF,
    MODEL,
    OF_CLUSTER,
    OF_JOB,
    OF_SERVICE,
    OPERATOR,
    SELECTED,
)


def make() -> Dashboard:
    # Each panel uses the smallest recorded sum that suffices.
    seconds = f"opscope:op_self_seconds:rate5m{{{OF_SERVICE}}}"
    of_models = f"opscope:model_self_seconds:rate5m{{{OF_SERVICE}}}"
    calls = f"opscope:framework_calls:rate5m{{{OF_SERVICE}}}"
    steps = f"opscope:job_steps:rate5m{{{OF_JOB}}}"
    data = f'opscope:phase_share:rate5m{{phase="data", {OF_SERVICE}}}'
    to_operator = of(OPERATOR, *SELECTED, operator="${__field.labels.op}")
    to_model = of(MODEL, *BUT_SERVICE, service="${__field.labels.service_name}")
    return (
        board(
            FLEET,
            "Opscope / Fleet overview",
            "Where all hosts spend their time.",
            *choices.where(),
        )
        .with_panel(
            question(
                "Is anything wrong in the fleet, and which job or operator is it?",
                "Every number in the first row is green or blue: nothing needs you. Otherwise the"
                " alerts below name the service and the host; the tables of regressions name the"
                " operator. Click a name to go on with the same selection.",
            )
        )
        .with_panel(
            number(
                "Alerts",
                "Alerts of Opscope that fire.",
                "short",
                'count(ALERTS{alertname=~"Opscope.+", alertstate="firing", cluster=~"$cluster"})'
                " or vector(0)",
                choices.ALERTS,
            )
        )
        .with_panel(
            number(
                "Stragglers",
                "Hosts with a pending or firing alert OpscopeStraggler.",
                "short",
                "count(count by (cluster, instance)"
                f' (ALERTS{{alertname="OpscopeStraggler", {OF_SERVICE}}})) or vector(0)',
                choices.ALERTS,
                link=("Hosts", of(HOSTS, *SELECTED)),
            )
        )
        .with_panel(
            number(
                "Overhead",
                "Share of CPU time spent recording: the highest of all processes.",
                "percentunit",
                f"max(opscope:service_overhead_ratio:max{{{OF_SERVICE}}})",
                choices.OVERHEAD,
                decimals=2,
                link=("Opscope itself", of(ITSELF, *SELECTED)),
            )
        )
        .with_panel(
            number(
                "Hosts",
                "Hosts with a running agent.",
                "short",
                f"sum(opscope:hosts:count{{{OF_CLUSTER}}})",
                NEUTRAL,
            )
        )
        .with_panel(
            number(
                "Processes",
                "Observed live processes.",
                "short",
                f"sum(opscope:processes:sum{{{OF_CLUSTER}}})",
                NEUTRAL,
            )
        )
        .with_panel(
            number(
                "Busy threads",
                f"Mean number of threads inside operators. {BUSY}",
                THREADS,
                f"sum({of_models})",
                NEUTRAL,
            )
        )
        .with_panel(firing("Firing alerts"))
        .with_panel(objectives("Objectives"))
        .with_panel(
            graph(
                "Steps per second by job",
                "Optimizer steps per second of a host, on average over the job's hosts: the ten"
                " fastest. Counted exactly, whatever is sampled. Several ranks of a host add up."
                " Logarithmic.",
                "suffix: /s",
                Query(f"topk(10, {steps})", "{{service_name}} {{job_id}}"),
                link=("Models of the service", to_model),
                log=True,
            )
        )
        .with_panel(
            graph(
                "Share of time that waits for input",
                "Of a service's time in operators, the share of the phase data: the ten services"
                " with the most. From the dashed line on, the alert OpscopeInputBound.",
                "percentunit",
                Query(f"topk(10, {data})", "{{service_name}}"),
                decimals=1,
                limits=choices.WAITING,
                link=("Models of the service", to_model),
            )
        )
        .with_panel(
            regressions(
                "Slower than in the last version",
                "the version before",
                "opscope:version_op_slowness:15m",
            )
        )
        .with_panel(
            regressions("Slower than last week", "a week ago", "opscope:week_op_slowness:15m")
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
                "The ten services with the most operator time, on a logarithmic axis, so that the"
                f" largest does not flatten the others. {BUSY}",
                THREADS,
                Query(f"topk(10, sum by (service_name) ({of_models}))", "{{service_name}}"),
                log=True,
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
                "Operator calls per second. Logarithmic.",
                "cps",
                Query(f"sum by (framework) ({calls})", "{{framework}}"),
                log=True,
            )
        )
        .with_panel(
            graph(
                "Hosts and processes",
                "Running agents and observed live processes.",
                "short",
                Query(f"sum(opscope:hosts:count{{{OF_CLUSTER}}})", "hosts"),
                Query(f"sum(opscope:processes:sum{{{OF_CLUSTER}}})", "processes"),
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
                    operator_of_row(),
                    (
                        "service_name",
                        "Models",
                        of(MODEL, *BUT_SERVICE, service="${__data.fields.service_name}"),
                    ),
                ),
            )
        )
        .build()
    )
