"""The container and the pod by a process's cgroup, with paths as the container managers write
them."""

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.processes.cgroups import Container, container_of, parsed

ID, OTHER = "3f" * 32, "a0" * 32
UID = "6d8ad8b0-1f5c-4f5e-9d0e-2b9a4f6e7c11"
UID_ = UID.replace("-", "_")
IN_POD, ALONE, NOTHING = Container(ID, UID), Container(ID), Container()

SAMPLES = {
    "docker, cgroupfs, v1": (f"12:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}", ALONE),
    "docker, systemd, v2": (f"0::/system.slice/docker-{ID}.scope", ALONE),
    "docker in docker": (f"0::/docker/{OTHER}/docker/{ID}", ALONE),
    "docker, systemd within": (f"0::/docker/{ID}/system.slice/cron.service", ALONE),
    "podman, rootless": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container",
        ALONE,
    ),
    "podman, root": (f"0::/machine.slice/libpod-{ID}.scope", ALONE),
    "podman, its monitor": (f"0::/machine.slice/libpod-conmon-{ID}.scope", NOTHING),
    "containerd, cgroupfs, v1": (
        f"11:cpu,cpuacct:/kubepods/burstable/pod{UID}/{ID}\n10:pids:/kubepods/burstable/pod{UID}",
        IN_POD,
    ),
    "containerd, cgroupfs, guaranteed": (f"0::/kubepods/pod{UID}/{ID}", IN_POD),
    "containerd, systemd, v2": (
        "0::/kubepods.slice/kubepods-besteffort.slice/"
        f"kubepods-besteffort-pod{UID_}.slice/cri-containerd-{ID}.scope",
        IN_POD,
    ),
    "containerd, systemd, guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{ID}.scope",
        IN_POD,
    ),
    "containerd, systemd, v1": (
        f"4:memory:/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:"
        f"cri-containerd:{ID}",
        IN_POD,
    ),
    "CRI-O, systemd": (
        "0::/kubepods.slice/kubepods-burstable.slice/"
        f"kubepods-burstable-pod{UID_}.slice/crio-{ID}.scope",
        IN_POD,
    ),
    "CRI-O, systemd, a cgroup within": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-{ID}.scope/container",
        IN_POD,
    ),
    "CRI-O, cgroupfs": (f"2:cpuset:/kubepods/besteffort/pod{UID}/crio-{ID}", IN_POD),
    "CRI-O, its monitor": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-conmon-{ID}.scope",
        Container("", UID),
    ),
    "dockershim, systemd": (
        f"9:cpu:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/"
        f"docker-{ID}.scope",
        IN_POD,
    ),
    "kind, a node that is a container": (
        f"0::/docker/{OTHER}/kubelet/kubepods/burstable/pod{UID}/{ID}",
        IN_POD,
    ),
    "kind, systemd": (
        f"0::/system.slice/docker-{OTHER}.scope/kubelet.slice/kubelet-kubepods.slice/"
        f"kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod{UID_}.slice/"
        f"cri-containerd-{ID}.scope",
        IN_POD,
    ),
    "kind, a pod's own cgroup": (
        f"0::/docker/{OTHER}/kubelet/kubepods/pod{UID}",
        Container("", UID),
    ),
    "a static pod": (f"0::/kubepods/burstable/pod{'9c' * 16}/{ID}", ALONE),
    "ECS on EC2": (f"9:perf_event:/ecs/0a8f/{ID}", ALONE),
    "ECS on Fargate": (
        f"0::/ecs/{'4d' * 16}/{'4d' * 16}-1234567890",
        Container(f"{'4d' * 16}-1234567890"),
    ),
    "the agent in a namespace, another pod": (
        f"0::/../../kubepods-burstable-pod{UID_}.slice/cri-containerd-{ID}.scope",
        IN_POD,
    ),
    "the agent in a namespace, cgroupfs": (f"0::/../../pod{UID}/{ID}", IN_POD),
    "the agent in a namespace, its own pod": (f"0::/../cri-containerd-{ID}.scope", ALONE),
    "the agent in a namespace, its own container": ("0::/", NOTHING),
    "the agent in a namespace, the host": ("0::/../../../system.slice/cron.service", NOTHING),
    "both versions": (
        f"1:name=systemd:/init.scope\n4:memory:/docker/{ID}\n0::/init.scope",
        ALONE,
    ),
    "a session": ("0::/user.slice/user-1000.slice/session-3.scope", NOTHING),
    "LXC": ("0::/lxc.payload.web/init.scope", NOTHING),
    "no path": ("0::", NOTHING),
    "a longer number": (f"0::/docker/{ID}00", NOTHING),
    "capitals": (f"0::/docker/{ID.upper()}", NOTHING),
    "a colon in a path": (f"0::/a:b/docker-{ID}.scope", ALONE),
    "empty": ("", NOTHING),
}


@pytest.mark.parametrize(("text", "expected"), SAMPLES.values(), ids=SAMPLES)
def test_the_container_and_the_pod_are_told(text: str, expected: Container) -> None:
    assert parsed(text) == expected


def test_the_attributes_are_those_of_the_conventions() -> None:
    assert IN_POD.attributes == {"container.id": ID, "k8s.pod.uid": UID}
    assert NOTHING.attributes == {}


PIECES = st.sampled_from([*"0:/-_.\n", "pod", ID, UID, UID_, ".scope"])


@given(st.lists(PIECES))
def test_any_text_is_read(pieces: list[str]) -> None:
    found = parsed("".join(pieces))
    assert found.container_id in ("", ID) and found.pod_uid in ("", UID)


def test_a_process_that_ended_has_none() -> None:
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", ""])
    os.waitpid(pid, 0)
    assert container_of(pid) == NOTHING
    assert isinstance(container_of(os.getpid()), Container)
