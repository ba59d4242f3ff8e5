"""What JAX compiles: counts and times by stage, hits and misses of its persistent cache.

JAX reports them to the listeners of `jax.monitoring`, which a program imports with `jax`. It
reports a stage when it ends, with its duration. Stages nest on a thread: the trace of a function
contains those of the functions it calls. A stage that ends by an exception is not reported. If the
program calls `jax.monitoring.clear_event_listeners()`, counting ends.
"""

import sys
from collections import deque
from threading import local
from time import perf_counter_ns
from typing import Any

from opscope.record.metric import Metric

_COMPILATIONS = "opscope.jax.compile.compilations"
_TIME = "opscope.jax.compile.time"
_CACHE = "opscope.jax.compile.cache"

_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_OUTCOMES = {
    "/jax/compilation_cache/cache_hits": "hit",
    "/jax/compilation_cache/cache_misses": "miss",
}
_MONITORING = "jax._src.monitoring"
_PARTS = 1024
"""Stages directly within one; of further ones, the oldest count twice."""

_thread = local()


def follow() -> None:
    """Counts from now on; a second call does nothing. A JAX without such listeners stays as it
    is."""
    for kind, listener in _listeners():
        known = getattr(_module(), f"get_{kind}_listeners", None)
        register = getattr(_module(), f"register_{_REGISTER[kind]}_listener", None)
        if known is not None and register is not None and listener not in known():
            register(listener)


def leave() -> None:
    """Counts no more; does nothing unless it counted."""
    for kind, listener in _listeners():
        known = getattr(_module(), f"get_{kind}_listeners", None)
        unregister = getattr(_module(), f"unregister_{kind}_listener", None)
        if known is not None and unregister is not None and listener in known():
            unregister(listener)


def _module() -> Any:
    return sys.modules.get(_MONITORING)


def _listeners() -> tuple[tuple[str, Any], ...]:
    return ("event_duration", _stage_ended), ("event", _happened)


_REGISTER = {"event_duration": "event_duration_secs", "event": "event"}


def _stage_ended(event: str, duration: float, **metadata: object) -> None:
    """JAX would end the compilation with an exception of this function."""
    try:
        if (stage := _STAGES.get(event)) is not None:
            Metric(_COMPILATIONS, stage).add()
            Metric(_TIME, stage).add(_own_ns(perf_counter_ns(), round(duration * 1e9)))
    except Exception:
        pass


def _own_ns(end_ns: int, duration_ns: int) -> int:
    """The duration without those of the stages within, which ended on this thread before."""
    done: deque[tuple[int, int]] | None = getattr(_thread, "done", None)
    if done is None:
        done = _thread.done = deque(maxlen=_PARTS)
    start_ns, inner_ns = end_ns - duration_ns, 0
    while done and done[-1][0] >= start_ns:
        inner_ns += done.pop()[1]
    done.append((start_ns, duration_ns))
    return max(duration_ns - inner_ns, 0)


def _happened(event: str, **metadata: object) -> None:
    """As above."""
    try:
        if (outcome := _OUTCOMES.get(event)) is not None:
            Metric(_CACHE, outcome).add()
    except Exception:
        pass
