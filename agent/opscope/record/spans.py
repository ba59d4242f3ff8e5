"""OpenTelemetry's active span as labels: what runs in it carries its `trace_id` and `span_id`.

Slow ranges of a trace then become exemplars (native/record/exemplar.h), and the labels follow the
work wherever labels do. They never become labels of a metric.

Switched on with OpenTelemetry's own variable, OTEL_PYTHON_CONTEXT=opscope: the context that its API
then makes (entry point `opentelemetry_context`) is its usual one, which also tells us of changes.
Only sampled spans count, as nobody could look up another. In an event loop there are no labels:
tasks take turns there without a word to the context, and a range would be told to be in a trace
that it is not in.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from opscope.record.debug_info import debug_info

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context.context import Context


class SpanContext:
    """OpenTelemetry's runtime context, with labels."""

    def __init__(self) -> None:
        from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext

        self._inner = ContextVarsRuntimeContext()

    def get_current(self) -> Context:
        return self._inner.get_current()

    def attach(self, context: Context) -> _Attached:
        before = self._inner.get_current()
        return _Attached(self._inner.attach(context), _entered(before, context))

    def detach(self, token: _Attached) -> None:
        try:
            if token.labels is not None:
                token.labels.__exit__(None, None, None)
        finally:
            self._inner.detach(token.inner)


class _Attached:
    """What attach() returns for its detach()."""

    __slots__ = ("inner", "labels")

    def __init__(self, inner: Token[Context], labels: debug_info | None) -> None:
        self.inner = inner
        self.labels = labels


def _entered(before: Context, context: Context) -> debug_info | None:
    """The labels of the context's span, in force now; None where there are none to put on."""
    try:
        span = _sampled(context)
        if span is None or span == _sampled(before) or _in_event_loop():
            return None
        trace_id, span_id = span
        labels = debug_info(trace_id=f"{trace_id:032x}", span_id=f"{span_id:016x}")
        labels.__enter__()
    except Exception:
        # The program's own span must be active whatever becomes of its labels.
        return None
    return labels


def _sampled(context: Context) -> tuple[int, int] | None:
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
