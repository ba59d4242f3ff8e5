"""The part of the table of metrics (metrics.py) that says what `torch.compile` does.

Observed processes count them (bridges/torch/compile.py).
"""

from __future__ import annotations

from opscope.metric_definition import Kind, Metric

COMPILATION_LABELS: tuple[str, ...] = ("service_name", "reason")
CACHE_LABELS: tuple[str, ...] = ("service_name", "outcome")

COMPILATION_METRICS = (
    Metric(
        "opscope.torch.compile.compilations",
        Kind.COUNTER,
        "{compilation}",
        "Compilations by torch.compile. The reason is first, backward, or the guard that failed:"
        " size, dtype, value, ...",
        "compiled.compilations",
        COMPILATION_LABELS,
    ),
    Metric(
        "opscope.torch.compile.time",
        Kind.COUNTER,
        "s",
        "Time in which a process compiled; compilations that overlap count once.",
        "compiled.time_s",
        COMPILATION_LABELS,
    ),
    Metric(
        "opscope.torch.compile.graph_breaks",
        Kind.COUNTER,
        "{break}",
        "Graph breaks in what torch.compile traced, by PyTorch's first words on the reason.",
        "compiled.graph_breaks",
        COMPILATION_LABELS,
    ),
    Metric(
        "opscope.torch.compile.cache",
        Kind.COUNTER,
        "{lookup}",
        "Lookups in the caches of compiled graphs (fxgraph, autograd): hit, miss or bypass.",
        "compiled.cache",
        CACHE_LABELS,
    ),
)
