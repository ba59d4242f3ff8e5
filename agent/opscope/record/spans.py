"""OpenTelemetry's active span as labels: ranges within it have its `trace_id` and `span_id`.

Slow ranges of a trace then become exemplars (native/recorder/exemplar.h), and the labels propagate
like all others. They never become labels of a metric.

OpenTelemetry's own variable enables this: OTEL_PYTHON_CONTEXT=opscope. The API then creates this
context (entry point `opentelemetry_context`), which is its usual context and also reports changes.
Only sampled spans count, since no backend has the others. In an event loop the labels belong to the
task, like the span.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from opscope.record.debug_info import debug_info, get_debug_info

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context.context import Context

_Span = tuple[int, int]
"""Trace id and span id, as in the labels."""


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
            # The program's own span must become active even if the labels fail.
            pass
        return attached

    def detach(self, token: _Attached) -> None:
        try:
            token.leave()
        finally:
            self._inner.detach(token.inner)


class _Attached:
    """The token that attach() returns for detach()."""

    __slots__ = ("inner", "labels")

    def __init__(self, inner: Token[Context]) -> None:
        self.inner = inner
        self.labels: debug_info | None = None

    def leave(self) -> None:
        labels, self.labels = self.labels, None
        if labels is not None:
            labels.__exit__(None, None, None)


def _label(attached: _Attached, before: _Span | None, span: _Span | None) -> None:
    if span == before or not (span or _labelled()):
        return
    # Without a span, ranges belong to no trace: mask the outer span's labels.
    trace_id, span_id = (f"{span[0]:032x}", f"{span[1]:016x}") if span else (None, None)
    labels = debug_info(trace_id=trace_id, span_id=span_id)
    labels.__enter__()
    attached.labels = labels


def _labelled() -> str:
    """The trace id in the thread's labels; "" without one."""
    return get_debug_info("trace_id") or ""


def _sampled(context: Context) -> _Span | None:
    # Not imported at the top: that module imports the context, and so this module.
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or not hasattr(trace, "get_current_span"):
        return None
    found = trace.get_current_span(context).get_span_context()
    is_sampled = found.is_valid and found.trace_flags.sampled
    return (found.trace_id, found.span_id) if is_sampled else None
