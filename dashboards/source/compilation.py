"""Panels on what no operator shows: processors in use, waiting for one, torch.compile, JAX."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders import timeseries

from dashboards.source.blocks import EVENTS_A_MINUTE, THREADS, Query, graph, of, up_to
from dashboards.source.choices import HOSTS, OF_SERVICE, SELECTED
from dashboards.source.queries import rate

_LINK = ("Hosts", of(HOSTS, *SELECTED))


def using() -> timeseries.Panel:
    return graph(
        "Processors in use",
        "Processors that the threads of a host use, on average over the service's hosts: the ten"
        " services that use most. Beyond the busy threads of operators it is Python, libraries that"
        " Opscope does not see, and long operators that no window met.",
        "short",
        Query(
            f"topk(10, avg by (service_name) ({rate('opscope.cpu.time', OF_SERVICE)}))",
            "{{service_name}}",
        ),
        width=8,
        link=_LINK,
    )


def waiting() -> timeseries.Panel:
    return graph(
        "Waiting for a processor",
        "Threads of a host that are ready to run and have no processor, because of other work or of"
        " a CPU quota, on average over the service's hosts: the ten services that wait most. 1 is"
        " one thread all the time. It makes all operators longer. Above a dashed line: give the"
        " service more processors or a larger quota, or move its neighbours.",
        THREADS,
        Query(
            f"topk(10, avg by (service_name) ({rate('opscope.cpu.wait', OF_SERVICE)}))",
            "{{service_name}}",
        ),
        limits=up_to(0.5, 1.0),
        width=8,
        link=_LINK,
    )


def compiling() -> timeseries.Panel:
    return graph(
        "Time spent compiling",
        "Processes of a host that are compiling with torch.compile, on average over the service's"
        " hosts: the ten services with the most. It should fall to 0 after the start; if it stays"
        " above a dashed line, look at the reasons below.",
        THREADS,
        Query(
            f"topk(10, avg by (service_name) ({_by_host('opscope.torch.compile.time')}))",
            "{{service_name}}",
        ),
        limits=up_to(0.05, 0.2),
        width=8,
        link=_LINK,
        nothing="No program uses torch.compile.",
    )


def compilations() -> Iterator[timeseries.Panel]:
    """What torch.compile did; without data if no program uses it."""
    yield graph(
        "Compilations by reason",
        "The reason is first, backward, or the guard that failed: a guard that fails all the time"
        " (size, value) means shapes or arguments that change; mark them as dynamic.",
        EVENTS_A_MINUTE,
        Query(_a_minute("opscope.torch.compile.compilations", "reason"), "{{reason}}"),
        stacked=True,
        width=8,
        nothing="No program uses torch.compile.",
    )
    yield graph(
        "Graph breaks by reason",
        "Where torch.compile could not go on within a graph, by PyTorch's first words on it. Each"
        " splits a graph, and its parts are compiled and optimized on their own.",
        EVENTS_A_MINUTE,
        Query(_a_minute("opscope.torch.compile.graph_breaks", "reason"), "{{reason}}"),
        stacked=True,
        width=8,
        nothing="No program uses torch.compile.",
    )
    yield _cache_hits(
        "Hits of the compilation cache",
        "Share of the lookups in the caches of compiled graphs that found one, by service. Low"
        " after a restart: the cache does not outlive the container.",
        "opscope.torch.compile.cache",
        "No program uses torch.compile.",
    )


def jax_compilations() -> Iterator[timeseries.Panel]:
    """What jax.jit did; without data if no program uses it."""
    yield graph(
        "JAX: time spent compiling",
        "Threads of a host that compile with JAX, by stage, on average over the service's hosts:"
        " the ten services and stages with the most. It should fall to 0 after the start; if it"
        " stays above a dashed line, arguments change shape or type all the time.",
        THREADS,
        Query(
            "topk(10, avg by (service_name, stage) (sum by (cluster, instance, service_name, stage)"
            f" ({rate('opscope.jax.compile.time', OF_SERVICE)})))",
            "{{service_name}} {{stage}}",
        ),
        limits=up_to(0.05, 0.2),
        width=8,
        link=_LINK,
        nothing="No program uses JAX.",
    )
    yield graph(
        "JAX: compilations by stage",
        "JAX traces and lowers a function for each new shape or type of its arguments, then"
        " compiles it or finds it in the persistent cache. If trace and lower go on and compile"
        " does not, the cache finds them: pad the arguments to a few shapes all the same.",
        EVENTS_A_MINUTE,
        Query(_a_minute("opscope.jax.compile.compilations", "stage"), "{{stage}}"),
        stacked=True,
        width=8,
        nothing="No program uses JAX.",
    )
    yield _cache_hits(
        "JAX: hits of the persistent cache",
        "Share of the lookups in JAX's persistent cache of compilations that found one, by service."
        " Low after a restart: the cache does not outlive the container.",
        "opscope.jax.compile.cache",
        "No program has such a cache (jax_compilation_cache_dir).",
    )


def _cache_hits(title: str, description: str, metric: str, nothing: str) -> timeseries.Panel:
    lookups = rate(metric, OF_SERVICE)
    hits = rate(metric, f'outcome="hit", {OF_SERVICE}')
    return graph(
        title,
        description,
        "percentunit",
        Query(
            f"(sum by (service_name) ({hits}) or 0 * sum by (service_name) ({lookups}))"
            f" / (sum by (service_name) ({lookups}) > 0)",
            "{{service_name}}",
        ),
        width=8,
        nothing=nothing,
    )


def _by_host(metric: str) -> str:
    """Whatever the reasons."""
    return f"sum by (cluster, instance, service_name) ({rate(metric, OF_SERVICE)})"


def _a_minute(metric: str, label: str) -> str:
    return f"60 * topk(10, sum by ({label}) ({rate(metric, OF_SERVICE)}))"
