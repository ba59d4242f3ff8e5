"""The container and the pod by the mounts of a process, as the container managers make them, where
the paths of cgroups are relative to the agent's own."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.processes.cgroups import Container
from opscope.processes.container_mounts import of_process, parsed

ID, OTHER = "3f" * 32, "a0" * 32
UID = "6d8ad8b0-1f5c-4f5e-9d0e-2b9a4f6e7c11"
ROOT = f"473 387 0:143 / / rw,relatime - overlay overlay rw,upperdir=/v/overlay2/{OTHER}/diff"


def mounts(*pairs: tuple[str, str]) -> bytes:
    lines = [
        f"{number} 473 254:1 {path} {place} rw,relatime - ext4 /dev/vda1 rw"
        for number, (path, place) in enumerate(pairs, start=474)
    ]
    return "\n".join([ROOT, *lines, ""]).encode()


def etc(folder: str) -> list[tuple[str, str]]:
    names = ("resolv.conf", "hostname", "hosts")
    return [(f"{folder}/{name}", f"/etc/{name}") for name in names]


KUBELET = [
    (f"/var/lib/kubelet/pods/{UID}/etc-hosts", "/etc/hosts"),
    (f"/var/lib/kubelet/pods/{UID}/containers/train/2b8ca9a1", "/dev/termination-log"),
]
SAMPLES = {
    "docker": (mounts(*etc(f"/var/lib/docker/containers/{ID}")), (ID, "")),
    "docker, a file system of its own": (mounts(*etc(f"/containers/{ID}")), (ID, "")),
    "docker, in a folder of its own": (
        mounts(*etc(f"/srv/a\\040b/docker/containers/{ID}")),
        (ID, ""),
    ),
    "podman": (
        mounts(*etc(f"/containers/storage/overlay-containers/{ID}/userdata")),
        (ID, ""),
    ),
    "containerd": (
        mounts(*KUBELET, *etc(f"/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/{OTHER}")),
        ("", UID),
    ),
    "containerd, the sandbox alone": (
        mounts(*etc(f"/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/{OTHER}")),
        ("", ""),
    ),
    "CRI-O": (
        mounts(*etc(f"/containers/storage/overlay-containers/{OTHER}/userdata"), *KUBELET),
        ("", UID),
    ),
    "cri-dockerd": (mounts(*etc(f"/var/lib/docker/containers/{OTHER}"), *KUBELET), ("", UID)),
    "kind": (
        mounts(
            (
                f"/var/lib/docker/volumes/{OTHER}/_data/lib/kubelet/pods/{UID}/etc-hosts",
                "/etc/hosts",
            )
        ),
        ("", UID),
    ),
    "a static pod": (
        mounts(
            *etc(f"/var/lib/docker/containers/{OTHER}")[:2],
            (f"/var/lib/kubelet/pods/{'9c' * 16}/etc-hosts", "/etc/hosts"),
        ),
        ("", ""),
    ),
    "a node": (
        mounts(
            ("/", f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~projected/token"),
            ("/", f"/var/lib/docker/containers/{ID}/mounts/shm"),
        ),
        ("", ""),
    ),
    "a mount of the container's own": (
        mounts(
            *etc(f"/var/lib/docker/containers/{ID}"),
            (f"/tmp/containers/{OTHER}/hostname", "/etc/hostname"),
        ),
        (ID, ""),
    ),
    "a volume": (mounts((f"/volumes/{ID}/hosts", "/data/hosts")), ("", "")),
    "a longer number": (mounts(*etc(f"/var/lib/docker/containers/{ID}00")), ("", "")),
    "capitals": (mounts(*etc(f"/var/lib/docker/containers/{ID.upper()}")), ("", "")),
    "cut off": (mounts(*etc(f"/var/lib/docker/containers/{ID}"))[:-90], (ID, "")),
    "no UTF-8": (
        mounts(*etc(f"/var/lib/docker/containers/{ID}")) + b"\xff \xff \xff \xff \xff \xff",
        (ID, ""),
    ),
    "empty": (b"", ("", "")),
}


@pytest.mark.parametrize(("text", "expected"), SAMPLES.values(), ids=SAMPLES)
def test_the_container_and_the_pod_are_told(text: bytes, expected: tuple[str, str]) -> None:
    assert parsed(text) == expected


PIECES = st.sampled_from(
    [" ", "\n", "/", "/pods/", "/etc/hosts", "/etc-hosts", "/hosts", "/containers/", ID, UID]
)


@given(st.lists(PIECES))
def test_any_text_is_read(pieces: list[str]) -> None:
    container, pod = parsed("".join(pieces).encode())
    assert container in ("", ID) and pod in ("", UID)


def test_a_process_that_ended_has_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert of_process(process.pid) == ("", "")


# In namespaces of its own, the path of the process's cgroup is `/`.
WITHIN = """
set -e
mount --make-rprivate /
mount --bind "$0" "$1"
shift
exec "$@"
"""
SAY = "import os; from opscope.processes import cgroups; print(*cgroups.container_of(os.getpid()))"
UNSHARE = ("unshare", "--mount", "--cgroup")


@pytest.mark.parametrize(
    ("path", "place", "expected"),
    [
        (f"containers/{ID}/hosts", "/etc/hosts", Container(ID)),
        (f"pods/{UID}/etc-hosts", "/etc/hosts", Container("", UID)),
    ],
    ids=["container", "pod"],
)
def test_an_agent_in_the_container_knows_it(
    tmp_path: Path, path: str, place: str, expected: Container
) -> None:
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no namespaces may be made here: unshare(2) is refused")
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_bytes(Path(place).read_bytes())
    command = [*UNSHARE, "sh", "-c", WITHIN, str(file), place, sys.executable, "-c", SAY]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (" ".join(expected) + "\n", "")
