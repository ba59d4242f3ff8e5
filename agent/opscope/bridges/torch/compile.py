"""What `torch.compile` compiles: counts, times, reasons of recompilation, graph breaks, caches.

PyTorch calls the callbacks of `torch._dynamo.callback` at the start and the end of a compilation,
and counts in `torch._dynamo.utils.counters`. Both exist only once the program has imported
`torch._dynamo`; this module never does. Compilations that overlap, on several threads or nested,
count as one, as PyTorch reports them.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from time import perf_counter_ns
from typing import Any

from opscope.record.metric import Metric

FIRST = "first"
UNKNOWN = "unknown"
_COMPILATIONS = "opscope.torch.compile.compilations"
_TIME = "opscope.torch.compile.time"
_GRAPH_BREAKS = "opscope.torch.compile.graph_breaks"
_CACHE = "opscope.torch.compile.cache"

_TRIGGERS = {
    "LAZY_BACKWARD": "backward",
    "TRITON_AUTOTUNING": "autotuning",
    "CUDAGRAPH_RECORDING": "CUDA graph",
}
"""What is compiled later than its forward, by PyTorch's name."""
_PROPERTIES = "size stride rank dtype device requires_grad".split()
_REASONS = (
    *((re.compile(rf"\b{name}\b.* mismatch"), name) for name in _PROPERTIES),
    (re.compile(r"(?i)global[ _]state"), "global state"),
    (re.compile(r"check_type_id|check_obj_id|\btype\("), "type"),
    (re.compile(r"\blen\("), "length"),
)
"""The guard that failed, by the text that PyTorch gives: few words, since they become a label."""
_LABEL_BYTES = 100

_CACHES = (("inductor", "fxgraph_cache_"), ("aot_autograd", "autograd_cache_"))
_OUTCOMES = ("hit", "miss", "bypass")

_start_ns: int | None = None
_seen: dict[tuple[str, str], int] = {}
"""PyTorch's counts at the last callback, by metric and label."""
_failures: dict[int, int] = {}
"""The number of guards that had failed at the last callback, by the id of the code they guard."""


class _Kept(list[Any]):
    """A list of callbacks that keeps ours when `torch._dynamo.reset()` clears it."""

    def clear(self) -> None:
        own = [callback for callback in self if callback in _callbacks()]
        super().clear()
        self.extend(own)


def follow() -> None:
    """Counts the compilations from now on, if the program has imported `torch._dynamo`; a second
    call does nothing. A PyTorch without such callbacks stays as it is."""
    handler = _handler()
    if handler is None or _callbacks()[0] in handler.start_callbacks:
        return
    started, ended = _callbacks()
    handler.start_callbacks = _Kept(handler.start_callbacks)
    handler.end_callbacks = _Kept(handler.end_callbacks)
    _take_counts()
    _new_failure()
    handler.register_start_callback(started)
    handler.register_end_callback(ended)


def leave() -> None:
    """Counts no more; does nothing unless it counted."""
    handler = _handler()
    if handler is None:
        return
    for callbacks, own in zip(
        (handler.start_callbacks, handler.end_callbacks), _callbacks(), strict=True
    ):
        if own in callbacks:
            callbacks.remove(own)


def _handler() -> Any:
    """None if there is none, or one of another kind."""
    module = sys.modules.get("torch._dynamo.callback")
    handler = getattr(module, "callback_handler", None)
    lists = (getattr(handler, name, None) for name in ("start_callbacks", "end_callbacks"))
    return handler if all(isinstance(one, list) for one in lists) else None


@cache
def _callbacks() -> tuple[Callable[..., None], Callable[..., None]]:
    """The callbacks for the start and the end. Dynamo is off in them: otherwise it converts and
    counts their frames where a backward is compiled within a compiled function."""
    disable = getattr(sys.modules.get("torch._dynamo"), "disable", None)
    try:
        return (disable(_started), disable(_ended)) if disable else (_started, _ended)
    except Exception:
        return _started, _ended


def _started(args: Any = None) -> None:
    """PyTorch would end the compilation with an exception of this function. Older releases give no
    arguments."""
    global _start_ns
    try:
        _take_counts()  # a reset may have cleared them
        _start_ns = perf_counter_ns()
    except Exception:
        _start_ns = None


def _ended(args: Any = None) -> None:
    global _start_ns
    try:
        reason = _reason(args)
        Metric(_COMPILATIONS, reason).add()
        if _start_ns is not None:
            Metric(_TIME, reason).add(max(0, perf_counter_ns() - _start_ns))
        _start_ns = None
        before = dict(_seen)
        for (name, label), count in _take_counts().items():
            if count > (known := before.get((name, label), 0)):
                Metric(name, label).add(count - known)
    except Exception:
        pass  # as in _started


def _take_counts() -> Mapping[tuple[str, str], int]:
    _seen.clear()
    for key, count in _counts():
        _seen[key] = _seen.get(key, 0) + count
    return _seen


def _counts() -> Iterator[tuple[tuple[str, str], int]]:
    utils = sys.modules.get("torch._dynamo.utils")
    counters: Mapping[str, Mapping[str, int]] = getattr(utils, "counters", {})
    for text, count in list(counters.get("graph_break", {}).items()):
        yield (_GRAPH_BREAKS, _label(text.partition("\n")[0])), count
    for group, prefix in _CACHES:
        for outcome in _OUTCOMES:
            if count := counters.get(group, {}).get(prefix + outcome, 0):
                yield (_CACHE, f"{prefix.partition('_')[0]} {outcome}"), count


def _reason(args: Any) -> str:
    trigger = getattr(getattr(args, "callback_trigger", None), "name", "DYNAMO")
    if trigger in _TRIGGERS:
        return _TRIGGERS[trigger]
    utils: Any = sys.modules.get("torch._dynamo.utils")
    context = utils.get_metrics_context() if hasattr(utils, "get_metrics_context") else None
    known = getattr(context, "_metrics", {})
    if "recompile_reason" in known:
        text = known["recompile_reason"]
        return FIRST if text is None else reason_of(str(text))
    failure = _new_failure()
    if _is_first(args):
        return FIRST
    return reason_of(failure) if failure else UNKNOWN


def _is_first(args: Any) -> bool:
    """The compilation's id is "0/2" for the third one of the first frame."""
    number = getattr(args, "compile_id", None)
    if number is None:
        context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
        number = context.current_compile_id() if context else ""
    return str(number).rpartition("/")[2].partition("_")[0] == "0"


def _new_failure() -> str:
    """What PyTorch before 2.6 says of the guard that failed since the last call; else ""."""
    utils = sys.modules.get("torch._dynamo.utils")
    texts = {id(code): one for code, one in list(getattr(utils, "guard_failures", {}).items())}
    new = [text for code, one in texts.items() for text in one[_failures.get(code, 0) :]]
    _failures.clear()
    _failures.update((code, len(one)) for code, one in texts.items())
    return str(new[0]) if new else ""


def reason_of(text: str) -> str:
    """The kind of guard that failed: "size", "dtype", "global state", ...; "value" for others."""
    if text.startswith("Unable to find"):
        return UNKNOWN
    return next((reason for pattern, reason in _REASONS if pattern.search(text)), "value")


def _label(text: str) -> str:
    cut = text.encode()[:_LABEL_BYTES].decode(errors="ignore").replace("\0", "").strip()
    return cut or UNKNOWN
