"""Pushes to OpenTelemetry: any metric exporter of its SDK, by default OTLP over HTTP or gRPC.

Configured by OpenTelemetry's own variables, which mean what its specification says: protocol,
endpoint, headers, compression, timeout, certificates, interval, resource attributes, temporality
preference. The SDK's exporter sends, and retries with back-off, as OTLP has it; what it gives up on
is in the next export, as sums go on. What is sent is made in otlp_data.py.
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

from opscope import config
from opscope.agent.exporter import ExportRefused, Option, Options, PushExporter
from opscope.agent.snapshot import Snapshot
from opscope.errors import AgentError, ConfigError

OPTIONS = (
    Option("exporter", "", "entry point of the SDK's exporter, where not by OTEL_* variables"),
    Option("endpoint", "", "where to send to, where not by OTEL_* variables"),
    Option("delta_file", "", "keeps what was sent as deltas, where not in the segments' directory"),
)

_GROUP = "opentelemetry_metrics_exporter"
_BY_PROTOCOL = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
# Of a variable by which the SDK's exporter makes a session of its own.
_CREDENTIAL_PROVIDER = "_CREDENTIAL_PROVIDER"
_INTERVAL_MS, _TIMEOUT_MS = 60_000.0, 30_000.0


def create(options: Options) -> PushExporter:
    """Raises AgentError or ConfigError for what the SDK's exporter cannot be made of."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        raise AgentError(
            "OTEL_SDK_DISABLED=true turns off the exporter otlp; leave out one of the two"
        )
    return Otlp(options)


class Otlp:
    def __init__(self, options: Options) -> None:
        # Imported here, as it takes a quarter of a second and no other exporter needs it.
        from opentelemetry.sdk.metrics.export import MetricExportResult

        from opscope_exporters import delta, otlp_data

        self.interval_s = _milliseconds("OTEL_METRIC_EXPORT_INTERVAL", _INTERVAL_MS) / 1e3
        self._timeout_ms = _milliseconds("OTEL_METRIC_EXPORT_TIMEOUT", _TIMEOUT_MS)
        self._success = MetricExportResult.SUCCESS
        self._log = _Log()
        self._rejected = ""
        self._exporter = self._sdk_exporter(options)
        self._delta, self._data = delta, otlp_data
        temporality = preferred_temporality(self._exporter)
        self._builder = otlp_data.Builder(temporality)
        self._file = ""
        self._base: delta.Base | None = None
        if otlp_data.DELTA in temporality:
            self._file = options["delta_file"] or os.path.join(
                config.load().directory, "agent.otlp-delta"
            )
            self._base = delta.load(self._file)

    def export(self, snapshot: Snapshot) -> None:
        self._log.clear()
        self._rejected = ""
        data = self._builder.build(snapshot, self._base)
        result = self._exporter.export(data, timeout_millis=self._timeout_ms)
        if result is not self._success:
            endpoint = getattr(self._exporter, "_endpoint", "the receiver")
            raise AgentError(f"{endpoint}: {self._log.text or 'it cannot be reached'}")
        if self._file:
            self._base = self._delta.base_of(snapshot, self._data.host_counts(snapshot))
            try:
                self._delta.save(self._base, self._file)
            except OSError as error:
                raise AgentError(
                    f"sent, but {self._file} cannot be written ({error.strerror}): after a "
                    "restart of the agent deltas will be wrong; set --otlp-delta-file"
                ) from error

        if self._rejected:
            raise ExportRefused(self._rejected)

    def close(self) -> None:
        self._exporter.shutdown()

    def _sdk_exporter(self, options: Options) -> Any:
        name = options["exporter"] or _name(os.environ)
        found = metadata.entry_points(group=_GROUP)
        if name not in found.names:
            known = ", ".join(sorted(found.names)) or "none"
            raise AgentError(
                f"exporter otlp: OpenTelemetry has no exporter {name!r}; known: {known}"
            )
        given: dict[str, Any] = {"endpoint": options["endpoint"]} if options["endpoint"] else {}
        has_session = any(key.endswith(_CREDENTIAL_PROVIDER) for key in os.environ)
        if name == _BY_PROTOCOL["http/protobuf"] and not has_session:
            import requests

            given["session"] = requests.Session()
            given["session"].hooks["response"].append(self._look)
        try:
            return found[name].load()(**given)
        except Exception as error:
            raise AgentError(f"exporter otlp: OpenTelemetry's {name}: {error}") from error

    def _look(self, response: Any, *_: object, **__: object) -> None:
        """Whether only a part was taken, which the SDK's exporter does not look for. It must not be
        sent again; sums go on all the same."""
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

        with suppress(Exception):
            answer = service.ExportMetricsServiceResponse.FromString(response.content)
            part = answer.partial_success
            if response.ok and part.rejected_data_points:
                self._rejected = (
                    f"{part.rejected_data_points} points were rejected: {part.error_message[:300]}"
                )


def _name(environ: Mapping[str, str]) -> str:
    """Of the entry point, by OTEL_METRICS_EXPORTER and the protocol's variables."""
    wanted = environ.get("OTEL_METRICS_EXPORTER", "").split(",")[0].strip() or "otlp"
    if wanted == "none":
        raise ConfigError("OTEL_METRICS_EXPORTER='none': turns off the exporter otlp; leave it out")
    if wanted != "otlp":
        return wanted
    for variable in ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environ.get(variable, "").strip()
        if protocol:
            if protocol not in _BY_PROTOCOL:
                raise ConfigError(f"{variable}={protocol!r}: must be {' or '.join(_BY_PROTOCOL)}")
            return _BY_PROTOCOL[protocol]
    return _BY_PROTOCOL["http/protobuf"]


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


class _Log(logging.Handler):
    """Takes what the SDK logs, which would else be on standard error at each try."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[int, str] = {}
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self)
        logger.propagate = False

    def clear(self) -> None:
        self._said.clear()

    def emit(self, record: logging.LogRecord) -> None:
        self._said[record.levelno] = " ".join(record.getMessage().split())[:300]

    @property
    def text(self) -> str:
        """What came of it, and what was in the way."""
        return "; ".join(self._said[level] for level in sorted(self._said, reverse=True))
