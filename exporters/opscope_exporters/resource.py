"""Who exports: OpenTelemetry's resource of this agent, as it is and as Prometheus's target_info.

What OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say wins over what is found out here. Nothing of
the SDK is imported for it, as a page needs none.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from urllib.parse import unquote

from opscope_exporters.samples import Labels, label_name

AGENT_SERVICE = "opscope-agent"


def agent_resource(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The resource of this agent: itself, and the host that it stands for."""
    environ = os.environ if environ is None else environ
    given = _given(environ)
    host = given.get("host.name") or socket.gethostname()
    resource = {
        "service.name": AGENT_SERVICE,
        "service.version": _version(),
        "service.instance.id": host,
        "host.name": host,
        "host.arch": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os.type": platform.system().lower(),
        **given,
    }
    name = environ.get("OTEL_SERVICE_NAME", "").strip()
    return {**resource, "service.name": name} if name else resource


def service_resource(agent: Mapping[str, str], service: str) -> dict[str, str]:
    """The resource of a service that was observed on the agent's host."""
    mine = ("service.name", "service.version")
    return {
        "service.name": service,
        **{key: value for key, value in agent.items() if key not in mine},
    }


def target_labels(environ: Mapping[str, str] | None = None) -> Labels:
    """The agent's resource as labels of target_info."""
    return tuple((label_name(key), value) for key, value in sorted(agent_resource(environ).items()))


# As OpenTelemetry calls them.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@cache
def _version() -> str:
    return metadata.version("opscope")


def _given(environ: Mapping[str, str]) -> dict[str, str]:
    """What OTEL_RESOURCE_ATTRIBUTES holds: key=value by commas, values percent-encoded."""
    found = {}
    for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, equals, value = pair.partition("=")
        if equals and key.strip():
            found[key.strip()] = unquote(value.strip())
    return found
