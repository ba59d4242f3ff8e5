"""Slow ranges as OpenTelemetry spans, below the span that was active in the program.

`opscope trace --spans` passes them to any span exporter of the SDK, by default OTLP over HTTP or
gRPC, as OTEL_* variables configure; the observed program is not involved. A range is a child of the
slow range around it, or else of the program's span, with the same trace id; so a receiver that also
gets the program's own spans shows it in that trace. opscope/timeline/slow.py selects the ranges.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from opscope import __version__
from opscope.errors import AgentError
from opscope.host import identity
from opscope.host.snapshot import SeriesKey
from opscope.timeline.slow import Slow
from opscope_exporters.otlp.sdk_exporter import TRACES, SdkExporter, whole_number
from opscope_exporters.resource import SCHEMA_URL, SDK, agent_resource, service_resource

_BATCH_VARIABLE = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
_BATCH = 512
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Origin(NamedTuple):
    """The process of a trace."""

    service: str
    pid: int
    notes: Mapping[str, str]
    """Its own resource attributes."""


class Sent(NamedTuple):
    """The result of sending spans."""

    endpoint: str
    taken_count: int
    rejected_count: int
    """Number of spans that the receiver rejected, ..."""
    why: str
    """... and why."""


class SpanSender:
    def __init__(self) -> None:
        """Raises AgentError or ConfigError for unusable OTEL_* variables."""
        self._batch = whole_number(_BATCH_VARIABLE, _BATCH)
        self._exporter = SdkExporter(TRACES, "opscope trace --spans")

    def send(self, ranges: Sequence[Slow], origins: Sequence[Origin]) -> Sent:
        """Sends all spans; `origins` by the index of their trace.

        Raises AgentError if a batch did not arrive: earlier batches stay sent, later ones are not
        attempted.
        """
        made = spans_of(ranges, origins)
        rejected, reason = 0, ""
        for begin in range(0, len(made), self._batch):
            try:
                count, why = self._exporter.send(made[begin : begin + self._batch])
            except AgentError as error:
                raise AgentError(
                    f"sent {begin} of {len(made)} spans, then failed: {error}"
                ) from error
            rejected, reason = rejected + count, why or reason
        return Sent(self._exporter.endpoint, len(made) - rejected, rejected, reason)

    def close(self) -> None:
        self._exporter.close()


def spans_of(ranges: Sequence[Slow], origins: Sequence[Origin]) -> list[ReadableSpan]:
    """A span for each range, in the same order."""
    host = agent_resource()
    resources = [_resource(host, origin) for origin in origins]
    scope = InstrumentationScope("opscope", __version__, SCHEMA_URL)
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
        **service_resource(host, origin.service, identity.attributes(origin.notes, ranks=True)),
        **SDK,
        "process.pid": origin.pid,
    }
    version = origin.notes.get("service.version")
    if version:
        attributes["service.version"] = version
    return Resource(attributes, SCHEMA_URL)


def _attributes(slow: Slow, origin: Origin) -> dict[str, Any]:
    """The metrics' labels under the same names, the program's labels, and the thread."""
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
