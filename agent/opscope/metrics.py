"""The one table of metrics: whatever is exported, in whatever format, is generated from it.

Names are OpenTelemetry's; `Metric.prometheus_name` turns them into Prometheus's by the rule that
OpenTelemetry's own translation follows, so that a dashboard works whichever way the data came.
https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/
Values are not here: `source` names where in a snapshot (agent/snapshot.py) they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    COUNTER = "counter"
    """Only grows while the agent runs."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    """Of durations: base-2 exponential, scale 3."""


# Labels of every metric of operators; allow-listed debug-info keys come beside them.
SERIES_LABELS: tuple[str, ...] = ("service", "op", "phase", "framework")
# Labels of metrics that observed processes count themselves (opscope/metric.h).
MEASURE_LABELS: tuple[str, ...] = ("service", "allocator")

_PROMETHEUS_UNITS = {"s": "seconds", "By": "bytes"}


@dataclass(frozen=True)
class Metric:
    name: str
    kind: Kind
    unit: str
    """UCUM, as OpenTelemetry has it: s, By, or a word in braces."""
    help: str
    source: str
    """Attribute of the snapshot; dots lead deeper. Arrays have a value for each series; mappings
    one for each value of the labels."""
    labels: tuple[str, ...] = ()

    @property
    def of_series(self) -> bool:
        """Whether there is a value for each operator series."""
        return self.labels == SERIES_LABELS

    @property
    def prometheus_unit(self) -> str:
        return _PROMETHEUS_UNITS.get(self.unit, "")

    @property
    def prometheus_name(self) -> str:
        """Of the family: with the unit, without `_total`."""
        name = self.name.replace(".", "_")
        return f"{name}_{self.prometheus_unit}" if self.prometheus_unit else name


def _of_series(name: str, kind: Kind, unit: str, help: str, source: str) -> Metric:
    return Metric(name, kind, unit, help, source, SERIES_LABELS)


METRICS = (
    _of_series(
        "opscope.op.calls",
        Kind.COUNTER,
        "{call}",
        "Times the operator ran; an estimate where ranges are sampled.",
        "calls",
    ),
    _of_series(
        "opscope.op.duration",
        Kind.HISTOGRAM,
        "s",
        "Time from the operator's start to its end; an estimate where ranges are sampled.",
        "buckets",
    ),
    _of_series(
        "opscope.op.self_time",
        Kind.COUNTER,
        "s",
        "Time within the operator but not in operators it calls; absent where not known.",
        "self_s",
    ),
    _of_series(
        "opscope.op.samples",
        Kind.COUNTER,
        "{sample}",
        "Runs of the operator that were recorded, which the other numbers are estimated from.",
        "samples",
    ),
    _of_series(
        "opscope.op.errors",
        Kind.COUNTER,
        "{error}",
        "Times the operator failed; an estimate where ranges are sampled.",
        "errors",
    ),
    _of_series(
        "opscope.op.memory.allocated",
        Kind.COUNTER,
        "By",
        "Memory the operator allocated; absent where not known.",
        "known_bytes",
    ),
    Metric(
        "opscope.memory.allocated",
        Kind.COUNTER,
        "By",
        "Memory that the allocator of a tensor library gave out, in operators or not.",
        "memory_allocated",
        MEASURE_LABELS,
    ),
    Metric(
        "opscope.memory.live",
        Kind.GAUGE,
        "By",
        "Memory given out and not yet released, over live processes.",
        "memory_live",
        MEASURE_LABELS,
    ),
    Metric(
        "opscope.memory.peak",
        Kind.GAUGE,
        "By",
        "The most that was live at a time in one process: the largest of the live processes'.",
        "memory_peak",
        MEASURE_LABELS,
    ),
    Metric(
        "opscope.api.usage",
        Kind.GAUGE,
        "{process}",
        "Processes, alive and ended, that used the API.",
        "usage",
        ("api", "service"),
    ),
    Metric(
        "opscope.service.info",
        Kind.GAUGE,
        "",
        "Always 1; the labels say which versions of a service live processes are.",
        "service_info",
        ("service", "version"),
    ),
    Metric(
        "opscope.framework.info",
        Kind.GAUGE,
        "",
        "Always 1; the labels say which versions live processes run with, and on what device:"
        " times on another than cpu are those of dispatch.",
        "framework_info",
        ("service", "framework", "version", "device_type"),
    ),
    Metric(
        "opscope.attachment.results",
        Kind.COUNTER,
        "{process}",
        "Processes by what became of attaching to them: for each bridge, or for the whole process.",
        "attach_results",
        ("bridge", "result"),
    ),
    Metric(
        "opscope.processes",
        Kind.GAUGE,
        "{process}",
        "Live processes that are observed.",
        "process_count",
    ),
    Metric(
        "opscope.recorder.dropped",
        Kind.COUNTER,
        "{range}",
        "Ranges that found no room and are in no other number.",
        "health.dropped",
    ),
    Metric(
        "opscope.recorder.folded",
        Kind.COUNTER,
        "{range}",
        "Ranges counted under the operator other for want of room in their process's segment.",
        "health.folded",
    ),
    Metric(
        "opscope.recorder.callback.errors",
        Kind.COUNTER,
        "{error}",
        "Failures of callbacks in observed processes.",
        "health.callback_errors",
    ),
    Metric(
        "opscope.recorder.overhead",
        Kind.COUNTER,
        "s",
        "Time spent recording: samples times the cost of one, as each process measured it.",
        "health.overhead_s",
    ),
    Metric(
        "opscope.recorder.overhead.ratio",
        Kind.GAUGE,
        "",
        "Share of CPU time that recording took of late, from 0 to 1: the worst of live processes.",
        "overhead_ratio",
        ("service",),
    ),
    Metric(
        "opscope.recorder.overhead.budget",
        Kind.GAUGE,
        "",
        "Share of CPU time that recording may take: the least of live processes; absent if any.",
        "overhead_budget",
        ("service",),
    ),
    Metric(
        "opscope.recorder.adaptations",
        Kind.COUNTER,
        "{change}",
        "Times that a process sampled less, or more again, to keep to its overhead budget.",
        "health.adaptations",
    ),
    Metric(
        "opscope.segments.bad",
        Kind.COUNTER,
        "{file}",
        "Segment files that could not be read.",
        "bad_segments",
        ("reason",),
    ),
    Metric(
        "opscope.series.folded",
        Kind.GAUGE,
        "{series}",
        "Series that are summed up as other because there are too many.",
        "series_folded",
    ),
    Metric(
        "opscope.agent.exports",
        Kind.COUNTER,
        "{export}",
        "Exports that the agent made: sent, failed (to be sent again), or refused by the receiver.",
        "exports",
        ("exporter", "result"),
    ),
    Metric(
        "opscope.agent.collect.duration",
        Kind.GAUGE,
        "s",
        "How long the agent's last pass over the segments took.",
        "collect_seconds",
    ),
    Metric(
        "opscope.agent.cpu.time",
        Kind.COUNTER,
        "s",
        "Processor time that the agent itself has used.",
        "own.cpu_s",
    ),
    Metric(
        "opscope.agent.memory",
        Kind.GAUGE,
        "By",
        "Memory that the agent itself holds: its resident size.",
        "own.memory_bytes",
    ),
    Metric(
        "opscope.agent.passes",
        Kind.COUNTER,
        "{pass}",
        "Passes over all segments, and sweeps over those of ended processes.",
        "own.passes",
        ("kind",),
    ),
    Metric(
        "opscope.agent.segments.read",
        Kind.GAUGE,
        "{file}",
        "Segment files that the agent's last pass has read.",
        "own.files_read",
    ),
    Metric(
        "opscope.agent.files.removed",
        Kind.COUNTER,
        "{file}",
        "Files of ended processes that the agent has taken in and removed.",
        "own.files_removed",
    ),
    Metric(
        "opscope.agent.state.writes",
        Kind.COUNTER,
        "{write}",
        "Times the sums that outlive the agent were written, by result.",
        "own.state_writes",
        ("result",),
    ),
    Metric(
        "opscope.agent.requests",
        Kind.COUNTER,
        "{request}",
        "Requests that the agent has answered; those for no page of its have the path empty.",
        "own.requests",
        ("path", "status"),
    ),
    Metric(
        "opscope.agent.request.time",
        Kind.COUNTER,
        "s",
        "Time from requests to the end of their answers, summed.",
        "own.request_s",
    ),
    Metric(
        "opscope.build.info",
        Kind.GAUGE,
        "",
        "Always 1; the label says which version runs.",
        "build_info",
        ("version",),
    ),
)
