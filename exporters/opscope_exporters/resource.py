"""The agent's OpenTelemetry resource, also as Prometheus's target_info.

OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME override detected values. This imports nothing of the
SDK, which a page does not need.
"""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Mapping
from urllib.parse import unquote

from opscope import __version__
from opscope_exporters.samples import Labels, with_labels

AGENT_SERVICE = "opscope-agent"
SDK = {
    "telemetry.sdk.name": "opscope",
    "telemetry.sdk.language": "python",
    "telemetry.sdk.version": __version__,
}
"""What made the telemetry; OpenTelemetry asks for it in every resource."""
SCHEMA_URL = "https://opentelemetry.io/schemas/1.27.0"
"""The version of the semantic conventions whose names the resources use."""


def agent_resource(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The resource of this agent: the agent itself, and the host that it observes."""
    environ = os.environ if environ is None else environ
    given = _given(environ)
    host = given.get("host.name") or socket.gethostname()
    resource = {
        "service.name": AGENT_SERVICE,
        "service.version": __version__,
        "service.instance.id": host,
        "host.name": host,
        "host.arch": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os.type": platform.system().lower(),
        **given,
    }
    name = environ.get("OTEL_SERVICE_NAME", "").strip()
    return {**resource, "service.name": name} if name else resource


def service_resource(
    agent: Mapping[str, str], service: str, attributes: Labels = ()
) -> dict[str, str]:
    """The resource of a service observed on the agent's host: the attributes of its processes
    (host/identity.py), and the agent's attributes that apply to the whole host."""
    return {
        **{key: value for key, value in agent.items() if not _OF_AGENT.match(key)},
        **dict(attributes),
        "service.name": service,
    }


# Attributes of the agent alone: its identity, and the pod and container that it runs in.
_OF_AGENT = re.compile(
    r"service\.(name|version|namespace)$|(container|process|telemetry)\.|k8s\.(?!cluster\.|node\.)"
)


def target_labels(environ: Mapping[str, str] | None = None) -> Labels:
    """The agent's resource as labels of target_info."""
    return with_labels({}, tuple(sorted(agent_resource(environ).items())))


# OpenTelemetry's names.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def _given(environ: Mapping[str, str]) -> dict[str, str]:
    """The contents of OTEL_RESOURCE_ATTRIBUTES: key=value pairs, comma-separated, with
    percent-encoded values. Empty values say nothing."""
    found = {}
    for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, _, value = pair.partition("=")
        value = unquote(value.strip())
        if key.strip() and value.strip():
            found[key.strip()] = value
    return found
