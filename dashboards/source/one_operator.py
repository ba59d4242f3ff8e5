"""One operator: how long it takes, how often it runs, and where."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import THREADS, Query, board, durations, graph, of, one_of
from dashboards.source.choices import BUSY, BY_VERSION, HOSTS, OF_ALL, OPERATOR
from dashboards.source.queries import duration_buckets, quantile, rate


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
                "How many calls took how long, over time.",
                *duration_buckets(where),
            )
        )
        .with_panel(
            graph(
                "Quantiles",
                "Durations of half, 95 % and 99 % of calls. Native histograms are off by 4.5 % at"
                " most; classic ones are interpolated between bounds a factor of four apart.",
                "s",
                *(
                    Query(quantile(p, where), label)
                    for p, label in (("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99"))
                ),
            )
        )
        .with_panel(
            graph(
                "By host",
                "The chosen quantile on the ten hosts where it is largest.",
                "s",
                Query(f"topk(10, {quantile('$quantile', where, 'instance')})", "{{instance}}"),
                link=("Host", of(HOSTS, host="${__field.labels.instance}")),
            )
        )
        .with_panel(
            graph(
                "By model",
                "The chosen quantile of each model.",
                "s",
                Query(quantile("$quantile", where, "model_id"), "{{model_id}}"),
            )
        )
        .with_panel(
            graph(
                "By version",
                "The chosen quantile of each version of a service, of hosts with one version at a"
                " time. Needs service.version; and, of native histograms, Prometheus 2.44.",
                "s",
                Query(
                    quantile("$quantile", where, "service, version", BY_VERSION),
                    "{{service}} {{version}}",
                ),
            )
        )
        .with_panel(
            graph(
                "Calls",
                "A second, by phase.",
                "cps",
                Query(f"sum by (phase) ({rate('opscope.op.calls', where)})", "{{phase}}"),
                width=8,
            )
        )
        .with_panel(
            graph(
                "Errors",
                "Calls a second that failed.",
                "cps",
                Query(f"sum by (phase) ({rate('opscope.op.errors', where)})", "{{phase}}"),
                width=8,
            )
        )
        .with_panel(
            graph(
                "Memory allocated",
                "Bytes a second that the operator allocated, where that is known.",
                "Bps",
                Query(f"sum ({rate('opscope.op.memory.allocated', where)})", "allocated"),
                width=8,
            )
        )
        .with_panel(
            graph(
                "Time",
                f"In the operator but not in those it calls, by service. {BUSY}",
                THREADS,
                Query(f"sum by (service) ({rate('opscope.op.self_time', where)})", "{{service}}"),
            )
        )
        .with_panel(
            graph(
                "Recorded runs",
                "Runs a second that were recorded, which all else here is estimated from.",
                "cps",
                Query(f"sum by (service) ({rate('opscope.op.samples', where)})", "{{service}}"),
            )
        )
        .build()
    )
