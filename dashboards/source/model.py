"""Models: the shares of their phases, their operators, their versions."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import THREADS, Query, board, graph, of, rows
from dashboards.source.choices import BUSY, MODEL, OPERATOR


def make() -> Dashboard:
    where = 'service_name=~"$service", model_id=~"$model"'
    seconds = f"opscope:model_self_seconds:rate5m{{{where}}}"
    by_operator = f"opscope:model_op_self_seconds:rate5m{{{where}}}"
    return (
        board(
            MODEL, "Opscope / Model", "Models: forward, backward, optimizer, data, communication."
        )
        .with_variable(choices.service())
        .with_variable(choices.model())
        .with_panel(
            graph(
                "Shares of the phases",
                "Shares of operator time. High data: input-bound; high comm: communication-bound.",
                "percentunit",
                Query(
                    f"sum by (phase) ({seconds}) / on () group_left () sum ({seconds})",
                    "{{phase}}",
                ),
                stacked=True,
                decimals=1,
            )
        )
        .with_panel(
            graph(
                "Time by model",
                f"The ten models with the most operator time. {BUSY}",
                THREADS,
                Query(
                    f"topk(10, sum by (service_name, model_id) ({seconds}))",
                    "{{service_name}} {{model_id}}",
                ),
                stacked=True,
            )
        )
        .with_panel(
            rows(
                "Phases of each model",
                f"Current values. {BUSY}",
                THREADS,
                f"topk(100, {seconds})",
                ("service_name", "model_id", "phase"),
                "threads",
            )
        )
        .with_panel(
            graph(
                "Operators of the model",
                f"The ten operators with the most self time. {BUSY}",
                THREADS,
                Query(f"topk(10, sum by (op, phase) ({by_operator}))", "{{op}} {{phase}}"),
                stacked=True,
                link=(
                    "Operator",
                    of(
                        OPERATOR,
                        "service",
                        operator="${__field.labels.op}",
                    ),
                ),
            )
        )
        .with_panel(
            graph(
                "Newest version compared to the previous one",
                "Ratio of the median operator's duration; above 1 is slower. Empty unless two"
                " versions ran within a day.",
                "short",
                Query(f"opscope:version_slowness:15m{{{where}}}", "{{version}} {{model_id}}"),
                width=24,
                decimals=2,
            )
        )
        .with_panel(
            rows(
                "Operators that changed most with the version",
                "Duration of a call relative to the previous version.",
                "short",
                f"topk(20, opscope:version_op_slowness:15m{{{where}}})",
                ("service_name", "version", "op", "phase", "model_id"),
                "times as long",
                width=24,
                decimals=2,
            )
        )
        .build()
    )
