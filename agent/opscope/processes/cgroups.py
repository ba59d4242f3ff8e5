"""The container and the pod of a process, by the path of its cgroup.

Container managers name a container's cgroup by its id: Docker, containerd, CRI-O and Podman, with
the cgroup drivers cgroupfs (`.../<id>`) and systemd (`.../docker-<id>.scope`). The kubelet's are
`pod<uid>` and `kubepods-burstable-pod<uid>.slice`, where systemd wants `_` for `-`. Facts:
cgroups(7) for /proc/PID/cgroup, cgroup_namespaces(7) for paths that begin with `/..`; the names of
attributes: https://opentelemetry.io/docs/specs/semconv/resource/container/ and .../k8s/.

The host agent reads the files, the observed process never does. An agent within a namespace of
cgroups sees paths relative to its own: of its own container nothing, of another container of its
pod no pod. It then reads the processes' mounts as well (container_mounts.py), which tell the pod,
and the container of Docker and Podman. What neither tells stays empty. Of static pods, whose
cgroups have a hash in place of the API's uid, only the container is known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from opscope.processes import container_mounts

# The inode of the host's namespace of cgroups: include/linux/proc_ns.h.
_OF_HOST = 0xEFFFFFFB
_FILE_BYTES = 1 << 16
_ID = "[0-9a-f]{64}"
# ECS on Fargate has ids of its own: a task's, and a number.
_OF_FARGATE = "[0-9a-f]{32}-[0-9]{1,10}"
_CONTAINER = re.compile(rf"(?:(?:^|[-:])({_ID})(?:\.scope)?|({_OF_FARGATE}))$")
# CRI-O's and Podman's monitors are in cgroups beside the containers'.
_MONITOR = re.compile(r"(?:^|-)conmon-")
_UID = re.compile(
    r"(?:^|-)pod([0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12})"
    r"(?:$|\.slice)"
)


class Container(NamedTuple):
    """Texts are empty where the path says nothing."""

    container_id: str = ""
    pod_uid: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """By OpenTelemetry's semantic conventions."""
        named = {"container.id": self.container_id, "k8s.pod.uid": self.pod_uid}
        return {key: value for key, value in named.items() if value}


def container_of(pid: int) -> Container:
    """Of the process with this pid in the agent's namespace; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/cgroup", "rb") as file:
            text = file.read(_FILE_BYTES).decode(errors="replace")
    except OSError:
        return Container()
    found = parsed(text)
    if all(found) or not _is_in_namespace():
        return found
    mounted = Container(*container_mounts.of_process(pid))
    return Container(*(one or other for one, other in zip(found, mounted, strict=True)))


def _is_in_namespace() -> bool:
    """Whether this process sees cgroups as paths relative to its own."""
    try:
        return os.stat("/proc/self/ns/cgroup").st_ino != _OF_HOST
    except OSError:
        return False  # Linux before 4.6 has no such namespaces.


def parsed(text: str) -> Container:
    """Of the contents of such a file: lines `number:controllers:path`.

    With version 1 the hierarchies have different paths, and not each has the container's; the first
    line that tells a container counts, or else the first one that tells a pod.
    """
    found = Container()
    for line in text.splitlines():
        *_, path = line.split(":", 2)
        one = _of_path(path.split("/"))
        if one.container_id:
            return one
        found = found if found.pod_uid else one
    return found


def _of_path(parts: Iterable[str]) -> Container:
    """The innermost container, and the pod around it: a node may itself be a container."""
    container = pod = ""
    for part in parts:
        # containerd's systemd driver writes `slice:cri-containerd:id` with version 1.
        for piece in (part.partition(":")[0], part) if ":" in part else (part,):
            if uid := _UID.search(piece):
                pod, container = uid[1].replace("_", "-"), ""
        if (known := _CONTAINER.search(part)) and not _MONITOR.search(part):
            container = known[1] or known[2]
    return Container(container, pod)
