"""A container's small /dev/shm: observation leaves most of it to the program.

Each test has its own tmpfs of 64 MB, in its own mount namespace, and no agent. 1,000 children;
OPSCOPE_TEST_CHURN changes their number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opscope.host.host import Host
from tests.e2e.observed_host import TIMEOUT_S
from tests.waiting import UNTIL

CHILDREN = int(os.environ.get("OPSCOPE_TEST_CHURN", "1000"))
SIZE = 64 << 20

pytestmark = pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0,
    reason="this user may make no mount namespace",
)

# `place` is the file system; what is said goes to standard output, as JSON.
PRELUDE = """
import json, mmap, os, sys
import opscope
from opscope._native import ffi, lib

place = sys.argv[1]
directory = place + "/opscope"

def free():
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize

def start():
    options = ffi.new("opscope_recorder_options *")
    options.directory = kept = ffi.new("char[]", directory.encode())
    options.sampling_prob = 1.0
    assert lib.opscope_recorder_start(options) == 0

def store(size):
    # SIGBUS without space.
    with open(place + "/program", "w+b") as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as memory:
            for at in range(0, size, 4096):
                memory[at] = 1
    os.unlink(place + "/program")
"""

FORKS = """
start()
status = 0
for number in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        with opscope.record_function(f"operator {number}"):
            pass
        os._exit(0)
    status |= os.waitpid(child, 0)[1]
said = {"status": status, "free": free()}
store(32 << 20)
json.dump(said, sys.stdout)
"""

# All at once, and each grows by operators without number until it may grow no more.
GROW = """
children = []
begin, go = os.pipe()
for number in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        os.close(go)
        start()
        os.read(begin, 1)
        for each in range(3000):
            with opscope.record_function(f"operator {each}"):
                pass
        os.kill(os.getpid(), 9)
    children.append(child)
os.close(go)
statuses = [os.waitpid(child, 0)[1] for child in children]
said = {"statuses": statuses, "free": free()}
store(32 << 20)
json.dump(said, sys.stdout)
"""

# Five processes trace all they do, at the request of another, until their traces are full.
TRACE = f"""{UNTIL}
import glob, time
from opscope.control import control_block, trace as taking
from opscope.control.control_block import FoundProcess

children = []
stop, go = os.pipe()
for number in range(5):
    child = os.fork()
    if child == 0:
        os.close(go)
        start()
        os.set_blocking(stop, False)
        while True:
            for _ in range(1000):
                with opscope.record_function("operator"):
                    pass
            try:
                os.read(stop, 1)
                os._exit(0)
            except BlockingIOError:
                pass
    children.append(child)
until(lambda: len(glob.glob(directory + "/*.seg")) >= 5, "five segments")
found = control_block.find([directory])
least = free()
def sleep(seconds):
    global least
    time.sleep(seconds)
    least = min(least, free())
taken = taking.take(found, 4.0, 64 << 20, sleep=sleep)
said = {{
    "least": least,
    "sizes": [one.trace.header.limit_bytes for one in taken if one.trace],
    "refused": [one.text for one in taken if not one.trace],
}}
os.close(go)
said["statuses"] = [os.waitpid(child, 0)[1] for child in children]
json.dump(said, sys.stdout)
"""


def run(tmp_path: Path, text: str, count: int = 0) -> tuple[Any, Path]:
    """The program's output, and a copy of the segments that it left."""
    place, copied = tmp_path / "shm", tmp_path / "copied"
    place.mkdir()
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + text)
    script = (
        f"mount -t tmpfs -o size={SIZE},mode=700 tmpfs {place} && "
        f"{sys.executable} {program} {place} {count} && cp -r {place}/opscope {copied}"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        timeout=TIMEOUT_S * max(1, CHILDREN // 1000),
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), copied


@pytest.mark.slow
def test_short_children_without_an_agent_leave_three_quarters_free(tmp_path: Path) -> None:
    said, segments = run(tmp_path, FORKS, CHILDREN)
    assert said["status"] == 0
    assert said["free"] >= SIZE * 3 // 4
    host = Host([str(segments)], consume=False, by_process=True)
    snapshot = host.collect()
    host.close()
    # Every lost child is counted.
    assert snapshot.calls.sum() + snapshot.health.discarded == CHILDREN
    assert snapshot.health.discarded > 0
    # The segments that are left are the latest.
    numbers = [int(key.op.split()[1]) for key in snapshot.keys if key.op.startswith("operator ")]
    assert min(numbers) == CHILDREN - len(numbers)


def test_processes_that_grow_as_far_as_they_may_leave_half_free(tmp_path: Path) -> None:
    said, segments = run(tmp_path, GROW, 40)
    assert set(said["statuses"]) == {9}
    assert said["free"] >= SIZE // 2
    host = Host([str(segments)], consume=False)
    snapshot = host.collect()
    host.close()
    assert snapshot.calls.sum() + snapshot.health.dropped == 40 * 3000
    assert snapshot.health.folded > 0


def test_five_traced_processes_leave_half_free(tmp_path: Path) -> None:
    said, _ = run(tmp_path, TRACE)
    assert said["statuses"] == [0] * 5
    assert said["least"] >= SIZE // 2
    assert len(said["sizes"]) >= 3
    assert all("no space for a trace" in text for text in said["refused"])
