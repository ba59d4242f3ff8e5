"""Models: the shares of their phases, their operators, their versions."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices, compilation
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
from dashboards.source.changes import regressions
from dashboards.source.choices import (
    BUSY,
    CHANGE,
    MODEL,
    OF_JOB,
    OF_SERVICE,
    OPERATOR,
    SELECTED,
    WAITING,
)


def _share(phase: str, where: str) -> str:
    """Of the time in operators; 0 without that phase."""
    seconds = "opscope:model_self_seconds:rate5m"
    of_phase = f'sum({seconds}{{phase="{phase}", {where}}}) or vector(0)'
    return f"({of_phase}) / sum({seconds}{{{where}}})"


def make() -> Dashboard:
    where = f'{OF_SERVICE}, model_id=~"$model"'
    seconds = f"opscope:model_self_seconds:rate5m{{{where}}}"
    of_version = f'{where}, version=~"$version"'
    by_operator = f"opscope:model_op_self_seconds:rate5m{{{where}}}"
    made = (
        board(
            MODEL,
            "Opscope / Model",
            "Models: forward, backward, optimizer, data, communication.",
            *choices.where(),
            choices.model(),
            choices.version(),
        )
        .with_panel(
            question(
                "What does this model wait for, and did its last version make it slower?",
                "Orange or red in the first row: it waits for input or for other processes, or the"
                " newest version is slower. The operators that changed are named below; above the"
                " dashed lines it waits for a processor or for torch.compile.",
            )
        )
        .with_panel(
            number(
                "Steps per second",
                "Optimizer steps of a host, on average over the hosts of the selected jobs.",
                "suffix: /s",
                f"avg(opscope:job_steps:rate5m{{{OF_JOB}}})",
                NEUTRAL,
                width=5,
            )
        )
        .with_panel(
            number(
                "Waits for input",
                "Share of operator time in the phase data.",
                "percentunit",
                _share("data", where),
                WAITING,
                width=5,
                decimals=1,
            )
        )
        .with_panel(
            number(
                "Waits for others",
                "Share of operator time in the phase comm.",
                "percentunit",
                _share("comm", where),
                WAITING,
                width=5,
                decimals=1,
            )
        )
        .with_panel(
            number(
                "Against the last version",
                "Duration of the median operator in the newest version, relative to the version"
                " before: the largest of the selected models.",
                "short",
                f"max(opscope:version_slowness:15m{{{of_version}}})",
                CHANGE,
                width=5,
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Busy threads",
                f"Mean number of threads inside operators. {BUSY}",
                THREADS,
                f"sum({seconds})",
                NEUTRAL,
            )
        )
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
                f"The ten models with the most operator time. Logarithmic. {BUSY}",
                THREADS,
                Query(
                    f"topk(10, sum by (service_name, model_id) ({seconds}))",
                    "{{service_name}} {{model_id}}",
                ),
                log=True,
            )
        )
        .with_panel(compilation.using())
        .with_panel(compilation.waiting())
        .with_panel(compilation.compiling())
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
                        *SELECTED,
                        "model",
                        "version",
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
                Query(
                    f"opscope:version_slowness:15m{{{of_version}}}",
                    "{{service_name}} {{version}} {{model_id}}",
                ),
                width=24,
                height=7,
                decimals=2,
                nothing="No two versions ran within a day.",
            )
        )
        .with_panel(
            rows(
                "Operators that changed most with the version",
                "Duration of a call relative to the previous version.",
                "short",
                f"topk(20, opscope:version_op_slowness:15m{{{of_version}}})",
                ("service_name", "version", "op", "phase", "model_id"),
                "times as long",
                width=24,
                height=7,
                decimals=2,
                nothing="No two versions ran within a day.",
                wide=("op", 220),
                steps=CHANGE,
            )
        )
        .with_panel(
            regressions(
                "Surely slower than in the last version",
                "the version before",
                "opscope:version_op_slowness:15m",
                of_version,
            )
        )
    )
    for panel in (*compilation.compilations(), *compilation.jax_compilations()):
        made = made.with_panel(panel)
    return made.build()
