"""An exporter of OpenTelemetry's SDK, for metrics or for spans.

It is found by its entry point, configured by OpenTelemetry's own variables, and asked what became
of what it was given.
What is sent is not this file's: otlp_data.py makes metrics, spans.py spans.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any, NamedTuple

from opscope.errors import AgentError, ConfigError

_BY_PROTOCOL = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_PAIR = ("CLIENT_KEY", "CLIENT_CERTIFICATE")
# Of a variable by which the SDK's exporter makes a session of its own.
_CREDENTIAL_PROVIDER = "_CREDENTIAL_PROVIDER"


class Signal(NamedTuple):
    """What there are exporters for."""

    name: str
    """As it stands in OTEL_* variables."""
    group: str
    """Of the SDK's entry points."""
    rejected: Callable[[bytes], tuple[int, str]]
    """What an answer says: how much was not taken, and why."""


def _rejected_metrics(content: bytes) -> tuple[int, str]:
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

    part = service.ExportMetricsServiceResponse.FromString(content).partial_success
    return part.rejected_data_points, part.error_message


def _rejected_spans(content: bytes) -> tuple[int, str]:
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

    part = service.ExportTraceServiceResponse.FromString(content).partial_success
    return part.rejected_spans, part.error_message


METRICS = Signal("METRICS", "opentelemetry_metrics_exporter", _rejected_metrics)
TRACES = Signal("TRACES", "opentelemetry_traces_exporter", _rejected_spans)


class SdkExporter:
    """One exporter of the SDK."""

    def __init__(self, signal: Signal, who: str, name: str = "", endpoint: str = "") -> None:
        """The one that OTEL_* variables say, but for what is given here.

        Raises AgentError or ConfigError for what it cannot be made of; `who` is how both call the
        one that wants it.
        """
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            raise AgentError(f"OTEL_SDK_DISABLED=true turns off {who}; leave out one of the two")
        _check_files(signal, os.environ)
        self._signal = signal
        self._log = _Log()
        self._rejected = 0, ""
        self._name = name or _name(signal, who, os.environ)
        self.sdk: Any = self._made(who, self._name, endpoint)

    @property
    def endpoint(self) -> str:
        """Where it sends to, or its name where it does not say so."""
        return str(getattr(self.sdk, "_endpoint", "") or self._name)

    def send(self, data: Any, **options: Any) -> tuple[int, str]:
        """How much of it the receiver would not take, and why. Raises AgentError where none of it
        arrived."""
        self._log.clear()
        self._rejected = 0, ""
        result = self.sdk.export(data, **options)
        if result.name != "SUCCESS":
            raise AgentError(f"{self.endpoint}: {self._log.text or 'it cannot be reached'}")
        return self._rejected

    def close(self) -> None:
        self.sdk.shutdown()

    def _made(self, who: str, name: str, endpoint: str) -> Any:
        found = metadata.entry_points(group=self._signal.group)
        if name not in found.names:
            known = ", ".join(sorted(found.names)) or "none"
            raise AgentError(f"{who}: OpenTelemetry has no exporter {name!r}; known: {known}")
        given: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        has_session = any(key.endswith(_CREDENTIAL_PROVIDER) for key in os.environ)
        if name == _BY_PROTOCOL["http/protobuf"] and not has_session:
            given["session"] = self._session()
        try:
            made = found[name].load()(**given)
        except Exception as error:
            raise AgentError(f"{who}: OpenTelemetry's {name}: {error}") from error
        if name == _BY_PROTOCOL["grpc"]:
            self._watch(made)
        return made

    def _session(self) -> Any:
        """Tells what it is answered, and holds to the certificate that OTEL_* variables give."""
        import requests

        session: Any = requests.Session()
        session.hooks["response"].append(self._look)
        merge = session.merge_environment_settings

        def merged(*arguments: Any) -> Any:
            # Left to itself it lets REQUESTS_CA_BUNDLE win over its own `verify`.
            settings = merge(*arguments)
            return settings if session.verify is True else {**settings, "verify": session.verify}

        session.merge_environment_settings = merged
        return session

    def _watch(self, made: Any) -> None:
        """Tells what is answered over gRPC. A lost connection is replaced by a new stub."""
        stub_of = getattr(made, "_stub", None)

        def watched(channel: Any) -> Any:
            stub = stub_of(channel)  # type: ignore[misc]
            export = stub.Export

            def exported(request: Any, **options: Any) -> Any:
                answer = export(request, **options)
                self._note(answer.SerializeToString)
                return answer

            stub.Export = exported
            return stub

        with suppress(AttributeError, TypeError):
            # One of another make is as it was: what it sends counts as taken.
            made._client = watched(made._channel)
            made._stub = watched

    def _look(self, response: Any, *_: object, **__: object) -> None:
        if response.ok:
            self._note(lambda: response.content)

    def _note(self, content: Callable[[], bytes]) -> None:
        """Whether only a part was taken, which the SDK's exporters do not look for. It must not be
        sent again."""
        with suppress(Exception):
            count, why = self._signal.rejected(content())
            self._rejected = count, why[:300]


def _name(signal: Signal, who: str, environ: Mapping[str, str]) -> str:
    """Of the entry point, by OTEL_{METRICS,TRACES}_EXPORTER and the protocol's variables."""
    variable = f"OTEL_{signal.name}_EXPORTER"
    wanted = environ.get(variable, "").split(",")[0].strip() or "otlp"
    if wanted == "none":
        raise ConfigError(f"{variable}='none': turns off {who}; leave it out")
    if wanted != "otlp":
        return wanted
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.name}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environ.get(variable, "").strip()
        if protocol:
            if protocol not in _BY_PROTOCOL:
                raise ConfigError(f"{variable}={protocol!r}: must be {' or '.join(_BY_PROTOCOL)}")
            return _BY_PROTOCOL[protocol]
    return _BY_PROTOCOL["http/protobuf"]


def _check_files(signal: Signal, environ: Mapping[str, str]) -> None:
    """Raises ConfigError for a certificate or key that cannot be read, or is one without the other,
    over which gRPC would end this process."""
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
                f"OTEL_EXPORTER_OTLP_{of}{missing.pop()} is missing: a key and its certificate go "
                "together"
            )


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
