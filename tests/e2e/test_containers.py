"""Programs in containers, with the settings of the manifests in agent/deploy, and an agent outside:
own namespaces, another user without capabilities, a read-only root, and one shared directory.

unshare(1) creates real namespaces, without a container runtime. Skipped if this user may not create
them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from opscope.attachment.launch import environment
from opscope.cli.ps import Line, lines
from tests.e2e.observed_host import OPSCOPE, TIMEOUT_S, ObservedHost, observed_host

USER = 10001

# Its /dev/shm is the directory given first; the rest is the program.
CONTAINER = f"""
set -e
mount --make-rprivate /
mount --bind "$0" /dev/shm
mount -t proc $PROC_OPTIONS proc /proc
mount -o remount,bind,ro /
exec setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs \\
    --inh-caps=-all --bounding-set=-all "$@"
"""
UNSHARE = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-c")

WORK = """
import os, sys
import numpy as np
assert os.getpid() == 1 and os.getuid() == 10001 and not os.access("/", os.W_OK)
a = np.ones(10)
for count in map(int, sys.stdin):
    for _ in range(count):
        np.add(a, a)
    print(count, flush=True)
"""


class Container:
    def __init__(self, shared: Path, proc_options: str = "", **environ: str) -> None:
        bare = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
        settings = {"OPSCOPE_DIR": f"/dev/shm/opscope-{USER}", "OPSCOPE_SAMPLING": "1"}
        self.environ = environment({**bare, **settings, **environ})
        self.environ |= {"PROC_OPTIONS": proc_options, "OPENBLAS_NUM_THREADS": "1"}
        self.command = [*UNSHARE, CONTAINER, str(shared), sys.executable, "-c"]

    def start(self, program: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        started: Any = subprocess.Popen(
            [*self.command, program], env=self.environ, stdin=pipe, stdout=pipe, text=True
        )
        return started  # type: ignore[no-any-return]


def work(program: subprocess.Popen[str], count: int) -> None:
    """Waits until it has made this many calls of numpy.add."""
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write(f"{count}\n")
    program.stdin.flush()
    assert program.stdout.readline() == f"{count}\n"


def pid_here(program: subprocess.Popen[str]) -> int:
    with open(f"/proc/{program.pid}/task/{program.pid}/children") as file:
        (pid,) = file.read().split()
    return int(pid)


@pytest.fixture
def shared() -> Iterator[Path]:
    """The directory that pods share: sticky, as the DaemonSet creates it."""
    with TemporaryDirectory(prefix="opscope-test-", dir="/dev/shm") as name:
        place = Path(name)
        place.chmod(0o1777)
        with Container(place).start("import numpy, opscope") as tried:
            if tried.wait(TIMEOUT_S) != 0:
                pytest.skip("needs root, new namespaces, and a Python that every user may run")
        yield place


@pytest.fixture
def host(shared: Path) -> Iterator[ObservedHost]:
    with observed_host(shared / "opscope-0") as host:
        yield host


def added(host: ObservedHost) -> float:
    return sum(
        sample.value
        for sample in host.samples()
        if sample.name == "opscope_op_duration_seconds_count"
        and sample.labels["op"] == "numpy::add"
    )


def ps(shared: Path) -> list[Line]:
    found = lines((f"{shared}/opscope-*",), time.time_ns())
    return [line for line in found if line.user in (str(USER), "?")]


@pytest.mark.parametrize("proc_options", ["", "-o subset=pid"], ids=["", "without /proc/sys"])
def test_a_process_counts_while_it_lives_and_after_it_was_killed(
    host: ObservedHost, shared: Path, proc_options: str
) -> None:
    with Container(shared, proc_options).start(WORK) as program:
        work(program, 1000)
        own = shared / f"opscope-{USER}"
        (segment,) = own.glob("1-*.seg")
        for _ in range(3):
            assert added(host) == 1000
        assert segment.exists()
        work(program, 500)
        assert added(host) == 1500
        work(program, 20)
        program.kill()
    deadline = time.monotonic() + TIMEOUT_S
    while segment.exists():
        assert time.monotonic() < deadline
        assert added(host) <= 1520
    assert added(host) == 1520
    assert list(own.iterdir()) == []


def test_on_the_host_it_has_its_pid_of_the_host(host: ObservedHost, shared: Path) -> None:
    with Container(shared, OTEL_SERVICE_NAME="one").start(WORK) as program:
        work(program, 1)
        (line,) = ps(shared)
        assert line.pid == pid_here(program)
        assert line.state.startswith(
            "attached as one; pid 1 of another namespace; bridges: blas, numpy;"
        )
        program.communicate("")


def test_the_host_knows_why_it_is_not_observed(host: ObservedHost, shared: Path) -> None:
    with Container(shared, OPSCOPE_EXCLUDE="-c").start(WORK) as program:
        work(program, 1)
        (line,) = ps(shared)
        assert (line.pid, line.state) == (
            pid_here(program),
            "not attached: -c: exclude -c (denied)",
        )
        program.communicate("")


def test_settings_reach_the_selected_one_of_two_processes_with_pid_1(
    host: ObservedHost, shared: Path
) -> None:
    container = Container(shared)
    with container.start(WORK) as first, container.start(WORK) as second:
        for program in (first, second):
            work(program, 1)
        command = [str(OPSCOPE), "set", "--pid", str(pid_here(second)), "enabled=0"]
        with subprocess.Popen(command, env=host.environ, stdout=subprocess.DEVNULL) as setting:
            while setting.poll() is None:
                work(second, 1)
        assert setting.returncode == 0
        before = added(host)
        work(second, 100)
        assert added(host) == before
        work(first, 100)
        assert added(host) == before + 100
        for program in (first, second):
            program.communicate("")


def test_a_child_under_another_user_records_into_that_users_directory(
    host: ObservedHost, shared: Path
) -> None:
    """Like workers of a server that root started and that has already loaded its program."""
    program = """
import os
import numpy as np
a = np.ones(10)
for _ in range(10):
    np.add(a, a)
if os.fork() == 0:
    os.setgid(10001)
    os.setuid(10001)
    for _ in range(100):
        np.add(a, a)
    os._exit(0)
os.wait()
"""
    host.run(sys.executable, "-c", program)
    assert host.calls()["numpy::add"] == 110
    assert (shared / f"opscope-{USER}").stat().st_uid == USER


def test_a_child_without_a_writable_directory_uses_the_ledger_in_tmp(shared: Path) -> None:
    """Its directory belongs to another user, and its name does not contain a uid."""
    program = """
import os
import numpy as np
a = np.ones(10)
np.add(a, a)
if os.fork() == 0:
    os.setgid(10001)
    os.setuid(10001)
    np.add(a, a)
    place = "/tmp/opscope-10001"
    (name,) = (name for name in os.listdir(place) if name.startswith(f"{os.getpid()}-"))
    print(os.readlink(f"{place}/{name}").split(":", 1)[1])
    os.unlink(f"{place}/{name}")
    os._exit(0)
os.wait()
"""
    own = shared / "of-root-alone"
    environ = environment(dict(os.environ) | {"OPSCOPE_DIR": str(own), "OPSCOPE_SAMPLING": "1"})
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("recorder:forked child cannot record: permission denied")
    with suppress(OSError):
        os.rmdir(f"/tmp/opscope-{USER}")
