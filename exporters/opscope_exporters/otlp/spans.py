"""Slow ranges as spans of OpenTelemetry's, under the span that was active in the program.

`opscope trace --spans` gives them to any span exporter of the SDK, by default OTLP over HTTP or
gRPC, as OTEL_* variables say; the observed program has no part in it. A range is a child of the
slow one around it, else of the program's span, with the same trace id, so the receiver shows it in
that trace if it is the one that the program's own spans go to. Which ranges are slow is
opscope/timeline/slow.py's to say.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from opscope.agent.snapshot import SeriesKey
from opscope.errors import AgentError, ConfigError
from opscope.timeline.slow import Slow
from opscope_exporters.resource import agent_resource, service_resource
from opscope_exporters.sdk_exporter import TRACES, SdkExporter

_BATCH_VARIABLE = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
_BATCH = 512
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Origin(NamedTuple):
    """The process that a trace is of."""

    service: str
    pid: int
    notes: Mapping[str, str]
    """What it says of itself."""


class Sent(NamedTuple):
    """What became of the spans."""

    endpoint: str
    taken_count: int
    rejected_count: int
    """That the receiver would not take, ..."""
    why: str
    """... and why."""


class SpanSender:
    def __init__(self) -> None:
        """Raises AgentError or ConfigError for OTEL_* variables that nothing can be made of."""
        self._batch = _batch(os.environ)
        self._exporter = SdkExporter(TRACES, "opscope trace --spans")

    def send(self, ranges: Sequence[Slow], origins: Sequence[Origin]) -> Sent:
        """Sends all of them; `origins` by the index of their trace.

        Raises AgentError where a batch did not arrive: what was sent before it stays sent, nothing
        is tried after it.
        """
        made = spans_of(ranges, origins)
        rejected, reason = 0, ""
        for begin in range(0, len(made), self._batch):
            try:
                count, why = self._exporter.send(made[begin : begin + self._batch])
            except AgentError as error:
                raise AgentError(
                    f"{begin} of {len(made)} spans were sent, then failed: {error}"
                ) from error
            rejected, reason = rejected + count, why or reason
        return Sent(self._exporter.endpoint, len(made) - rejected, rejected, reason)

    def close(self) -> None:
        self._exporter.close()


def spans_of(ranges: Sequence[Slow], origins: Sequence[Origin]) -> list[ReadableSpan]:
    """A span for each range, in the same order."""
    host = agent_resource()
    resources = [_resource(host, origin) for origin in origins]
    scope = InstrumentationScope("opscope", metadata.version("opscope"))
    contexts = {slow: _context(slow.trace_id, _new_id()) for slow in ranges}
    return [
        ReadableSpan(
            name=slow.name.name,
            context=context,
            parent=_parent(slow, contexts),
            resource=resources[slow.trace_index],
            attributes=_attributes(slow, origins[slow.trace_index]),
            status=Status(StatusCode.ERROR if slow.has_failed else StatusCode.UNSET),
            start_time=slow.start_unix_ns,
            end_time=slow.end_unix_ns,
            instrumentation_scope=scope,
        )
        for slow, context in contexts.items()
    ]


def _parent(slow: Slow, contexts: Mapping[Slow, SpanContext]) -> SpanContext:
    around = slow.around
    while around is not None and around not in contexts:
        around = around.around
    return _context(slow.trace_id, slow.span_id) if around is None else contexts[around]


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)


def _new_id() -> int:
    return secrets.randbits(64) or 1


def _resource(host: Mapping[str, str], origin: Origin) -> Resource:
    attributes: dict[str, Any] = {
        **service_resource(host, origin.service),
        "process.pid": origin.pid,
    }
    version = origin.notes.get("service.version")
    if version:
        attributes["service.version"] = version
    return Resource(attributes)


def _attributes(slow: Slow, origin: Origin) -> dict[str, Any]:
    """Those of the metrics under the same names, what the program says, and the thread."""
    key = SeriesKey(origin.service, slow.name.name, slow.phase, ())
    attributes: dict[str, Any] = {
        "op": key.op,
        "phase": key.phase,
        "framework": key.framework,
        "thread.id": slow.thread.system_id,
        "thread.name": slow.thread.name,
    }
    if slow.name.overload:
        attributes["overload"] = slow.name.overload
    if slow.shapes is not None:
        attributes["input_shapes"] = [
            "" if shape is None else "x".join(map(str, shape)) or "scalar" for shape in slow.shapes
        ]
    for name, value in slow.labels:
        attributes[name if name not in attributes else f"label.{name}"] = value
    return attributes


def _batch(environ: Mapping[str, str]) -> int:
    text = environ.get(_BATCH_VARIABLE, "").strip()
    if text and not (text.isdecimal() and int(text) > 0):
        raise ConfigError(f"{_BATCH_VARIABLE}={text!r}: must be a whole number above 0")
    return int(text or _BATCH)
