"""One operator: how long it takes, how often it runs, and where."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import (
    RULES_EACH,
    THREADS,
    Query,
    board,
    durations,
    graph,
    of,
    one_of,
    rows,
)
from dashboards.source.choices import BUSY, HOSTS, OF_ALL, OPERATOR
from dashboards.source.queries import calls, duration_buckets, quantile, quantile_now, rate

OF_SUMS = "For all hosts, one value every three minutes; for selected hosts, at full resolution."


def make() -> Dashboard:
    where = f'op="$operator", {OF_ALL}'
    return (
        board(OPERATOR, "Opscope / Operator", "One operator: its duration, frequency and hosts.")
        .with_variable(choices.service())
        .with_variable(choices.operator())
        .with_variable(choices.model())
        .with_variable(choices.host())
        .with_variable(
            one_of("quantile", "Quantile", "Of durations.", "0.5,0.95,0.99", "0.5"),
        )
        .with_panel(
            durations(
                "Durations",
                f"Distribution of call durations over time. {OF_SUMS}",
                *duration_buckets(where),
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
                link=("Host", of(HOSTS, host="${__field.labels.instance}")),
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
                links=(("host", "Host", of(HOSTS, host="${__data.fields.host}")),),
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
                "Failed calls per second; no data if no call ever failed.",
                "cps",
                Query(f"sum by (phase) ({rate('opscope.op.errors', where)})", "{{phase}}"),
                interval=RULES_EACH,
                width=8,
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
