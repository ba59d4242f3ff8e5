"""A killed agent and the one after it tell of each range once: real ones, real programs."""

import subprocess
import sys
from pathlib import Path

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


def test_a_killed_agent_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "segments"
    with observed_host(place) as first:
        first.run(sys.executable, "-c", PROGRAM, "100")
        assert first.calls()["numpy::add"] == 100
        # One that lives over the restart, one that ends while there is no agent.
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
                    if sample.name == "opscope_op_calls_total"
                    and sample.labels["op"] == "numpy::add"
                ]
                assert sum(now) == 123
                lasting.communicate()
                assert second.calls()["numpy::add"] == 123
    assert [path.name for path in place.iterdir() if path.suffix != ".why"] == ["agent.state"]
