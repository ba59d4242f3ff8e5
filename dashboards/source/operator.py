"""One operator: how long it takes, how often it runs, and where."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import (
    EVENTS,
    NEUTRAL,
    RULES_EACH,
    THREADS,
    Query,
    board,
    durations,
    graph,
    number,
    of,
    one_of,
    question,
    rows,
)
from dashboards.source.choices import (
    BUSY,
    CHANGE,
    HOSTS,
    NONE,
    OF_ALL,
    OF_SERVICE,
    OPERATOR,
    SELECTED,
)
from dashboards.source.queries import (
    calls,
    duration_buckets,
    exemplars,
    quantile,
    quantile_now,
    rate,
)

OF_SUMS = "For all hosts, one value every three minutes; for selected hosts, at full resolution."


def make() -> Dashboard:
    where = f'op="$operator", {OF_ALL}'
    of_op = f'op="$operator", {OF_SERVICE}, model_id=~"$model"'
    of_service = f'opscope:op_calls:rate5m{{op="$operator", {OF_SERVICE}}}'
    errors = rate("opscope.op.errors", f'op="$operator", {OF_SERVICE}')
    return (
        board(
            OPERATOR,
            "Opscope / Operator",
            "One operator: its duration, frequency and hosts.",
            *choices.where(),
            choices.operator(),
            choices.model(),
            choices.version(),
            choices.host(),
        )
        .with_variable(
            one_of("quantile", "Quantile", "Of durations.", "0.5,0.95,0.99", "0.5"),
        )
        .with_panel(
            question(
                "When did $operator get slower, and for whom?",
                "Look for the step in the heat map, and whether a vertical line there marks a"
                " release. By version and by host say for whom; a dot is one slow call, and leads"
                " to its trace.",
            )
        )
        .with_panel(
            number(
                "Median",
                f"Duration of the median call. {OF_SUMS}",
                "s",
                quantile("0.5", where),
                NEUTRAL,
                width=5,
            )
        )
        .with_panel(
            number(
                "Against the last version",
                "Duration of a call in the newest version, relative to the version before: the"
                " largest of the selected services and models. No value if one version runs.",
                "short",
                f"max(opscope:version_op_slowness:15m{{{of_op}}})",
                CHANGE,
                width=5,
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Against last week",
                "Duration of a call, relative to a week ago: the largest of the selected services"
                " and models. No value on fewer than five hosts.",
                "short",
                f"max(opscope:week_op_slowness:15m{{{of_op}}})",
                CHANGE,
                width=5,
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Calls",
                "Calls per second on all hosts.",
                EVENTS,
                f"sum({of_service})",
                NEUTRAL,
                width=5,
            )
        )
        .with_panel(
            number(
                "Failed",
                "Share of the calls that failed, on all hosts.",
                "percentunit",
                f"(sum({errors}) or vector(0)) / sum({of_service})",
                NONE,
                decimals=2,
            )
        )
        .with_panel(
            durations(
                "Durations",
                "Distribution of call durations over time. Dots are slow calls that ran in a"
                f" sampled trace. {OF_SUMS}",
                *duration_buckets(where),
                *exemplars(where),
            )
        )
        .with_panel(
            graph(
                "Quantiles",
                "50th, 95th and 99th percentile of call durations. Native histograms have an error"
                " of at most 4.5 %; classic ones are interpolated between bounds a factor of two"
                f" apart. {OF_SUMS}",
                "s",
                *(
                    Query(quantile(p, where), label)
                    for p, label in (("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99"))
                ),
                *(Query(promql, "exemplars", exemplars=True) for promql in exemplars(where)),
                interval=RULES_EACH,
            )
        )
        .with_panel(
            graph(
                "By model",
                f"The selected quantile of each model. {OF_SUMS}",
                "s",
                Query(quantile("$quantile", where, "model_id"), "{{model_id}}"),
                interval=RULES_EACH,
            )
        )
        .with_panel(
            graph(
                "By version",
                "The selected quantile of each version of a service. The version is empty for"
                f" hosts where it is unknown or where two run. {OF_SUMS}",
                "s",
                Query(
                    quantile("$quantile", where, "service_name, version"),
                    "{{service_name}} {{version}}",
                ),
                interval=RULES_EACH,
            )
        )
        .with_panel(
            graph(
                "By host",
                "Median duration on the ten slowest hosts, without communication operators. Leaves"
                " out hosts with fewer than 200 recorded runs in 15 minutes, and hosts whose"
                " classic histograms are too coarse for a median.",
                "s",
                Query(
                    f"topk(10, opscope:host_op_typical_seconds:15m{{{where}}})",
                    "{{instance}} {{phase}} {{model_id}}",
                ),
                link=("Host", of(HOSTS, *SELECTED, host="${__field.labels.instance}")),
            )
        )
        .with_panel(
            rows(
                "Hosts",
                "The selected quantile on the fifty slowest hosts, now.",
                "s",
                f"topk(50, {quantile_now('$quantile', where, 'instance, service_name')})",
                ("instance", "service_name"),
                "duration",
                width=8,
                links=(("host", "Host", of(HOSTS, *SELECTED, host="${__data.fields.host}")),),
            )
        )
        .with_panel(
            graph(
                "Calls",
                "Calls per second, by phase.",
                "cps",
                Query(f"sum by (phase) ({calls(where)})", "{{phase}}"),
                interval=RULES_EACH,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Errors",
                "Failed calls per second.",
                "cps",
                Query(f"sum by (phase) ({rate('opscope.op.errors', where)})", "{{phase}}"),
                interval=RULES_EACH,
                width=8,
                nothing="No call failed.",
            )
        )
        .with_panel(
            graph(
                "Memory allocated",
                "Bytes per second that the operator allocated, if known.",
                "Bps",
                Query(f"sum ({rate('opscope.op.memory.allocated', where)})", "allocated"),
                interval=RULES_EACH,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Time",
                f"Time inside the operator, without nested operators, by service. {BUSY}",
                THREADS,
                Query(
                    f"sum by (service_name) ({rate('opscope.op.self_time', where)})",
                    "{{service_name}}",
                ),
                interval=RULES_EACH,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Recorded runs",
                "Recorded runs per second, the basis of all estimates here.",
                "cps",
                Query(
                    f"sum by (service_name) ({rate('opscope.op.samples', where)})",
                    "{{service_name}}",
                ),
                interval=RULES_EACH,
                width=8,
            )
        )
        .build()
    )
