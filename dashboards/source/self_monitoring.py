"""What Opscope costs, loses and refuses."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import THREADS, Query, board, graph, rows
from dashboards.source.choices import BUSY, ITSELF, OF_HOST, OF_SERVICE
from dashboards.source.queries import name, rate


def make() -> Dashboard:
    ratio, budget = (
        name("opscope.recorder.overhead.ratio"),
        name("opscope.recorder.overhead.budget"),
    )
    results = name("opscope.attachment.results")
    return (
        board(ITSELF, "Opscope / Opscope itself", "What Opscope costs, loses and refuses.")
        .with_variable(choices.service())
        .with_variable(choices.host())
        .with_panel(
            graph(
                "Overhead",
                "Share of CPU time that recording takes in the worst process: the ten services"
                " with most; and the budget.",
                "percentunit",
                Query(
                    f"topk(10, max by (service) ({ratio}{{{OF_SERVICE}, {OF_HOST}}}))",
                    "{{service}}",
                ),
                Query(f"min ({budget}{{{OF_SERVICE}, {OF_HOST}}})", "least budget"),
                decimals=2,
            )
        )
        .with_panel(
            graph(
                "Time spent recording",
                f"All processes of a host: the ten hosts with most. {BUSY}",
                THREADS,
                Query(f"topk(10, {rate('opscope.recorder.overhead', OF_HOST)})", "{{instance}}"),
            )
        )
        .with_panel(
            graph(
                "Lost",
                "Ranges a second that found no room, and those counted under other.",
                "cps",
                Query(f"sum ({rate('opscope.recorder.dropped', OF_HOST)})", "dropped"),
                Query(f"sum ({rate('opscope.recorder.folded', OF_HOST)})", "folded into other"),
            )
        )
        .with_panel(
            graph(
                "Failures",
                "A second: of callbacks, and segments that could not be read, by reason.",
                "cps",
                Query(f"sum ({rate('opscope.recorder.callback.errors', OF_HOST)})", "callbacks"),
                Query(
                    f"sum by (reason) ({rate('opscope.segments.bad', OF_HOST)})",
                    "segment: {{reason}}",
                ),
            )
        )
        .with_panel(
            rows(
                "Results of attaching",
                "Processes, by bridge, or for the whole process, and by reason.",
                "short",
                f"sum by (bridge, result) ({results}{{{OF_HOST}}})",
                ("bridge", "result"),
                "processes",
            )
        )
        .with_panel(
            graph(
                "Attach failures",
                "Processes of the last hour that were not attached to, though nobody chose so.",
                "short",
                Query("opscope:attach_failures:increase1h", "{{bridge}}"),
            )
        )
        .with_panel(
            graph(
                "Series",
                "Of operators: the ten hosts with most; and rows summed up as other.",
                "short",
                Query(
                    f"topk(10, opscope:host_series:count{{{OF_HOST}}})",
                    "{{instance}}",
                ),
                Query(f"sum ({name('opscope.series.folded')}{{{OF_HOST}}})", "folded"),
            )
        )
        .with_panel(
            graph(
                "Changes of sampling",
                "Times a minute that processes sample less, or more again, to keep to a budget.",
                "cpm",
                Query(f"60 * sum ({rate('opscope.recorder.adaptations', OF_HOST)})", "changes"),
            )
        )
        .with_panel(
            graph(
                "Agents: processor",
                f"The ten hosts with most. {BUSY}",
                THREADS,
                Query(f"topk(10, {rate('opscope.agent.cpu.time', OF_HOST)})", "{{instance}}"),
            )
        )
        .with_panel(
            graph(
                "Agents: memory",
                "Resident: the ten hosts with most.",
                "bytes",
                Query(f"topk(10, {name('opscope.agent.memory')}{{{OF_HOST}}})", "{{instance}}"),
            )
        )
        .with_panel(
            graph(
                "Agents: a pass over the segments",
                "How long the last one took: the ten hosts with most.",
                "s",
                Query(
                    f"topk(10, {name('opscope.agent.collect.duration')}{{{OF_HOST}}})",
                    "{{instance}}",
                ),
            )
        )
        .with_panel(
            graph(
                "Agents: segments",
                "Files that the last pass has read: the ten hosts with most.",
                "short",
                Query(
                    f"topk(10, {name('opscope.agent.segments.read')}{{{OF_HOST}}})", "{{instance}}"
                ),
            )
        )
        .with_panel(
            graph(
                "Agents: exports and requests",
                "A second, by result.",
                "cps",
                Query(
                    f"sum by (exporter, result) ({rate('opscope.agent.exports', OF_HOST)})",
                    "{{exporter}} {{result}}",
                ),
                Query(
                    f"sum by (path, status) ({rate('opscope.agent.requests', OF_HOST)})",
                    "{{path}} {{status}}",
                ),
            )
        )
        .with_panel(
            rows(
                "Versions of Opscope",
                "Hosts with an agent of that version.",
                "short",
                f"count by (version) ({name('opscope.build.info')}{{{OF_HOST}}})",
                ("version",),
                "hosts",
            )
        )
        .build()
    )
