"""Two users and root on one host: what one user does does not reach the other, nor root's tools.

A private mount namespace has a /dev/shm of its own, in which each account acts by itself. Root has
prepared it as `opscope install --system` does, and its agent runs. Skipped without root.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from opscope.attachment.launch import environment
from tests.e2e.observed_host import OPSCOPE, TIMEOUT_S

VICTIM, HOSTILE = 20001, 20002
MOUNTS = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=1777,size=256m tmpfs /dev/shm
mkdir -m 1777 /dev/shm/opscope
echo ready
cat
"""
CALLS = 500
# The victim: exact counts, on demand.
WORK = """
import sys
import numpy as np
a = np.ones(10)
for count in map(int, sys.stdin):
    for _ in range(count):
        np.add(a, a)
    print(count, flush=True)
"""
# Takes the names that others would use, and fills the place where everybody's directories are.
SQUATTER = f"""
import os
for place in ("/dev/shm", "/dev/shm/opscope"):
    os.mkdir(f"{{place}}/opscope-{VICTIM}")
    os.chmod(f"{{place}}/opscope-{VICTIM}", 0o777)
for number in range(1100):
    os.mkdir(f"/dev/shm/opscope-{{number + 30000}}")
"""
# An observed program with more operators than a host exports, and files beside its segment.
CROWD = """
import glob, os, sys
import numpy
import opscope
for number in range(2500):
    with opscope.record_function(f"operator {number}"):
        pass
(mine,) = glob.glob(f"/dev/shm/opscope/opscope-{os.getuid()}/*.seg")
place = os.path.dirname(mine)
raw = bytearray(open(mine, "rb").read())
for number in range(40):
    # Segments of processes that are not: other pids, and numbers as large as they can be.
    raw[192:200] = (2**62 - 1).to_bytes(8, "little")
    name = f"{number + 1}-{number + 1}-{number:016x}.seg"
    with open(os.path.join(place, name), "wb") as file:
        file.write(raw if number % 2 else raw[:3000])
with open(os.path.join(place, "settings"), "w") as file:
    file.write("enabled=false *\\n" * 5000)
print(place, flush=True)
sys.stdin.read()
"""


class SharedHost:
    """A mount namespace; `start` runs a command in it as that user."""

    def __init__(self, keeper: int, home: Path) -> None:
        self.keeper = keeper
        self.home = home

    def start(self, user: int, *command: object, **environ: str) -> subprocess.Popen[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
        identity = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
        started: Any = subprocess.Popen(
            ["nsenter", f"--mount=/proc/{self.keeper}/ns/mnt", *identity, *map(str, command)],
            env=kept | {"HOME": "/nonexistent", "OPENBLAS_NUM_THREADS": "1"} | environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            text=True,
        )
        return started  # type: ignore[no-any-return]

    def run(self, user: int, *command: object, **environ: str) -> tuple[int, str]:
        with self.start(user, *command, **environ) as program:
            output, _ = program.communicate("", timeout=TIMEOUT_S)
        return program.returncode, output

    def observed(self, user: int, name: str, program: str) -> subprocess.Popen[str]:
        settings = {"OPSCOPE_SAMPLING": "1", "OTEL_SERVICE_NAME": name}
        return self.start(user, sys.executable, "-c", program, **environment(settings))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SharedHost]:
    pipe = subprocess.PIPE
    command = ["unshare", "--mount", "--kill-child", "sh", "-c", MOUNTS]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as keeper:
        assert keeper.stdin is not None and keeper.stdout is not None
        if keeper.stdout.readline() != "ready\n":
            pytest.skip("needs root and new namespaces")
        found = SharedHost(keeper.pid, tmp_path)
        status, _ = found.run(VICTIM, sys.executable, "-c", "import numpy, opscope")
        if status != 0:
            pytest.skip("needs a Python that every user may run")
        yield found
        keeper.stdin.close()


@pytest.fixture
def url(host: SharedHost) -> Iterator[str]:
    """Root's agent, which has made one pass since the hostile user took the names."""
    settings = {"STATE_DIRECTORY": str(host.home)}
    with host.start(0, OPSCOPE, "agent", "--listen", "127.0.0.1:0", **settings) as agent:
        assert agent.stdout is not None
        said = agent.stdout.readline()
        (found,) = (word for word in said.split() if word.startswith("http://"))
        found = found.removesuffix("/metrics")
        status, squatted = host.run(HOSTILE, sys.executable, "-c", SQUATTER)
        assert status == 0, squatted
        calls(found)
        yield found
        agent.terminate()


@pytest.fixture
def crowd(host: SharedHost, url: str) -> Iterator[subprocess.Popen[str]]:
    """The hostile user has done what else it can."""
    with host.observed(HOSTILE, "crowd", CROWD) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("/dev/shm/")
        yield program
        program.kill()


@pytest.fixture
def victim(host: SharedHost, crowd: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    with host.observed(VICTIM, "victim", WORK) as program:
        work(program)
        yield program
        program.kill()


def work(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write(f"{CALLS}\n")
    program.stdin.flush()
    assert program.stdout.readline() == f"{CALLS}\n"


def calls(url: str) -> dict[tuple[str, str], float]:
    with urlopen(f"{url}/metrics", timeout=TIMEOUT_S) as page:
        text = page.read().decode()
    return {
        (sample.labels["service_name"], sample.labels["op"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "opscope_op_duration_seconds_count"
    }


def test_root_s_agent_shows_the_other_user_exactly(url: str, victim: subprocess.Popen[str]) -> None:
    assert calls(url)["victim", "numpy::add"] == CALLS
    work(victim)
    found = calls(url)
    assert found["victim", "numpy::add"] == 2 * CALLS
    assert len([op for service, op in found if service == "crowd"]) < 2500


def test_root_reaches_the_other_user_s_process(
    host: SharedHost, victim: subprocess.Popen[str]
) -> None:
    status, said = host.run(0, OPSCOPE, "ps", "--json")
    assert status == 0, said
    (line,) = (one for one in json.loads(said)["processes"] if one.get("service") == "victim")
    command = (OPSCOPE, "set", "--wait", "60", "--service", "victim", "enabled=false")
    with host.start(0, *command) as asked:
        while asked.poll() is None:  # a process answers at its next operator
            work(victim)
        assert asked.returncode == 0, asked.communicate()
    status, said = host.run(0, OPSCOPE, "set", "--show", "--json", "--service", "victim")
    assert status == 0, said
    assert f'"pid": {line["pid"]}' in said and "false" in said


def test_the_other_user_s_own_tools_see_its_process_alone(
    host: SharedHost, victim: subprocess.Popen[str]
) -> None:
    # Started as one program, since others may not be allowed to run this Python's file again.
    tool = (
        "import sys; from opscope.cli import main; sys.argv = ['opscope', 'ps', '--json']; main()"
    )
    status, said = host.run(VICTIM, sys.executable, "-c", tool)
    assert status == 0, said
    services = {line.get("service") for line in json.loads(said)["processes"]}
    assert "victim" in services and "crowd" not in services


def test_nothing_of_the_hostile_user_stops_the_other_s_settings(
    host: SharedHost, victim: subprocess.Popen[str]
) -> None:
    """The rules in the hostile user's own directory are for its own processes."""
    work(victim)
    status, said = host.run(0, OPSCOPE, "set", "--show", "--json", "--service", "victim")
    assert status == 0, said
    assert '"enabled": false' not in said


def test_what_the_hostile_user_squatted_is_named(
    host: SharedHost, victim: subprocess.Popen[str]
) -> None:
    _, said = host.run(0, OPSCOPE, "doctor", "--json", OPSCOPE_BRIDGES="none")
    assert str(HOSTILE) in said
