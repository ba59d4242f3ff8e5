"""Pushes with any metric exporter of the OpenTelemetry SDK, by default OTLP over HTTP or gRPC.

OpenTelemetry's own variables configure it, as specified: protocol, endpoint, headers, compression,
timeout, certificates, interval, resource attributes, temporality preference. The SDK's exporter
(sdk_exporter.py) sends, and retries with back-off as OTLP requires; if it gives up, the next export
includes the data, since sums continue. data.py builds the data.
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opscope import config, extras
from opscope.errors import AgentError, ConfigError
from opscope.server.exporter import ExportRefused, Option, Options, PushExporter
from opscope_exporters.otlp import sdk_exporter

if TYPE_CHECKING:
    from opscope.host.snapshot import Snapshot

OPTIONS = (
    Option("exporter", "", "entry point of the SDK's exporter; overrides the OTEL_* variables"),
    Option("endpoint", "", "address to send to; overrides the OTEL_* variables"),
    Option("delta_file", "", "file that remembers sent deltas; by default beside the segments"),
)

_INTERVAL_MS, _TIMEOUT_MS, _MOST_MS = 60_000.0, 30_000.0, 1e12


def create(options: Options) -> PushExporter:
    """Raises AgentError or ConfigError if the SDK's exporter cannot be created, OpscopeError if the
    SDK is not installed."""
    with extras.needed("the exporter otlp", "otlp"):
        named = options["exporter"]
        if named:
            return Otlp(options, named)
        names = sdk_exporter.names(sdk_exporter.METRICS, "the exporter otlp", os.environ)
        made: list[Otlp] = []
        try:
            for name in names:
                made.append(Otlp(options, name, name if made else ""))
        except Exception:
            Several(made).close()
            raise
        return made[0] if len(made) == 1 else Several(made)


class Several:
    """The exporters of OTEL_{METRICS,LOGS}_EXPORTER, if it names more than one."""

    def __init__(self, exporters: Sequence[PushExporter]) -> None:
        self._exporters = exporters
        self.interval_s = min((one.interval_s for one in exporters), default=0.0)

    def export(self, snapshot: Snapshot) -> None:
        """To each of them: a failure of one does not keep the data from the others. Raises
        AgentError if one has failed, ExportRefused if receivers have only refused."""
        failures: list[AgentError] = []
        for one in self._exporters:
            try:
                one.export(snapshot)
            except AgentError as error:
                failures.append(error)
        if failures:
            text = "; ".join(map(str, failures))
            refused = all(isinstance(error, ExportRefused) for error in failures)
            raise (ExportRefused if refused else AgentError)(text)

    def close(self) -> None:
        for one in self._exporters:
            one.close()


class Otlp:
    def __init__(self, options: Options, name: str, suffix: str = "") -> None:
        """`name`: the SDK's entry point. `suffix`: tells its file of deltas from those of other
        exporters."""
        # Imported here: the import takes a quarter of a second, and only this exporter needs it.
        from opscope_exporters.otlp import batches, delta
        from opscope_exporters.otlp import data as otlp_data

        self.interval_s = milliseconds("OTEL_METRIC_EXPORT_INTERVAL", _INTERVAL_MS) / 1e3
        self._timeout_ms = milliseconds("OTEL_METRIC_EXPORT_TIMEOUT", _TIMEOUT_MS)
        self._exporter = sdk_exporter.SdkExporter(
            sdk_exporter.METRICS, "the exporter otlp", name, options["endpoint"]
        )
        self._delta, self._data, self._batches = delta, otlp_data, batches
        temporality = preferred_temporality(self._exporter.sdk)
        self._builder = otlp_data.Builder(temporality)
        self._file = ""
        self._base: delta.Base | None = None
        if otlp_data.DELTA in temporality:
            self._file = options["delta_file"] or os.path.join(
                config.load().directory, "agent.otlp-delta"
            )
            if suffix:
                self._file += f".{suffix}"
            self._base = delta.load(self._file)

    def export(self, snapshot: Snapshot) -> None:
        data = self._builder.build(snapshot, self._base)
        rejected, why = self._sent([data] if self._file else self._batches.parts(data))
        if self._file:
            self._base = self._delta.base_of(snapshot, self._data.host_counts(snapshot))
            try:
                self._delta.save(self._base, self._file)
            except OSError as error:
                raise AgentError(
                    f"sent, but cannot write {self._file} ({error.strerror}): deltas will be wrong "
                    "after a restart of the agent; set --otlp-delta-file"
                ) from error
        if rejected:
            raise ExportRefused(f"the receiver rejected {rejected} points: {why}")

    def _sent(self, parts: Iterable[Any]) -> tuple[int, str]:
        """Sends the parts; returns the number of rejected points, and the reason. Raises AgentError
        if a part did not arrive; the next export then includes it.

        A rejected part does not stop the following ones. After two parts in a row that did not
        arrive, the receiver counts as unreachable.
        """
        rejected, why = 0, ""
        failed: AgentError | None = None
        has_arrived = True
        for part in parts:
            try:
                count, reason = self._exporter.send(part, timeout_millis=self._timeout_ms)
            except AgentError as error:
                failed = error  # the latest reason is the one to act on
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
    """The temporality (data.Temporality) that an SDK exporter prefers."""
    from opentelemetry.sdk.metrics import Counter, Histogram

    from opscope_exporters.otlp.data import CUMULATIVE, Temporality

    # The attributes that the SDK's own reader uses.
    preferred = getattr(exporter, "_preferred_temporality", None) or {}
    return Temporality(preferred.get(Counter, CUMULATIVE), preferred.get(Histogram, CUMULATIVE))


def milliseconds(name: str, default: float) -> float:
    """The variable's value. Raises ConfigError."""
    text = os.environ.get(name, "").strip()
    try:
        value = float(text or default)
    except ValueError:
        value = -1.0
    if not 0 < value <= _MOST_MS:
        raise ConfigError(f"{name}={text!r}: must be milliseconds above 0, at most {_MOST_MS:g}")
    return value
