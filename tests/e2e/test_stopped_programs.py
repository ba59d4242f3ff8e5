"""A program that has a third of a processor: its operators' times contain the moments in which the
kernel stopped it, few of which a window has met.

The program measures these times itself in the same run. An estimate must be within 5 standard
errors and 5 %, and the errors must be small: 7 s are some 100 stops.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opscope.attachment.launch import environment
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from tests.busy import busy_beside
from tests.e2e.observed_host import TIMEOUT_S, environ_of

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SHARE, ERRORS, VAGUE = 0.05, 5.0, 0.4
PASS_S = 0.5

PROGRAM = """
import json
import time
import numpy as np

many, few = np.ones(50_000), np.ones(20_000)
of_many, of_few = np.empty_like(many), np.empty_like(few)
measured = {"numpy::sin": 0.0, "numpy::exp": 0.0}

def timed(name, operator, *operands):
    start = time.perf_counter()
    operator(*operands)
    measured[name] += time.perf_counter() - start

end = time.monotonic() + 7.0
while time.monotonic() < end:
    for _ in range(5):
        timed("numpy::exp", np.exp, few, of_few)
    timed("numpy::sin", np.sin, many, of_many)
print(json.dumps(measured), flush=True)
input()
"""


def _observed(directory: Path) -> tuple[dict[str, float], Snapshot]:
    """What the program measured, and what an agent shows of it."""
    cpu = min(os.sched_getaffinity(0))
    host = Host([str(directory)], consume=False)
    with busy_beside(cpu), busy_beside(cpu):
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=environment(environ_of(directory) | {"OPSCOPE_PERIOD_MS": "50"}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
        assert program.stdout is not None
        measured = json.loads(program.stdout.readline())
        found = host.collect()
        program.communicate("\n", timeout=TIMEOUT_S)
    return measured, found


def test_operators_of_a_stopped_program_have_their_share_of_the_stops(tmp_path: Path) -> None:
    measured, found = _observed(tmp_path)
    assert set(measured) == {"numpy::sin", "numpy::exp"}
    rows = {key.op: row for row, key in enumerate(found.keys)}
    waited_s = sum(found.cpu_wait_s.values())
    assert waited_s >= 2.0, "nothing stopped it"
    for op, true_s in measured.items():
        shown_s, error = found.self_s[rows[op]], found.self_variance[rows[op]] ** 0.5
        assert error <= VAGUE * true_s, op
        # An estimate that is too small also states too small an error.
        too_small = max(1.0, true_s / shown_s)
        assert abs(shown_s - true_s) <= SHARE * true_s + ERRORS * error * too_small**0.5, op
