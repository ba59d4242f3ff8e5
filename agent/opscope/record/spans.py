"""OpenTelemetry's active span as labels: what runs in it carries its `trace_id` and `span_id`.

Slow ranges of a trace then become exemplars (native/record/exemplar.h), and the labels follow the
work wherever labels do. They never become labels of a metric.

Switched on with OpenTelemetry's own variable, OTEL_PYTHON_CONTEXT=opscope: the context that its API
then makes (entry point `opentelemetry_context`) is its usual one, which also tells us of changes.
Only sampled spans count, as nobody could look up another. In an event loop tasks take turns without
a word to the context, so a span that begins there has no labels: a range would be told to be in a
trace that it is not in. Those of a span around the loop hold until a task is in another trace.
"""

from __future__ import annotations

import sys
from _thread import _local
from typing import TYPE_CHECKING, Any

from opscope.record.debug_info import debug_info, get_debug_info

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context.context import Context

_Span = tuple[int, int]
"""Its trace's id and its own, as labels have them."""


class SpanContext:
    """OpenTelemetry's runtime context, with labels."""

    def __init__(self) -> None:
        from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext

        self._inner = ContextVarsRuntimeContext()

    def get_current(self) -> Context:
        return self._inner.get_current()

    def attach(self, context: Context) -> _Attached:
        before = self._inner.get_current()
        attached = _Attached(self._inner.attach(context))
        try:
            _label(attached, _sampled(before), _sampled(context))
        except Exception:
            # The program's own span must be active whatever becomes of its labels.
            pass
        return attached

    def detach(self, token: _Attached) -> None:
        try:
            token.leave()
        finally:
            self._inner.detach(token.inner)


class _Attached:
    """What attach() returns for its detach()."""

    __slots__ = ("around", "inner", "labels")

    def __init__(self, inner: Token[Context]) -> None:
        self.inner = inner
        self.labels: list[debug_info] = []
        self.around: _Attached | None = None

    def enter(self, span: _Span | None) -> None:
        """Puts its labels in force; None: empty ones, which are of no trace."""
        trace_id, span_id = (f"{span[0]:032x}", f"{span[1]:016x}") if span else ("", "")
        labels = debug_info(trace_id=trace_id, span_id=span_id)
        labels.__enter__()
        self.labels.append(labels)

    def leave(self) -> None:
        while self.labels:
            self.labels.pop().__exit__(None, None, None)


class _Thread(_local):
    latest: _Attached | None = None
    """That put labels in force on the thread."""

    def in_force(self) -> _Attached | None:
        found = self.latest
        while found and not found.labels:
            found = found.around
        return found


_here = _Thread()


def _label(attached: _Attached, before: _Span | None, span: _Span | None) -> None:
    if _in_event_loop():
        around = _here.in_force()
        if around and _labelled() not in ("", f"{span[0]:032x}" if span else ""):
            # Whose turn is next is not known, so this holds for the rest of the span around.
            around.enter(None)
    elif span != before and (span or _labelled()):
        attached.around, _here.latest = _here.in_force(), attached
        attached.enter(span)


def _labelled() -> str:
    """The trace that the thread's labels tell; "" for none."""
    return get_debug_info("trace_id") or ""


def _sampled(context: Context) -> _Span | None:
    # Not imported from here: it is what imports the context, and so us.
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or not hasattr(trace, "get_current_span"):
        return None
    found = trace.get_current_span(context).get_span_context()
    is_sampled = found.is_valid and found.trace_flags.sampled
    return (found.trace_id, found.span_id) if is_sampled else None


def _in_event_loop() -> bool:
    asyncio: Any = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
