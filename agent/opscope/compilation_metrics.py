"""The part of the table of metrics (metrics.py) that says what `torch.compile` and `jax.jit` do.

Observed processes count them (bridges/torch/compile.py, bridges/jax/compile.py).
"""

from __future__ import annotations

from opscope.metric_definition import Kind, Metric

COMPILATION_LABELS: tuple[str, ...] = ("service_name", "reason")
CACHE_LABELS: tuple[str, ...] = ("service_name", "outcome")
STAGE_LABELS: tuple[str, ...] = ("service_name", "stage")

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
    Metric(
        "opscope.jax.compile.compilations",
        Kind.COUNTER,
        "{compilation}",
        "Compilations by JAX, by stage: trace, lower, compile. A function is traced and lowered for"
        " each new shape, and compiled, or found in the persistent cache.",
        "compiled.jax_compilations",
        STAGE_LABELS,
    ),
    Metric(
        "opscope.jax.compile.time",
        Kind.COUNTER,
        "s",
        "Time in which threads compiled with JAX, by stage; a stage within another counts once.",
        "compiled.jax_time_s",
        STAGE_LABELS,
    ),
    Metric(
        "opscope.jax.compile.cache",
        Kind.COUNTER,
        "{lookup}",
        "Lookups in JAX's persistent cache of compilations, where a program has one: hit, or miss,"
        " which is then stored.",
        "compiled.jax_cache",
        CACHE_LABELS,
    ),
)
