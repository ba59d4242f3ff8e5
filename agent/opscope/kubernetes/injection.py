"""What an observed pod gets: the payload, the variables that attach, and an agent of its own.

The pod shares nothing with the node: no hostPath, no capability, no host namespace, so that Pod
Security's level `restricted` admits it as before. agent/deploy/attach-own-agent.yaml is the same by
hand. Pure: a pod in, JSON patch operations (RFC 6902) out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

INJECT = "opscope.dev/inject"
"""`true` on a pod or its namespace; `false` on a pod overrides its namespace."""
CONTAINERS = "opscope.dev/containers"
"""Names of the containers to observe, comma-separated; all of them without it."""
USER = "opscope.dev/run-as-user"
"""The user id of the containers, if the pod does not state it."""
PYTHON_PATH = "opscope.dev/python-path"
"""The image's own PYTHONPATH, which a variable of the pod would replace."""
PORT = 9464
_PAYLOAD, _SEGMENTS = "opscope-payload", "opscope-segments"
_PAYLOAD_AT, _SEGMENTS_AT = "/opt/opscope", "/opscope/shm"
_AGENT = """\
trap 'kill $! 2>/dev/null; wait; exit 0' TERM INT
while :; do
  opscope agent --listen 0.0.0.0:9464 & wait $!
  sleep 5 & wait $!
done
"""
# The container outlives a failing agent, so that the pod stays ready.
_FIELDS = {
    "k8s.namespace.name": ("OPSCOPE_K8S_NAMESPACE", "metadata.namespace"),
    "k8s.pod.name": ("OPSCOPE_K8S_POD", "metadata.name"),
    "k8s.pod.uid": ("OPSCOPE_K8S_POD_UID", "metadata.uid"),
    "k8s.node.name": ("OPSCOPE_K8S_NODE", "spec.nodeName"),
}
"""OpenTelemetry's attributes, each with a variable and the field of the downward API."""

Operation = dict[str, Any]


class NotObservableError(Exception):
    """Why a pod that asks for it is not observed."""


@dataclass(frozen=True)
class Images:
    opscope: str
    """Has the command `opscope` and the payload (agent/deploy/attach-payload.Dockerfile)."""
    pull_policy: str = "IfNotPresent"


def is_wanted(annotations: Mapping[str, Any], of_namespace: Mapping[str, Any]) -> bool:
    """Whether a pod with these annotations, in a namespace with those, asks to be observed."""
    given = annotations.get(INJECT, of_namespace.get(INJECT))
    return str(given).strip().lower() == "true"


def operations(pod: Mapping[str, Any], images: Images) -> tuple[list[Operation], list[str]]:
    """The patch of a pod that asks to be observed, and warnings about containers left out.

    No operations for a pod that has them already. Raises NotObservableError.
    """
    spec = pod["spec"]
    annotations = pod.get("metadata", {}).get("annotations") or {}
    if any(volume.get("name") == _PAYLOAD for volume in spec.get("volumes") or ()):
        return [], []
    if spec.get("hostNetwork"):
        raise NotObservableError(
            "it is in the node's network, where its agent could take a used port"
        )
    _check_port(spec)
    wanted = _names(annotations.get(CONTAINERS))
    user: int | None = None
    made: list[Operation] = []
    warnings: list[str] = []
    for number, container in enumerate(spec["containers"]):
        name = container["name"]
        if wanted and name not in wanted:
            continue
        try:
            own = _user(container, spec, annotations)
            if user not in (None, own):
                raise NotObservableError(
                    f"it runs as user {own}, and the pod's agent as user {user}"
                )
            made += _of_container(container, f"/spec/containers/{number}", own, annotations)
            user = own
        except NotObservableError as error:
            warnings.append(f"container {name} is not observed: {error}")
    if user is None:
        raise NotObservableError("; ".join(warnings) or f"no container is named in {CONTAINERS}")
    made += _list(spec, "/spec/volumes", "volumes", _volumes())
    made += _list(spec, "/spec/initContainers", "initContainers", _own(images, user), at=0)
    return made, warnings


def _names(text: Any) -> set[str]:
    return set(filter(None, map(str.strip, str(text or "").split(","))))


def _check_port(spec: Mapping[str, Any]) -> None:
    every = [*(spec.get("initContainers") or ()), *spec["containers"]]
    if any(port.get("containerPort") == PORT for one in every for port in one.get("ports") or ()):
        raise NotObservableError(f"its port {PORT}, which the agent needs, is in use")


def _user(
    container: Mapping[str, Any], spec: Mapping[str, Any], annotations: Mapping[str, Any]
) -> int:
    """The user id that the container runs as; its agent needs the same to read its segments."""
    for security in (container.get("securityContext"), spec.get("securityContext")):
        if security and security.get("runAsUser") is not None:
            return int(security["runAsUser"])
    given = str(annotations.get(USER, "")).strip()
    if given.isascii() and given.isdigit():
        return int(given)
    raise NotObservableError(f"its user id is unknown; state runAsUser, or the annotation {USER}")


def _of_container(
    container: Mapping[str, Any], path: str, user: int, annotations: Mapping[str, Any]
) -> list[Operation]:
    env = container.get("env") or []
    by_name = {one["name"]: one for one in env}
    for name in ("PYTHONPATH", "OTEL_RESOURCE_ATTRIBUTES"):
        if "valueFrom" in by_name.get(name, {}):
            raise NotObservableError(
                f"{name} comes from elsewhere (valueFrom) and cannot be extended"
            )
    mounts = container.get("volumeMounts") or []
    if any(one.get("mountPath", "").rstrip("/") in (_PAYLOAD_AT, _SEGMENTS_AT) for one in mounts):
        raise NotObservableError(f"{_PAYLOAD_AT} or {_SEGMENTS_AT} is in use")
    after = by_name.get("PYTHONPATH", {}).get("value") or annotations.get(PYTHON_PATH) or ""
    attributes = [f"{key}=$({variable})" for key, (variable, _) in _FIELDS.items()]
    attributes.append(f"k8s.container.name={container['name']}")
    # Attributes of the pod's own come last: a later one wins.
    attributes.append(by_name.get("OTEL_RESOURCE_ATTRIBUTES", {}).get("value") or "")
    ours = [
        {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": field}}}
        for variable, field in _FIELDS.values()
    ]
    replaced = {
        "PYTHONPATH": ":".join(filter(None, (f"{_PAYLOAD_AT}/site", str(after)))),
        "OPSCOPE_ATTACH": "1",
        "OPSCOPE_DIR": f"{_SEGMENTS_AT}/opscope-{user}",
        "OTEL_RESOURCE_ATTRIBUTES": ",".join(filter(None, attributes)),
    }
    # Kubernetes expands $(NAME) from variables that come before.
    changed = [one for one in env if one["name"] not in replaced]
    changed += [{"name": name, "value": value} for name, value in replaced.items()]
    return [
        {"op": "add", "path": f"{path}/env", "value": [*ours, *changed]},
        *_list(
            container,
            f"{path}/volumeMounts",
            "volumeMounts",
            [
                {"name": _PAYLOAD, "mountPath": _PAYLOAD_AT, "readOnly": True},
                {"name": _SEGMENTS, "mountPath": _SEGMENTS_AT},
            ],
        ),
    ]


def _list(
    owner: Mapping[str, Any], path: str, key: str, added: Sequence[Any], at: int | None = None
) -> list[Operation]:
    """Operations that add items to a list that may be missing: at its end, or in front (0)."""
    if not owner.get(key):
        return [{"op": "add", "path": path, "value": list(added)}]
    if at is None:
        return [{"op": "add", "path": f"{path}/-", "value": one} for one in added]
    return [
        {"op": "add", "path": f"{path}/{at + number}", "value": one}
        for number, one in enumerate(added)
    ]


def _volumes() -> list[dict[str, Any]]:
    return [
        {"name": _PAYLOAD, "emptyDir": {"sizeLimit": "32Mi"}},
        {"name": _SEGMENTS, "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}},
    ]


def _own(images: Images, user: int) -> list[dict[str, Any]]:
    """The init container with the payload, and the agent, a sidecar (Kubernetes 1.29)."""
    image = {"image": images.opscope, "imagePullPolicy": images.pull_policy}
    security = {
        "runAsUser": user,
        "runAsNonRoot": user != 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return [
        {
            "name": _PAYLOAD,
            **image,
            "command": ["cp", "-R", "--remove-destination", "/opt/opscope/.", "/payload/"],
            "securityContext": security,
            "resources": {
                "requests": {"cpu": "10m", "memory": "16Mi"},
                "limits": {"memory": "32Mi"},
            },
            "volumeMounts": [{"name": _PAYLOAD, "mountPath": "/payload"}],
        },
        {
            "name": "opscope-agent",
            **image,
            "restartPolicy": "Always",
            "command": ["sh", "-c", _AGENT],
            "env": [{"name": "OPSCOPE_DIR", "value": f"{_SEGMENTS_AT}/opscope-{user}"}],
            "ports": [{"name": "opscope", "containerPort": PORT}],
            "securityContext": security,
            "resources": {
                "requests": {"cpu": "10m", "memory": "64Mi"},
                "limits": {"memory": "128Mi"},
            },
            "volumeMounts": [{"name": _SEGMENTS, "mountPath": _SEGMENTS_AT}],
        },
    ]
