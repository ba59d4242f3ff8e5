"""A killed agent and its successor count each range once: real agents, real programs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.observed_host import observed_host

PROGRAM = """
import os, sys
import numpy as np

a = np.ones(10)
for _ in range(int(sys.argv[1])):
    np.add(a, a)
print("did", flush=True)
sys.stdin.read()
"""


def test_the_next_agent_continues_after_a_killed_one(tmp_path: Path) -> None:
    place = tmp_path / "segments"
    with observed_host(place) as first:
        first.run(sys.executable, "-c", PROGRAM, "100")
        assert first.calls()["numpy::add"] == 100
        # One that lives over the restart, one that ends while no agent runs.
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with (
            first.start(sys.executable, "-c", PROGRAM, "20", **options) as lasting,
            first.start(sys.executable, "-c", PROGRAM, "3", **options) as ending,
        ):
            for program in (lasting, ending):
                assert program.stdout is not None
                assert program.stdout.readline() == b"did\n"
            list(first.samples())
            first.agent.kill()
            first.agent.wait()
            ending.communicate()
            with observed_host(place) as second:
                now = [
                    sample.value
                    for sample in second.samples()
                    if sample.name == "opscope_op_duration_seconds_count"
                    and sample.labels["op"] == "numpy::add"
                ]
                assert sum(now) == 123
                lasting.communicate()
                assert second.calls()["numpy::add"] == 123
    assert [path.name for path in place.iterdir() if path.suffix != ".why"] == ["agent.state"]


def test_the_state_is_in_systemds_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, kept = tmp_path / "segments", tmp_path / "kept"
    monkeypatch.setenv("STATE_DIRECTORY", f"{kept}:{tmp_path / 'another'}")
    for number in (1, 2):
        with observed_host(place) as host:
            host.run(sys.executable, "-c", PROGRAM, "100")
            assert host.calls()["numpy::add"] == 100 * number
            host.agent.kill()
            host.agent.wait()
    assert [path.name for path in kept.iterdir()] == ["agent.state"]
    assert not (place / "agent.state").exists()
