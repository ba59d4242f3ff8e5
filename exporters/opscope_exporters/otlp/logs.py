"""Pushes each process's first use of each API as a log record, with OTLP over HTTP or gRPC.

A record is an event of OpenTelemetry named `opscope.api.usage`, once for each process and API. Its
resource is that of the process's service and group, as for metrics. OpenTelemetry's own variables
configure it: OTEL_LOGS_EXPORTER, OTEL_EXPORTER_OTLP_LOGS_*, OTEL_BLRP_*. The SDK's exporter sends,
and retries as OTLP requires; if it gives up, the next export tries again. Records that a receiver
refuses are not sent to it again. use_queue.py remembers what was sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from opscope import __version__, config, extras
from opscope.errors import AgentError
from opscope.segments import liveness
from opscope.server.exporter import ExportRefused, Option, Options, PushExporter
from opscope_exporters.otlp import sdk_exporter
from opscope_exporters.otlp.exporter import Several, milliseconds
from opscope_exporters.otlp.use_queue import Queue, Use
from opscope_exporters.resource import agent_resource

if TYPE_CHECKING:
    from opscope.host.snapshot import Snapshot

OPTIONS = (
    Option("exporter", "", "entry point of the SDK's exporter; overrides the OTEL_* variables"),
    Option("endpoint", "", "address to send to; overrides the OTEL_* variables"),
    Option("sent_file", "", "file that remembers what was sent; by default beside the segments"),
)

EVENT = "opscope.api.usage"
# The SDK's own 1 s would make the agent read all segments each second, for events that are rare.
_INTERVAL_MS = 60_000.0
_BATCH_VARIABLE, _BATCH = "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512
_QUEUE_VARIABLE, _QUEUE = "OTEL_BLRP_MAX_QUEUE_SIZE", 16_384


def create(options: Options) -> PushExporter:
    """Raises AgentError or ConfigError if the SDK's exporter cannot be created, OpscopeError if the
    SDK is not installed."""
    who = "the exporter otlp_logs"
    with extras.needed(who, "otlp"):
        named = options["exporter"]
        names = [named] if named else sdk_exporter.names(sdk_exporter.LOGS, who, os.environ)
        made: list[OtlpLogs] = []
        try:
            for name in names:
                made.append(OtlpLogs(options, name, name if made else ""))
        except Exception:
            Several(made).close()
            raise
        return made[0] if len(made) == 1 else Several(made)


class OtlpLogs:
    def __init__(self, options: Options, name: str, suffix: str = "") -> None:
        """`suffix`: tells its file from those of other exporters."""
        self.interval_s = milliseconds("OTEL_BLRP_SCHEDULE_DELAY", _INTERVAL_MS) / 1e3
        self._batch = sdk_exporter.whole_number(_BATCH_VARIABLE, _BATCH)
        limit = sdk_exporter.whole_number(_QUEUE_VARIABLE, _QUEUE)
        self._dropped = 0
        self._records = _Records()
        self._exporter = sdk_exporter.SdkExporter(
            sdk_exporter.LOGS, "the exporter otlp_logs", name, options["endpoint"]
        )
        path = options["sent_file"] or os.path.join(config.load().directory, "agent.otlp-logs")
        self._queue = Queue(f"{path}.{suffix}" if suffix else path, self._records.boot, limit)

    def export(self, snapshot: Snapshot) -> None:
        self._dropped += self._queue.add(snapshot)
        rejected, why = 0, ""
        try:
            while batch := self._queue.first(self._batch):
                try:
                    count, reason = self._exporter.send(self._records.of(batch, snapshot))
                except AgentError as error:
                    if not self._exporter.is_refused:
                        raise
                    self._queue.refused(batch)
                    count, reason = len(batch), str(error)
                else:
                    self._queue.sent(batch)
                rejected, why = rejected + count, reason or why
        finally:
            self._queue.save()
        if rejected:
            raise ExportRefused(f"the receiver rejected {rejected} log records: {why}")
        dropped, self._dropped = self._dropped, 0
        if dropped:
            raise ExportRefused(f"{dropped} log records were dropped: the queue was full")

    def close(self) -> None:
        self._exporter.close()


class _Records:
    """Makes the SDK's log records."""

    def __init__(self) -> None:
        # Imported here: the import takes a quarter of a second, and only this exporter needs it.
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        from opscope_exporters.otlp import data
        from opscope_exporters.resource import SCHEMA_URL

        try:
            from opentelemetry._logs import LogRecord, SeverityNumber
            from opentelemetry.sdk._logs import ReadableLogRecord
        except ImportError as error:
            raise AgentError(
                "the exporter otlp_logs needs opentelemetry-sdk 1.39 or later"
            ) from error
        self.boot = liveness.here().boot_id.hex()
        self._agent = agent_resource()
        self._record: Any = LogRecord
        self._readable: Any = ReadableLogRecord
        self._level = SeverityNumber.INFO
        self._resource_of = data.resource_of
        self._scope = InstrumentationScope(data.SCOPE, __version__, SCHEMA_URL)

    def of(self, uses: Sequence[Use], snapshot: Snapshot) -> list[Any]:
        """Their time is unknown: they only have the time at which the agent saw them."""
        resources = {
            source: self._resource_of(self._agent, *source, snapshot)
            for source in {(use.service, use.group) for use in uses}
        }
        return [
            self._readable(
                self._record(
                    observed_timestamp=use.seen_unix_ns,
                    severity_number=self._level,
                    severity_text=self._level.name,
                    body=f"first use of {use.api}",
                    attributes=self._attributes(use),
                    event_name=EVENT,
                ),
                resources[use.service, use.group],
                self._scope,
            )
            for use in uses
        ]

    def _attributes(self, use: Use) -> Mapping[str, str | int]:
        text = "\0".join((self.boot, use.process, use.api))
        return {
            "api": use.api,
            "service_name": use.service,
            "process.pid": use.pid,
            # The same whenever it is sent, so that a receiver can tell a repetition.
            "log.record.uid": blake2b(text.encode(), digest_size=16).hexdigest(),
        }
