"""An exporter of the OpenTelemetry SDK, for metrics, spans or logs.

It is found by its entry point, configured by OpenTelemetry's own variables, and reports what the
receiver rejected. data.py makes metrics, spans.py spans, logs.py logs.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any, NamedTuple

from opscope import extras
from opscope.errors import AgentError, ConfigError

_BY_PROTOCOL = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_PAIR = ("CLIENT_KEY", "CLIENT_CERTIFICATE")
_LEAST_PAUSE_S, _MOST_TIMEOUT_S = 0.8, 86400.0
# The SDK's entry point group, which its HTTP exporter ignores when it is given a session.
_CREDENTIAL_PROVIDERS = "opentelemetry_otlp_credential_provider"


class Signal(NamedTuple):
    """The kind of data that an exporter sends."""

    name: str
    """Its name in OTEL_* variables."""
    group: str
    """Its group of the SDK's entry points."""
    rejected: Callable[[bytes], tuple[int, str]]
    """Parses an answer: the number of rejected items, and the reason."""


def _rejected_metrics(content: bytes) -> tuple[int, str]:
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

    part = service.ExportMetricsServiceResponse.FromString(content).partial_success
    return part.rejected_data_points, part.error_message


def _rejected_spans(content: bytes) -> tuple[int, str]:
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

    part = service.ExportTraceServiceResponse.FromString(content).partial_success
    return part.rejected_spans, part.error_message


def _rejected_logs(content: bytes) -> tuple[int, str]:
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as service

    part = service.ExportLogsServiceResponse.FromString(content).partial_success
    return part.rejected_log_records, part.error_message


METRICS = Signal("METRICS", "opentelemetry_metrics_exporter", _rejected_metrics)
TRACES = Signal("TRACES", "opentelemetry_traces_exporter", _rejected_spans)
LOGS = Signal("LOGS", "opentelemetry_logs_exporter", _rejected_logs)

# The answers after which OTLP allows to send the same data again.
# https://opentelemetry.io/docs/specs/otlp/#failures
_RETRYABLE = frozenset({429, 502, 503, 504})
_RETRYABLE_GRPC = frozenset(
    {
        "CANCELLED",
        "DEADLINE_EXCEEDED",
        "RESOURCE_EXHAUSTED",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNAVAILABLE",
        "DATA_LOSS",
    }
)


class SdkExporter:
    """One exporter of the SDK."""

    def __init__(self, signal: Signal, who: str, name: str = "", endpoint: str = "") -> None:
        """Creates the exporter `name`, by default the first that the OTEL_* variables select.

        Raises AgentError or ConfigError on failure; `who` is the name of its user in both.
        """
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            raise AgentError(f"OTEL_SDK_DISABLED=true turns off {who}; remove one of the two")
        _check_timeout(signal, os.environ)
        _check_files(signal, os.environ)
        self._signal = signal
        self._log = _Log()
        self._rejected = 0, ""
        self.is_refused = False
        """Whether the last answer says that the same data must not be sent again."""
        self._failed_at: float | None = None
        """When an attempt of the current export over gRPC failed."""
        self._is_closed = threading.Event()
        self._name = name or names(signal, who, os.environ)[0]
        self.sdk: Any = self._made(who, self._name, endpoint)

    @property
    def endpoint(self) -> str:
        """The address that it sends to, or its name if that is unknown."""
        return str(getattr(self.sdk, "_endpoint", "") or self._name)

    def send(self, data: Any, **options: Any) -> tuple[int, str]:
        """Sends the data; returns the number of rejected items, and the reason. Raises AgentError
        if nothing arrived."""
        self._log.clear()
        self._rejected = 0, ""
        self.is_refused = False
        self._failed_at = None
        try:
            result = self.sdk.export(data, **options)
        except Exception as error:
            raise AgentError(f"{self.endpoint}: {error}") from error
        if result.name != "SUCCESS":
            raise AgentError(f"{self.endpoint}: {self._log.text or 'unreachable'}")
        return self._rejected

    def close(self) -> None:
        self._is_closed.set()
        self.sdk.shutdown()

    def _made(self, who: str, name: str, endpoint: str) -> Any:
        found = metadata.entry_points(group=self._signal.group)
        if name not in found.names and name in _BY_PROTOCOL.values():
            raise AgentError(extras.line(who, "otlp"))
        if name not in found.names:
            known = ", ".join(sorted(found.names)) or "none"
            raise AgentError(f"{who}: OpenTelemetry has no exporter {name!r}; known: {known}")
        given: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        try:
            if name == _BY_PROTOCOL["http/protobuf"]:
                from opscope_exporters.otlp import http as otlp_http

                provided = _provided_session(self._signal, os.environ)
                given["session"] = otlp_http.session(self._look, provided)
            made = found[name].load()(**given)
        except Exception as error:
            raise AgentError(f"{who}: OpenTelemetry's {name}: {error}") from error
        # The SDK drops log messages that repeat, so that a failure would have no reason.
        logging.getLogger(type(made).__module__).filters.clear()
        if name == _BY_PROTOCOL["grpc"]:
            self._watch(made)
        return made

    def _watch(self, made: Any) -> None:
        """Observes answers over gRPC. A lost connection is replaced by a new stub."""
        stub_of = getattr(made, "_stub", None)

        def watched(channel: Any) -> Any:
            stub = stub_of(channel)  # type: ignore[misc]
            export = stub.Export

            def exported(request: Any, **options: Any) -> Any:
                self._pause(options)
                try:
                    answer = export(request, **options)
                except Exception as error:
                    self._failed_at = time.monotonic()
                    code = getattr(error, "code", lambda: None)()
                    self.is_refused = code is not None and code.name not in _RETRYABLE_GRPC
                    raise
                self._note(answer.SerializeToString)
                return answer

            stub.Export = exported
            return stub

        with suppress(AttributeError, TypeError):
            # An exporter of another kind stays unchanged: what it sends counts as accepted.
            made._client = watched(made._channel)
            made._stub = watched

    def _pause(self, options: dict[str, Any]) -> None:
        """Enforces the SDK's own minimum pause, even if the receiver asks for an earlier retry."""
        if self._failed_at is not None:
            now = time.monotonic()
            self._is_closed.wait(max(self._failed_at + _LEAST_PAUSE_S - now, 0.0))
            if options.get("timeout") is not None:
                options["timeout"] -= time.monotonic() - now

    def _look(self, response: Any, *_: object, **__: object) -> None:
        self.is_refused = not response.ok and response.status_code not in _RETRYABLE
        if response.ok:
            self._note(lambda: response.content)

    def _note(self, content: Callable[[], bytes]) -> None:
        """Records a partial rejection, which the SDK's exporters ignore. The data must not be sent
        again."""
        with suppress(Exception):
            count, why = self._signal.rejected(content())
            self._rejected = count, why[:300]


def names(signal: Signal, who: str, environ: Mapping[str, str]) -> list[str]:
    """Entry points from OTEL_{METRICS,TRACES,LOGS}_EXPORTER (one or more, comma-separated) and
    the protocol's variables. Raises ConfigError for a value that does not fit."""
    variable = f"OTEL_{signal.name}_EXPORTER"
    given = environ.get(variable, "")
    wanted = [*filter(None, map(str.strip, given.split(",")))] or ["otlp"]
    if "none" in wanted:
        raise ConfigError(f"{variable}={given!r}: turns off {who}; unset it")
    if "prometheus" in wanted:
        raise ConfigError(
            f"{variable}={given!r}: prometheus is a page, not a push: leave it out here, and run "
            "`opscope agent --exporter prometheus`, too"
        )
    found = (_otlp(signal, environ) if name == "otlp" else name for name in wanted)
    return [*dict.fromkeys(found)]


def whole_number(variable: str, default: int) -> int:
    """The variable's value, at least 1. Raises ConfigError."""
    text = os.environ.get(variable, "").strip()
    if text and not (text.isdecimal() and int(text) > 0):
        raise ConfigError(f"{variable}={text!r}: must be a whole number above 0")
    return int(text or default)


def _otlp(signal: Signal, environ: Mapping[str, str]) -> str:
    """The entry point of the protocol."""
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.name}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environ.get(variable, "").strip()
        if protocol:
            if protocol not in _BY_PROTOCOL:
                raise ConfigError(f"{variable}={protocol!r}: must be {' or '.join(_BY_PROTOCOL)}")
            return _BY_PROTOCOL[protocol]
    return _BY_PROTOCOL["http/protobuf"]


def _provided_session(signal: Signal, environ: Mapping[str, str]) -> Any:
    """The session of the configured credential provider; None without one. Raises the provider's
    exceptions, or LookupError."""
    for of in ("", f"{signal.name}_"):
        name = environ.get(f"OTEL_PYTHON_EXPORTER_OTLP_HTTP_{of}CREDENTIAL_PROVIDER", "")
        if name:
            found = metadata.entry_points(group=_CREDENTIAL_PROVIDERS)
            if name not in found.names:
                raise LookupError(f"no {_CREDENTIAL_PROVIDERS} {name!r} is installed")
            return found[name].load()()
    return None


def _check_timeout(signal: Signal, environ: Mapping[str, str]) -> None:
    """Raises ConfigError for an unusable timeout, since the SDK accepts any number."""
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.name}_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"):
        text = environ.get(variable, "")
        try:
            seconds = float(text or 1.0)
        except ValueError:
            seconds = math.nan
        if not 0.0 < seconds <= _MOST_TIMEOUT_S:
            raise ConfigError(
                f"{variable}={text!r}: must be seconds above 0, at most {_MOST_TIMEOUT_S:g}"
            )


def _check_files(signal: Signal, environ: Mapping[str, str]) -> None:
    """Raises ConfigError for an unreadable certificate or key, or one without the other; gRPC would
    abort this process."""
    for of in (f"{signal.name}_", ""):
        given = []
        for kind in ("CERTIFICATE", *_PAIR):
            variable = f"OTEL_EXPORTER_OTLP_{of}{kind}"
            path = environ.get(variable, "").strip()
            if path:
                given.append(kind)
                try:
                    open(path, "rb").close()
                except OSError as error:
                    raise ConfigError(f"{variable}={path!r}: {error.strerror}") from error
        if len(missing := set(_PAIR) - set(given)) == 1:
            raise ConfigError(
                f"OTEL_EXPORTER_OTLP_{of}{missing.pop()} is missing: a client key and its "
                "certificate must be set together"
            )


class _Log(logging.Handler):
    """Collects the SDK's log messages, which otherwise go to standard error at each attempt."""

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
        """The outcome and its cause."""
        return "; ".join(self._said[level] for level in sorted(self._said, reverse=True))
