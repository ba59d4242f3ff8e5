"""Pod Security's levels baseline and restricted, for the fields in our manifests and similar ones.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_CAPABILITIES = frozenset(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID"
    " SETPCAP SETUID SYS_CHROOT".split()
)
_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral persistentVolumeClaim projected secret".split()
)
_PROFILES = ("RuntimeDefault", "Localhost")


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"], *pod.get("ephemeralContainers", ())]


def baseline(pod: dict[str, Any]) -> Iterator[str]:
    """The fields of a pod's spec that violate the level."""
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield field
    for volume in pod.get("volumes", ()):
        if "hostPath" in volume:
            yield f"volume {volume['name']}: hostPath"
    if pod.get("securityContext", {}).get("sysctls"):
        yield "sysctls"
    for one in containers(pod):
        security = one.get("securityContext", {})
        if security.get("privileged"):
            yield f"{one['name']}: privileged"
        if set(security.get("capabilities", {}).get("add", ())) - _CAPABILITIES:
            yield f"{one['name']}: capabilities"
        if any(port.get("hostPort") for port in one.get("ports", ())):
            yield f"{one['name']}: hostPort"
        if security.get("procMount", "Default") != "Default":
            yield f"{one['name']}: procMount"
        for field in ("seLinuxOptions", "windowsOptions", "appArmorProfile"):
            if field in security or field in pod.get("securityContext", {}):
                yield f"{one['name']}: {field}"  # some are allowed; our manifests need none
        if _of(pod, one, "seccompProfile", {}).get("type", _PROFILES[0]) not in _PROFILES:
            yield f"{one['name']}: seccompProfile"


def restricted(pod: dict[str, Any]) -> Iterator[str]:
    yield from baseline(pod)
    for volume in pod.get("volumes", ()):
        if not _VOLUMES & volume.keys():
            yield f"volume {volume['name']}"
    for one in containers(pod):
        security = one.get("securityContext", {})
        if security.get("allowPrivilegeEscalation") is not False:
            yield f"{one['name']}: allowPrivilegeEscalation"
        if not _of(pod, one, "runAsNonRoot", False) or _of(pod, one, "runAsUser", 1) == 0:
            yield f"{one['name']}: root"
        if _of(pod, one, "seccompProfile", {}).get("type") not in _PROFILES:
            yield f"{one['name']}: seccompProfile"
        capabilities = security.get("capabilities", {})
        if "ALL" not in capabilities.get("drop", ()):
            yield f"{one['name']}: capabilities"
        if set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
            yield f"{one['name']}: capabilities"


def _of(pod: dict[str, Any], container: dict[str, Any], field: str, default: Any) -> Any:
    whole = pod.get("securityContext", {}).get(field, default)
    return container.get("securityContext", {}).get(field, whole)
