"""A program that its container's CPU quota stops most of the time is observed right."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.host.host import Host
from tests.e2e.observed_host import OPSCOPE, environ_of

PROGRAM = """
import time
import numpy as np
a = np.arange(2000.0)
calls, end = 0, time.monotonic() + 8
while time.monotonic() < end:
    for _ in range(50):
        np.add(a, 1.0, out=a)
    calls += 50
print(calls)
"""
PERIOD_US, QUOTA_US = 100_000, 15_000
ERRORS = 5


@pytest.fixture
def throttled() -> Iterator[Path]:
    """A cgroup with 15 % of a processor."""
    v1, v2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    group = (v1 if v1.is_dir() else v2) / "opscope-test-throttled"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"makes a cgroup: {error}")
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
        elif (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        else:
            pytest.skip("limits the processor time of a cgroup, which this host does not")
        yield group
    finally:
        group.rmdir()


@pytest.mark.slow
def test_a_throttled_program_is_estimated_within_its_errors(
    throttled: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    join = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
    program = [str(OPSCOPE), "run", "--", sys.executable, "-c", PROGRAM]
    ran = subprocess.run(
        ["sh", "-c", join, "sh", str(throttled), *program],
        env=environ_of(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    stat = dict(line.split() for line in (throttled / "cpu.stat").read_text().splitlines())
    assert int(stat["nr_throttled"]) > 10
    snapshot = Host([str(tmp_path)], consume=False).collect()
    row = [key.op for key in snapshot.keys].index("numpy::add")
    error = float(snapshot.calls_variance[row]) ** 0.5
    assert abs(float(snapshot.calls[row]) - int(ran.stdout)) < ERRORS * error
    assert (ran.stderr, snapshot.health.dropped) == ("", 0)
