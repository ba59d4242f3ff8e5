"""The table of metrics: every export in every format is generated from it.

`source` names the attribute of a snapshot (host/snapshot.py) that has the values.
"""

from __future__ import annotations

from opscope.compilation_metrics import COMPILATION_METRICS
from opscope.metric_definition import SERIES_LABELS, Kind, Metric
from opscope.model_metrics import MODEL_METRICS

# Labels of metrics that observed processes count themselves (opscope/metric.h).
MEASURE_LABELS: tuple[str, ...] = ("service_name", "allocator")


def _of_series(name: str, kind: Kind, unit: str, help: str, source: str) -> Metric:
    return Metric(name, kind, unit, help, source, SERIES_LABELS)


METRICS = (
    Metric(
        "opscope.op.calls",
        Kind.COUNTER,
        "{call}",
        "Calls of the operator; an estimate if calls are sampled.",
        "calls",
        SERIES_LABELS,
        is_histogram_count=True,
    ),
    _of_series(
        "opscope.op.duration",
        Kind.HISTOGRAM,
        "s",
        "Duration of a call, from start to end; an estimate if calls are sampled.",
        "buckets",
    ),
    _of_series(
        "opscope.op.self_time",
        Kind.COUNTER,
        "s",
        "Time inside the operator, without the operators that it calls; absent if unknown.",
        "self_s",
    ),
    _of_series(
        "opscope.op.samples",
        Kind.COUNTER,
        "{sample}",
        "Recorded calls of the operator, the basis of the other estimates: a median needs at least"
        " 5, a p95 at least 20, a p99 at least 100.",
        "samples",
    ),
    _of_series(
        "opscope.op.calls.variance",
        Kind.COUNTER,
        "{call}2",
        "Variance of the estimated calls. Its increase is the variance of their increase; its"
        " square root is their standard error. Absent if every call was recorded.",
        "inexact_calls_variance",
    ),
    _of_series(
        "opscope.op.self_time.variance",
        Kind.COUNTER,
        "s2",
        "Variance of the estimated self time, in seconds squared, to be used as that of calls."
        " Absent if every call was recorded.",
        "inexact_self_variance",
    ),
    _of_series(
        "opscope.op.errors",
        Kind.COUNTER,
        "{error}",
        "Calls of the operator that failed; an estimate if calls are sampled.",
        "errors",
    ),
    _of_series(
        "opscope.op.memory.allocated",
        Kind.COUNTER,
        "By",
        "Memory that the operator allocated; absent if unknown.",
        "known_bytes",
    ),
    Metric(
        "opscope.memory.allocated",
        Kind.COUNTER,
        "By",
        "Memory that the allocator of a tensor library allocated, inside and outside operators.",
        "memory_allocated",
        MEASURE_LABELS,
    ),
    Metric(
        "opscope.memory.live",
        Kind.GAUGE,
        "By",
        "Memory allocated and not yet freed, summed over live processes.",
        "memory_live",
        MEASURE_LABELS,
    ),
    Metric(
        "opscope.memory.peak",
        Kind.GAUGE,
        "By",
        "Peak of live memory in one process: the maximum over live processes.",
        "memory_peak",
        MEASURE_LABELS,
    ),
    Metric(
        "opscope.cpu.time",
        Kind.COUNTER,
        "s",
        "Time in which threads of observed programs had a processor, from their start on: in"
        " operators, in Python, and in what no operator covers or no window met. The kernel's count"
        " at the last pass in which a process lived; absent where it does not count.",
        "cpu_time_s",
        ("service_name",),
    ),
    Metric(
        "opscope.cpu.wait",
        Kind.COUNTER,
        "s",
        "Time in which threads of observed programs were ready to run and had no processor, because"
        " of other work or of a CPU quota. It lengthens operators. The kernel's count; absent where"
        " it does not count.",
        "cpu_wait_s",
        ("service_name",),
    ),
    *COMPILATION_METRICS,
    *MODEL_METRICS,
    Metric(
        "opscope.api.usage",
        Kind.GAUGE,
        "{process}",
        "Processes, live and ended, that used the API.",
        "usage",
        ("api", "service_name"),
    ),
    Metric(
        "opscope.service.info",
        Kind.GAUGE,
        "",
        "Always 1; the labels are the versions of a service that live processes run.",
        "service_info",
        ("service_name", "version"),
    ),
    Metric(
        "opscope.resource.info",
        Kind.GAUGE,
        "",
        "Always 1; the labels are the resource attributes of a group of processes. Join it by"
        " service and group.",
        "resource_info",
        ("service_name", "group"),
    ),
    Metric(
        "opscope.container.info",
        Kind.GAUGE,
        "",
        "Always 1; the labels are the container and the pod of live processes, empty if their"
        " cgroups do not say. Join it by service and group.",
        "container_info",
        ("service_name", "group", "container_id", "k8s_pod_uid"),
    ),
    Metric(
        "opscope.framework.info",
        Kind.GAUGE,
        "",
        "Always 1; the labels are the framework version and the device of live processes. On a"
        " device other than cpu, times are those of dispatch.",
        "framework_info",
        ("service_name", "framework", "version", "device_type"),
    ),
    Metric(
        "opscope.attachment.results",
        Kind.COUNTER,
        "{process}",
        "Processes by result of attaching, for each bridge or for the whole process.",
        "attach_results",
        ("bridge", "result"),
    ),
    Metric(
        "opscope.processes",
        Kind.GAUGE,
        "{process}",
        "Observed live processes.",
        "process_count",
    ),
    Metric(
        "opscope.recorder.dropped",
        Kind.COUNTER,
        "{range}",
        "Ranges lost, for lack of space or because they outlasted the range around them or ended "
        "on another thread; no other metric includes them.",
        "health.dropped",
    ),
    Metric(
        "opscope.recorder.folded",
        Kind.COUNTER,
        "{range}",
        "Ranges counted under the operator other because their process's segment was full.",
        "health.folded",
    ),
    Metric(
        "opscope.recorder.callback.errors",
        Kind.COUNTER,
        "{error}",
        "Callbacks that raised an error in observed processes.",
        "health.callback_errors",
    ),
    Metric(
        "opscope.recorder.overhead",
        Kind.COUNTER,
        "s",
        "CPU time spent recording: samples times the cost per sample that each process measured,"
        " plus the time of the threads that open windows.",
        "health.overhead_s",
    ),
    Metric(
        "opscope.recorder.overhead.ratio",
        Kind.GAUGE,
        "",
        "Recent share of CPU time spent recording, from 0 to 1: the maximum over live processes.",
        "overhead_ratio",
        ("service_name",),
    ),
    Metric(
        "opscope.recorder.overhead.budget",
        Kind.GAUGE,
        "",
        "Limit of the share of CPU time spent recording: the minimum over live processes; absent if"
        " unlimited.",
        "overhead_budget",
        ("service_name",),
    ),
    Metric(
        "opscope.recorder.adaptations",
        Kind.COUNTER,
        "{change}",
        "Times that a process lowered or raised its sampling to keep to its overhead budget.",
        "health.adaptations",
    ),
    Metric(
        "opscope.segments.discarded",
        Kind.COUNTER,
        "{file}",
        "Segments of ended processes that new processes removed to free space before an agent had"
        " collected them, because segments had reached their limit on the file system.",
        "health.discarded",
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
        "Series merged into other because the limit of series was reached, since series were last"
        " freed.",
        "series_folded",
    ),
    Metric(
        "opscope.series.filtered",
        Kind.GAUGE,
        "{series}",
        "Series not exported: dropped, or merged into other because they rank below the top"
        " operators.",
        "series_filtered",
        ("filter",),
    ),
    Metric(
        "opscope.series.retired",
        Kind.COUNTER,
        "{series}",
        "Series that were merged into other to make space for new ones: of ended processes, or"
        " taken back from a user or service with too many.",
        "series_retired",
    ),
    Metric(
        "opscope.agent.exports",
        Kind.COUNTER,
        "{export}",
        "Exports of the agent by result: sent, failed (to be retried), or refused by the receiver.",
        "exports",
        ("exporter", "result"),
    ),
    Metric(
        "opscope.agent.collect.duration",
        Kind.GAUGE,
        "s",
        "Duration of the agent's last pass over the segments.",
        "collect_seconds",
    ),
    Metric(
        "opscope.agent.cpu.time",
        Kind.COUNTER,
        "s",
        "CPU time of the agent itself.",
        "own.cpu_s",
    ),
    Metric(
        "opscope.agent.memory",
        Kind.GAUGE,
        "By",
        "Resident memory of the agent itself.",
        "own.memory_bytes",
    ),
    Metric(
        "opscope.agent.passes",
        Kind.COUNTER,
        "{pass}",
        "Passes of the agent over all segments, and sweeps over those of ended processes.",
        "own.passes",
        ("kind",),
    ),
    Metric(
        "opscope.agent.segments.read",
        Kind.GAUGE,
        "{file}",
        "Segment files that the agent's last pass read.",
        "own.files_read",
    ),
    Metric(
        "opscope.agent.files.removed",
        Kind.COUNTER,
        "{file}",
        "Files of ended processes that the agent collected and removed.",
        "own.files_removed",
    ),
    Metric(
        "opscope.agent.files.parked",
        Kind.GAUGE,
        "{file}",
        "Segments of ended processes in another version's format, kept for an agent that reads it.",
        "own.files_parked",
    ),
    Metric(
        "opscope.agent.files.discarded",
        Kind.COUNTER,
        "{file}",
        "Segments in another version's format that the agent removed unread: it kept too many.",
        "own.files_discarded",
    ),
    Metric(
        "opscope.agent.state.writes",
        Kind.COUNTER,
        "{write}",
        "Writes of the agent's state file, by result.",
        "own.state_writes",
        ("result",),
    ),
    Metric(
        "opscope.agent.limited",
        Kind.COUNTER,
        "{pass}",
        "Passes in which a user exceeded its share of the agent's limits and lost data, by"
        " resource: directories, files, bytes, time, series, names, ledger or labels.",
        "own.limited",
        ("uid", "resource"),
    ),
    Metric(
        "opscope.agent.requests",
        Kind.COUNTER,
        "{request}",
        "HTTP requests that the agent answered; the path is empty for unknown pages.",
        "own.requests",
        ("path", "status"),
    ),
    Metric(
        "opscope.agent.request.time",
        Kind.COUNTER,
        "s",
        "Total time from a request to the end of its answer.",
        "own.request_s",
    ),
    Metric(
        "opscope.build.info",
        Kind.GAUGE,
        "",
        "Always 1; the labels are the version of the agent, the revision of its source, empty for"
        " a release, and its Python.",
        "build_info",
        ("version", "revision", "python_version"),
    ),
)

PROCESS_METRICS = (
    Metric(
        "process.cpu",
        Kind.COUNTER,
        "s",
        "CPU time of the exporting process, in user and system mode.",
        "own.cpu_s",
    ),
    Metric(
        "process.resident_memory",
        Kind.GAUGE,
        "By",
        "Resident memory of the exporting process.",
        "own.memory_bytes",
    ),
    Metric(
        "process.virtual_memory",
        Kind.GAUGE,
        "By",
        "Virtual memory of the exporting process.",
        "own.virtual_bytes",
    ),
    Metric(
        "process.start_time",
        Kind.GAUGE,
        "s",
        "Start of the exporting process, in seconds since 1970.",
        "own.start_unix_s",
    ),
    Metric(
        "process.open_fds",
        Kind.GAUGE,
        "{file}",
        "Open file descriptors of the exporting process.",
        "own.open_files",
    ),
    Metric(
        "process.max_fds",
        Kind.GAUGE,
        "{file}",
        "Most file descriptors that the exporting process may have open.",
        "own.most_files",
    ),
)
"""By the names that Prometheus's client libraries give every program. Only on the page that
Prometheus scrapes: OpenTelemetry has other names, and a textfile collector its own process."""
