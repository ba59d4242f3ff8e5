"""Window estimates of programs with known work are within their stated errors.

Windows come more often than by default, so that an estimate rests on a few hundred of them. It must
be within 5 standard errors and 5 %, which a correct estimate misses once in a million runs. The
programs count or measure the truth themselves in the same run, so that it holds on a busy machine.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opscope.attachment.launch import environment
from opscope.bench.truth import judge, segments
from opscope.bench.truth.loads import quiet
from opscope.bench.truth.observed import EVERY_RANGE, run
from tests.e2e.observed_host import TIMEOUT_S, environ_of

pytestmark = pytest.mark.slow

OFTEN = {"OPSCOPE_PERIOD_MS": "20", "OPSCOPE_MAX_OVERHEAD": "off"}
SECONDS = 3.0
SELDOM = ("numpy_blas2",)
"""Programs whose operators run for longer than a window; they run for twice as long."""
TIMED_S = 6.0
REFERENCE_S = 0.5
SHARE, ERRORS = 0.05, 5.0
VAGUE = 0.5
"""A total with a larger standard error is uninformative for a program that always works."""
PAUSING = ("bursty",)

# Each operator takes long compared with its call and the clock. None allocates memory: the kernel's
# part in that takes sometimes longer in windows, sometimes outside of them.
TIMED = """
import json
import time
import numpy as np

many, few = np.ones(50_000), np.ones(20_000)
of_many, of_few = np.empty_like(many), np.empty_like(few)
measured = {"numpy::sin": 0.0, "numpy::exp": 0.0, "numpy::add.reduce": 0.0}

def timed(name, operator, *operands):
    start = time.perf_counter()
    operator(*operands)
    measured[name] += time.perf_counter() - start

end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for _ in range(10):
        timed("numpy::exp", np.exp, few, of_few)
    timed("numpy::sin", np.sin, many, of_many)
    for _ in range(10):
        timed("numpy::add.reduce", np.add.reduce, many)
print(json.dumps(measured))
"""


def _is_within(true: float, estimated: float, error: float) -> bool:
    # An estimate that is too small also states too small an error: the error of the correct
    # value is larger by the square root of the ratio.
    too_small = max(1.0, true / estimated) if estimated else 1.0
    return bool(abs(estimated - true) <= SHARE * true + ERRORS * error * too_small**0.5)


@pytest.mark.parametrize(
    "name",
    [
        "numpy_small",
        "numpy_threads2",
        "numpy_short_threads",
        "numpy_blas2",
        "bursty",
        "short_processes",
        "core_cnn",
        "gpt2_generate",
        "thread_per_request",
        "threaded_server",
        "input_bound",
    ],
)
def test_calls_are_within_their_errors(name: str) -> None:
    with quiet() as load:
        every = run(name, REFERENCE_S, load, EVERY_RANGE)
        known = judge.truth([(every.done, every.sums)], {}, with_times=False)
        observed = run(name, 2 * SECONDS if name in SELDOM else SECONDS, load, OFTEN)
    for calls in judge.estimates(known, observed.done, observed.sums):
        assert calls.standard_error is not None, calls
        assert _is_within(calls.true, calls.estimated, calls.standard_error), calls
        if not calls.name and name not in PAUSING:
            assert calls.standard_error < VAGUE * calls.true, calls


@pytest.mark.alone
@pytest.mark.parametrize("variables", [EVERY_RANGE, OFTEN], ids=["every", "windows"])
def test_self_times_are_within_their_errors(tmp_path: Path, variables: dict[str, str]) -> None:
    program = TIMED.replace("SECONDS", str(TIMED_S))
    said = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(environ_of(tmp_path) | variables),
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    ).stdout
    sums = segments.read(str(tmp_path))
    for op, true_s in json.loads(said).items():
        key = op, "other"
        assert key in sums.self_variance, op
        error = sums.self_variance[key] ** 0.5
        assert error < VAGUE * true_s, op
        assert _is_within(true_s, sums.self_s[key], error), (op, true_s, sums.self_s[key], error)
