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
from dashboards.source.queries import duration_buckets, quantile, quantile_now, rate

OF_SUMS = "Of all hosts each third minute, of those that are chosen at any time."


def make() -> Dashboard:
    where = f'op="$operator", {OF_ALL}'
    return (
        board(OPERATOR, "Opscope / Operator", "One operator: how long, how often, where.")
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
                f"How many calls took how long, over time. {OF_SUMS}",
                *duration_buckets(where),
            )
        )
        .with_panel(
            graph(
                "Quantiles",
                "Durations of half, 95 % and 99 % of calls. Native histograms are off by 4.5 % at"
                " most; classic ones are interpolated between bounds a factor of four apart."
                f" {OF_SUMS}",
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
                f"The chosen quantile of each model. {OF_SUMS}",
                "s",
                Query(quantile("$quantile", where, "model_id"), "{{model_id}}"),
                interval=RULES_EACH,
            )
        )
        .with_panel(
            graph(
                "By version",
                "The chosen quantile of each version of a service; without one: of hosts where none"
                f" is known, or two run. {OF_SUMS}",
                "s",
                Query(quantile("$quantile", where, "service, version"), "{{service}} {{version}}"),
                interval=RULES_EACH,
            )
        )
        .with_panel(
            graph(
                "By host",
                "How long a call typically takes, on the ten hosts where that is longest: half of"
                " them with native histograms, their mean with classic ones. Not of communication,"
                " nor where fewer than 200 runs were recorded in a quarter of an hour.",
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
                "The chosen quantile on the fifty hosts where it is largest, now.",
                "s",
                f"topk(50, {quantile_now('$quantile', where, 'instance, service')})",
                ("instance", "service"),
                "duration",
                width=8,
                links=(("host", "Host", of(HOSTS, host="${__data.fields.host}")),),
            )
        )
        .with_panel(
            graph(
                "Calls",
                "A second, by phase.",
                "cps",
                Query(f"sum by (phase) ({rate('opscope.op.calls', where)})", "{{phase}}"),
                interval=RULES_EACH,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Errors",
                "Calls a second that failed.",
                "cps",
                Query(f"sum by (phase) ({rate('opscope.op.errors', where)})", "{{phase}}"),
                interval=RULES_EACH,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Memory allocated",
                "Bytes a second that the operator allocated, where that is known.",
                "Bps",
                Query(f"sum ({rate('opscope.op.memory.allocated', where)})", "allocated"),
                interval=RULES_EACH,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Time",
                f"In the operator but not in those it calls, by service. {BUSY}",
                THREADS,
                Query(f"sum by (service) ({rate('opscope.op.self_time', where)})", "{{service}}"),
                interval=RULES_EACH,
                width=8,
            )
        )
        .with_panel(
            graph(
                "Recorded runs",
                "Runs a second that were recorded, which all else here is estimated from.",
                "cps",
                Query(f"sum by (service) ({rate('opscope.op.samples', where)})", "{{service}}"),
                interval=RULES_EACH,
                width=8,
            )
        )
        .build()
    )
