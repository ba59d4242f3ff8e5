"""The container and the pod of a process, by the files that are mounted into it.

Container managers mount /etc/hostname, /etc/hosts and /etc/resolv.conf from a directory named by
the container's id; the kubelet mounts /etc/hosts and /dev/termination-log from one named by the
pod's uid. In a pod, the other files are those of its sandbox, which all its containers share, so
they do not tell the container. Facts: proc(5) for /proc/PID/mountinfo, whose fourth field is the
path within the mounted file system, and whose fifth is the place in the container.
"""

from __future__ import annotations

import re

_FILE_BYTES = 1 << 16
_PLACES = (b"/etc/hostname", b"/etc/hosts", b"/etc/resolv.conf", b"/dev/termination-log")
_OF_CONTAINER = re.compile(rb"/([0-9a-f]{64})(?:/userdata)?/(?:hostname|hosts|resolv\.conf)$")
_OF_SANDBOX = b"/sandboxes/"
# A static pod has a hash in place of the API's uid.
_OF_POD = re.compile(
    rb"/pods/(?:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|[0-9a-f]{32})/"
    rb"(?:etc-hosts$|containers/)"
)


def of_process(pid: int) -> tuple[str, str]:
    """The container's id and the pod's uid; "" for what no mount tells."""
    try:
        with open(f"/proc/{pid}/mountinfo", "rb") as file:
            return parsed(file.read(_FILE_BYTES))
    except OSError:
        return "", ""


def parsed(text: bytes) -> tuple[str, str]:
    """Of the contents of such a file. The first mount that tells counts: later ones may be the
    container's own."""
    container = pod = b""
    is_in_pod = False
    for line in text.split(b"\n"):
        _, _, _, path, place, *_ = [*line.split(b" ", 5), *[b""] * 5]
        if place not in _PLACES:
            continue
        if found := _OF_POD.search(path):
            is_in_pod = True
            pod = pod or found[1] or b""
        elif _OF_SANDBOX in path:
            is_in_pod = True
        elif found := _OF_CONTAINER.search(path):
            container = container or found[1]
    return "" if is_in_pod else container.decode(), pod.decode()
