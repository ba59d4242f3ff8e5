"""What Opscope sees of the server: ranges with labels, and metrics.

Ranges: `serving::queue` from a request's arrival to the start of its batch, `serving::batch` around
a batch, and within it `serving::infer` around the model. Labels: `model_id`, `model_version`,
`batch_size`; and `trace_id` and `span_id` of the request's caller, for exemplars. A batch has those
of its first request that is traced.

Metrics have Triton's names, so that what people have built on Triton's works: OpenTelemetry's
semantic conventions have none for queues and batches of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opscope._native import ffi, lib
from opscope.record.metric import Metric
from opscope.record.ranges import operator, record_function
from opscope.record.scope import RecordScope
from opscope.serving.faults import Reason
from opscope.serving.trace_context import TraceContext

QUEUE, BATCH, INFER = "serving::queue", "serving::batch", "serving::infer"
_USER_SCOPE = int(RecordScope.USER_SCOPE)
_KEYS = {
    name: ffi.new("char[]", name.encode())
    for name in ("model_id", "model_version", "batch_size", "trace_id", "span_id")
}


def is_observed() -> bool:
    """Whether anything would see a range that opens now on this thread."""
    return bool(lib.opscope_has_callbacks_of(_USER_SCOPE))


@contextmanager
def labelled(labels: list[tuple[Any, bytes]]) -> Iterator[None]:
    """Labels for the ranges of a block without awaits; ends with the block."""
    guards = []
    try:
        for key, value in labels:
            guard = ffi.new("opscope_debug_info_guard *")
            if lib.opscope_debug_info_push(key, value, guard) == lib.OPSCOPE_OK:
                guards.append(guard)
        yield
    finally:
        while guards:
            lib.opscope_debug_info_pop(guards.pop())


def _of_trace(trace: TraceContext | None) -> list[tuple[Any, bytes]]:
    if trace is None:
        return []
    return [
        (_KEYS["trace_id"], trace.trace_id.encode()),
        (_KEYS["span_id"], trace.span_id.encode()),
    ]


class QueueRange:
    """An open range `serving::queue`, which ends on whatever thread."""

    __slots__ = ("_info", "_range")

    def __init__(self) -> None:
        self._info = ffi.new("opscope_range_info *")
        self._info.sequence_nr = -1
        self._info.is_async = True
        self._range = lib.opscope_range_begin(operator(QUEUE, RecordScope.USER_SCOPE), self._info)

    def end(self, *, failed: bool = False) -> None:
        if self._range:
            if failed:
                lib.opscope_range_fail(self._range)
            lib.opscope_range_end(self._range)
            self._range = None


class Observer:
    """The ranges and metrics of one version of a model. Metrics: see opscope/metrics.py."""

    def __init__(self, name: str, version: str) -> None:
        self._labels = [
            (_KEYS["model_id"], name.encode()),
            (_KEYS["model_version"], version.encode()),
        ]
        self._label = f"{name}/{version}"
        self.succeeded = Metric("nv_inference_request_success", self._label)
        self.rows = Metric("nv_inference_count", self._label)
        self.batches = Metric("nv_inference_exec_count", self._label)
        self.request_us = Metric("nv_inference_request_duration_us", self._label)
        self.queue_us = Metric("nv_inference_queue_duration_us", self._label)
        self.infer_us = Metric("nv_inference_compute_infer_duration_us", self._label)
        self.pending = Metric("nv_inference_pending_request_count", self._label, is_counter=False)

    def failed(self, reason: Reason) -> None:
        """Counts a request that failed, by Triton's word for the reason."""
        Metric("nv_inference_request_failure", f"{self._label}/{reason.word}").add()

    def queue_range(self, trace: TraceContext | None) -> QueueRange:
        """Opens the range of a request that begins to wait."""
        with labelled(self._labels + _of_trace(trace)):
            return QueueRange()

    @contextmanager
    def batch(self, rows: int, trace: TraceContext | None) -> Iterator[None]:
        """The range and the labels of a batch, on the thread that runs it."""
        if not is_observed():
            yield
            return
        size = [(_KEYS["batch_size"], str(rows).encode())]
        with labelled(self._labels + size + _of_trace(trace)), record_function(BATCH):
            yield
