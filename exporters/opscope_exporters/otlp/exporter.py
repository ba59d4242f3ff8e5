"""Pushes to OpenTelemetry: any metric exporter of its SDK, by default OTLP over HTTP or gRPC.

Configured by OpenTelemetry's own variables, which mean what its specification says: protocol,
endpoint, headers, compression, timeout, certificates, interval, resource attributes, temporality
preference. The SDK's exporter (sdk_exporter.py) sends, and retries with back-off, as OTLP has it;
what it gives up on is in the next export, as sums go on. What is sent is made in otlp_data.py.
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from opscope import config
from opscope.agent.exporter import ExportRefused, Option, Options, PushExporter
from opscope.agent.snapshot import Snapshot
from opscope.errors import AgentError, ConfigError
from opscope_exporters import sdk_exporter

OPTIONS = (
    Option("exporter", "", "entry point of the SDK's exporter, where not by OTEL_* variables"),
    Option("endpoint", "", "where to send to, where not by OTEL_* variables"),
    Option("delta_file", "", "keeps what was sent as deltas, where not in the segments' directory"),
)

_INTERVAL_MS, _TIMEOUT_MS = 60_000.0, 30_000.0


def create(options: Options) -> PushExporter:
    """Raises AgentError or ConfigError for what the SDK's exporter cannot be made of."""
    return Otlp(options)


class Otlp:
    def __init__(self, options: Options) -> None:
        # Imported here, as it takes a quarter of a second and no other exporter needs it.
        from opscope_exporters import delta, otlp_data, parts

        self.interval_s = _milliseconds("OTEL_METRIC_EXPORT_INTERVAL", _INTERVAL_MS) / 1e3
        self._timeout_ms = _milliseconds("OTEL_METRIC_EXPORT_TIMEOUT", _TIMEOUT_MS)
        self._exporter = sdk_exporter.SdkExporter(
            sdk_exporter.METRICS, "the exporter otlp", options["exporter"], options["endpoint"]
        )
        self._delta, self._data, self._parts = delta, otlp_data, parts
        temporality = preferred_temporality(self._exporter.sdk)
        self._builder = otlp_data.Builder(temporality)
        self._file = ""
        self._base: delta.Base | None = None
        if otlp_data.DELTA in temporality:
            self._file = options["delta_file"] or os.path.join(
                config.load().directory, "agent.otlp-delta"
            )
            self._base = delta.load(self._file)

    def export(self, snapshot: Snapshot) -> None:
        data = self._builder.build(snapshot, self._base)
        rejected, why = self._sent([data] if self._file else self._parts.parts(data))
        if self._file:
            self._base = self._delta.base_of(snapshot, self._data.host_counts(snapshot))
            try:
                self._delta.save(self._base, self._file)
            except OSError as error:
                raise AgentError(
                    f"sent, but {self._file} cannot be written ({error.strerror}): after a "
                    "restart of the agent deltas will be wrong; set --otlp-delta-file"
                ) from error
        if rejected:
            raise ExportRefused(f"{rejected} points were rejected: {why}")

    def _sent(self, parts: Iterable[Any]) -> tuple[int, str]:
        """How many points were rejected, and why. Raises AgentError where a part did not arrive:
        the next export has it again.

        One that is refused does not keep back those behind it; where two in a row do not arrive,
        nobody is there.
        """
        rejected, why = 0, ""
        failed: AgentError | None = None
        has_arrived = True
        for part in parts:
            try:
                count, reason = self._exporter.send(part, timeout_millis=self._timeout_ms)
            except AgentError as error:
                failed = failed or error
                if not has_arrived:
                    break
                has_arrived = False
            else:
                has_arrived = True
                rejected, why = rejected + count, reason or why
        if failed:
            raise failed
        return rejected, why

    def close(self) -> None:
        self._exporter.close()


def preferred_temporality(exporter: Any) -> Any:
    """Of an exporter of the SDK: otlp_data.Temporality."""
    from opentelemetry.sdk.metrics import Counter, Histogram

    from opscope_exporters.otlp_data import CUMULATIVE, Temporality

    # Where the SDK's own reader looks for it.
    preferred = getattr(exporter, "_preferred_temporality", None) or {}
    return Temporality(preferred.get(Counter, CUMULATIVE), preferred.get(Histogram, CUMULATIVE))


def _milliseconds(name: str, default: float) -> float:
    text = os.environ.get(name, "").strip()
    try:
        value = float(text or default)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ConfigError(f"{name}={text!r}: must be milliseconds above 0")
    return value
