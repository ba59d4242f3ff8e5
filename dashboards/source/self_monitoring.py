"""The cost of Opscope itself, and its losses and errors."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import Query, at_least, board, graph, number, question, rows
from dashboards.source.changes import firing, objectives, silent_agents
from dashboards.source.choices import ITSELF, OF_CLUSTER, OF_HOST, OF_SERVICE
from dashboards.source.queries import name, rate


def make() -> Dashboard:
    ratio, budget = (
        name("opscope.recorder.overhead.ratio"),
        name("opscope.recorder.overhead.budget"),
    )
    instance = 'instance=~"$host"'
    results = name("opscope.attachment.results")
    return (
        board(
            ITSELF,
            "Opscope / Opscope itself",
            "The cost, losses and errors of Opscope itself.",
            *choices.where(),
            choices.host(),
        )
        .with_panel(
            question(
                "Can I believe these numbers, and what do they cost?",
                "All green: nothing is lost, every agent answers, recording keeps to its budget."
                " Anything else: the alerts below say where, the graphs since when.",
            )
        )
        .with_panel(silent_agents(5))
        .with_panel(
            number(
                "Overhead",
                "Share of CPU time spent recording: the highest of all processes.",
                "percentunit",
                f"max({ratio}{{{OF_SERVICE}, {instance}}})",
                choices.OVERHEAD,
                width=5,
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Ranges kept",
                "Share of the recorded ranges that found room.",
                "percentunit",
                f"min(opscope:ranges_kept:ratio5m{{{OF_CLUSTER}}})",
                at_least(0.998, 0.999),
                width=5,
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Series folded",
                "Series merged into other because an agent's table is full.",
                "short",
                f"sum ({name('opscope.series.folded')}{{{OF_HOST}}}) or vector(0)",
                choices.NONE,
                width=5,
            )
        )
        .with_panel(
            number(
                "Attach failures",
                "Processes of the last hour that were not attached for a reason other than a"
                " setting.",
                "short",
                f"sum(opscope:attach_failures:increase1h{{{OF_CLUSTER}}}) or vector(0)",
                choices.ALERTS,
                width=4,
            )
        )
        .with_panel(firing("Firing alerts"))
        .with_panel(objectives("Objectives"))
        .with_panel(
            graph(
                "Overhead",
                "Share of CPU time spent recording, in the process with the highest share: the ten"
                " services with the most; and the budget.",
                "percentunit",
                Query(
                    f"topk(10, max by (service_name) ({ratio}{{{OF_SERVICE}, {instance}}}))",
                    "{{service_name}}",
                ),
                Query(f"min ({budget}{{{OF_SERVICE}, {instance}}})", "least budget"),
                decimals=2,
            )
        )
        .with_panel(
            graph(
                "Time spent recording",
                "All processes of a host, as a share of one processor: the ten hosts with the"
                " most.",
                "percentunit",
                Query(f"topk(10, {rate('opscope.recorder.overhead', OF_HOST)})", "{{instance}}"),
                decimals=2,
            )
        )
        .with_panel(
            graph(
                "Lost",
                "Ranges per second that found no room, and those counted under other.",
                "cps",
                Query(f"sum ({rate('opscope.recorder.dropped', OF_HOST)})", "dropped"),
                Query(f"sum ({rate('opscope.recorder.folded', OF_HOST)})", "folded into other"),
            )
        )
        .with_panel(
            graph(
                "Failures",
                "Errors of callbacks per second, and unreadable segments by reason.",
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
                "Processes by result of attaching, for each bridge or for the whole process.",
                "short",
                f"sum by (bridge, result) ({results}{{{OF_HOST}}})",
                ("bridge", "result"),
                "processes",
            )
        )
        .with_panel(
            graph(
                "Attach failures",
                "Processes of the last hour that were not attached for a reason other than a"
                " setting.",
                "short",
                Query(
                    f"sum by (bridge) (opscope:attach_failures:increase1h{{{OF_CLUSTER}}})",
                    "{{bridge}}",
                ),
                nothing="Every process was attached, or left out by a setting.",
            )
        )
        .with_panel(
            graph(
                "Series",
                "Series of operators: the ten hosts with the most; rows merged into other because"
                " of the limit; and series that the agents' filters drop or merge into other.",
                "short",
                Query(
                    f"topk(10, opscope:host_series:count{{{OF_HOST}}})",
                    "{{instance}}",
                ),
                Query(f"sum ({name('opscope.series.folded')}{{{OF_HOST}}})", "folded"),
                Query(
                    f"sum by (filter) ({name('opscope.series.filtered')}{{{OF_HOST}}})",
                    "filtered: {{filter}}",
                ),
            )
        )
        .with_panel(
            graph(
                "Changes of sampling",
                "Times per minute that processes lower or raise their sampling to keep a budget.",
                "cpm",
                Query(f"60 * sum ({rate('opscope.recorder.adaptations', OF_HOST)})", "changes"),
            )
        )
        .with_panel(
            graph(
                "Agents: processor",
                "CPU time, as a share of one processor: the ten hosts with the most.",
                "percentunit",
                Query(f"topk(10, {rate('opscope.agent.cpu.time', OF_HOST)})", "{{instance}}"),
                decimals=2,
            )
        )
        .with_panel(
            graph(
                "Agents: memory",
                "Resident memory: the ten hosts with the most.",
                "bytes",
                Query(f"topk(10, {name('opscope.agent.memory')}{{{OF_HOST}}})", "{{instance}}"),
            )
        )
        .with_panel(
            graph(
                "Agents: a pass over the segments",
                "Duration of the last pass: the ten slowest hosts.",
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
                "Files that the last pass read: the ten hosts with the most.",
                "short",
                Query(
                    f"topk(10, {name('opscope.agent.segments.read')}{{{OF_HOST}}})", "{{instance}}"
                ),
            )
        )
        .with_panel(
            graph(
                "Agents: exports and requests",
                "Per second, by result.",
                "cps",
                Query(
                    f"sum by (exporter, result) ({rate('opscope.agent.exports', OF_HOST)})",
                    "{{exporter}} {{result}}",
                ),
                Query(
                    f"sum by (path, status) ({rate('opscope.agent.requests', OF_HOST)})",
                    "{{path}} {{status}}",
                ),
                nothing="No agent pushes, and none was asked yet.",
                width=24,
            )
        )
        .with_panel(
            rows(
                "Versions of Opscope",
                "Hosts by the version of their agent, its revision, empty for a release, and its"
                " Python.",
                "short",
                "count by (version, revision, python_version)"
                f" ({name('opscope.build.info')}{{{OF_HOST}}})",
                ("version", "revision", "python_version"),
                "hosts",
                width=24,
                height=6,
                wide=("revision", 350),
            )
        )
        .build()
    )
