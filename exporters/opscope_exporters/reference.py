"""The reference of what is exported, exporters/METRICS.md, made from the table of metrics.

`python -m opscope_exporters.reference` prints it; a test compares the file with that.
"""

from __future__ import annotations

from collections.abc import Iterator

from opscope.agent import exporter
from opscope.metrics import METRICS, Kind, Metric
from opscope_exporters.samples import sample_name

_HEAD = """\
# What Opscope exports

Made by `python -m opscope_exporters.reference` from the table in `agent/opscope/metrics.py`; change
that, not this.

Names are OpenTelemetry's in OTLP and JSON lines, and what its rules make of them for Prometheus.
Counters go on over restarts of the agent and the end of processes; each series says when it began
to count (OTLP's `start_time_unix_nano`, protobuf's `created_timestamp`; in OpenMetrics `_created`
of durations alone, as Prometheus would take each for one more series). Numbers of operators are
estimates where ranges are sampled.

Operators' metrics have the labels `service`, `op`, `phase` (forward, backward, optimizer, data,
comm, other), `framework`, and those debug-info keys that are allowed (`OPSCOPE_LABELS`, at most
two; `model_id` by default). Beyond `OPSCOPE_MAX_SERIES` (2,000) series all is summed up in
`op="other"`, and `opscope_series_folded` says so. Durations are a classic histogram with bounds of
powers of two, and a native one of schema 3 (OpenTelemetry's scale 3) for a client that takes it:
off by 4.5 % at most.

Slow ranges that ran in a sampled trace are exemplars of their histogram (OpenMetrics, protobuf,
OTLP), with `trace_id` and `span_id`. The observed program says which span is active: with
`OTEL_PYTHON_CONTEXT=opscope` OpenTelemetry's Python API does, outside of event loops; others label
their work `trace_id` (32 hexadecimal digits) and `span_id` (16) as any debug info. Within an event
loop, where tasks take turns unseen, a span has no exemplars; those of a span around the loop are
its own until a task is in another trace.

On demand slow ranges of such a program are spans under the active one, each within the slow one
around it, with right times: `opscope trace PID --spans --slower 10ms` records every range for some
seconds and sends those that were slow with the SDK's exporter of spans, as `OTEL_*` variables say
(`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`, `OTEL_TRACES_EXPORTER`, ...).
Send them to where the program's own spans go. Attributes are `op`, `phase`, `framework` and the
program's labels, the resource is the service's; at most the 10,000 longest are sent, and what is
not sent is counted.

Over OTLP durations are exponential histograms, whatever `OTEL_*` variables say of histograms. What
is cumulative is sent in parts of less than 4 MiB, which every receiver takes; deltas of a host are
one message (1.8 MiB for 2,000 series), so a receiver over gRPC may have to be told to take more. An
export that fails is not kept: the next one has the newer numbers. Where a receiver says that it
rejected points, the export counts as `refused` in `opscope_agent_exports_total`.

A program that exports metrics of its own can have Opscope's of itself beside them: see
`opscope_exporters/in_process.py`.

## Metrics
"""

_EXPORTERS = """
## Exporters

`OPSCOPE_EXPORTERS` (or `exporters` in opscope.toml, or `opscope agent --exporter`, repeated) says
which of them run. An option `file` of `jsonl` is the flag `--jsonl-file`, the variable
`OPSCOPE_JSONL_FILE`, and `file` in the table `[jsonl]` of opscope.toml; the first of these holds.
"""

_OWN = ("prometheus", "otlp", "textfile", "jsonl")


def document() -> str:
    return "".join(line + "\n" for line in (*_HEAD.splitlines(), *_metrics(), *_exporters()))


def _metrics() -> Iterator[str]:
    yield "| OpenTelemetry | Prometheus | kind | unit | labels | |"
    yield "|---|---|---|---|---|---|"
    for metric in METRICS:
        labels = "of operators" if metric.of_series else ", ".join(f"`{x}`" for x in metric.labels)
        cells = (
            f"`{metric.name}`",
            f"`{_prometheus(metric)}`",
            metric.kind.value,
            f"`{metric.unit}`" if metric.unit else "",
            labels,
            metric.help,
        )
        yield f"| {' | '.join(cells)} |"
    yield "| resource | `target_info` | gauge |  | the resource's attributes | Who exports this. |"


def _prometheus(metric: Metric) -> str:
    name = sample_name(metric)
    return f"{name}_{{bucket,count,sum}}" if metric.kind is Kind.HISTOGRAM else name


def _exporters() -> Iterator[str]:
    yield from _EXPORTERS.splitlines()
    for name in _OWN:
        module = exporter.module(name)
        head = (module.__doc__ or "").strip().partition("\n")[0]
        yield ""
        yield f"**{name}**: {head}"
        yield from [""] * bool(module.OPTIONS)
        for option in module.OPTIONS:
            default = option.default if option.default != "" else "none"
            yield f"- `{option.name}` ({default}): {option.help}"


if __name__ == "__main__":
    print(document(), end="")
