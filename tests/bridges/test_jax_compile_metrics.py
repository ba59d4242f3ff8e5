"""Metrics of what JAX compiles: stages with their times, lookups in its persistent cache."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opscope.bridges.jax import compile as compilations
from opscope.host.host import Host
from opscope.segments import directories

pytest.importorskip("jax")

_BEFORE = """
import json, sys, time
import opscope
opscope.attach()
import numpy as np
import jax, jax.numpy as jnp

def counted(what="compilations"):
    from opscope.record import metric
    labels = [label for name, label in metric._made if name == f"opscope.jax.compile.{what}"]
    return {label: metric.Metric(f"opscope.jax.compile.{what}", label).read() for label in labels}

def since(before, what="compilations"):
    return {label: count - before.get(label, 0) for label, count in counted(what).items()}

@jax.jit
def inner(x):
    return jnp.sin(x)

@jax.jit
def function(x):
    return inner(x) + inner(x[:2]).sum()

three, four = jax.device_put(np.ones(3, 'f4')), jax.device_put(np.ones(4, 'f4'))
"""


def _run(program: str, directory: Path, **variables: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + program],
        env={
            "PATH": "/usr/bin:/bin",
            "OPSCOPE_DIR": str(directory / "segments"),
            "JAX_PLATFORMS": "cpu",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_new_shape_is_compiled_once(tmp_path: Path) -> None:
    found = _run(
        """
found = []
for x in three, three, four, three:
    before = counted()
    function(x)
    found.append(since(before))
print(json.dumps(found))
""",
        tmp_path,
    )
    assert [each.get("compile", 0) for each in found] == [1, 0, 1, 0]
    assert [each.get("lower", 0) for each in found] == [1, 0, 1, 0]
    # Depending on the release, those of functions within too.
    assert found[0]["trace"] >= 1
    assert (found[1]["trace"], found[3]["trace"]) == (0, 0)


def test_stages_within_a_stage_count_once(tmp_path: Path) -> None:
    times, elapsed_ns = _run(
        """
before = counted("time")
start = time.perf_counter_ns()
function(three)
elapsed_ns = time.perf_counter_ns() - start
print(json.dumps([since(before, "time"), elapsed_ns]))
""",
        tmp_path,
    )
    assert min(times.values()) > 0
    assert sum(times.values()) <= elapsed_ns


def test_the_time_of_stages_within_is_not_a_stages_own() -> None:
    compilations._thread.__dict__.clear()
    assert compilations._own_ns(100, 20) == 20  # from 80 on
    assert compilations._own_ns(150, 30) == 30  # from 120 on
    assert compilations._own_ns(160, 70) == 40  # from 90 on, with the second within
    assert compilations._own_ns(200, 150) == 60  # from 50 on, with all
    compilations._thread.__dict__.clear()


def test_hits_and_misses_of_the_persistent_cache(tmp_path: Path) -> None:
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    program = "function(three); print(json.dumps(counted('cache')))"
    first = _run(program, tmp_path, **cache)
    second = _run(program, tmp_path, **cache)
    assert first["miss"] >= 1
    assert (second.get("miss", 0), second["hit"]) == (0, first["miss"])


def test_the_host_sums_them_by_service(tmp_path: Path) -> None:
    found = _run("function(three); print(json.dumps(counted()))", tmp_path)
    snapshot = Host(directories.exactly([str(tmp_path / "segments")]), consume=False).collect()
    compiled = snapshot.compiled
    assert {stage: count for (_, stage), count in compiled.jax_compilations.items()} == found
    assert {stage for _, stage in compiled.jax_time_s} == {"trace", "lower", "compile"}
    assert all(0 < seconds < 400 for seconds in compiled.jax_time_s.values())


def test_a_failing_counter_harms_no_compilation_and_detaching_ends_the_counting(
    tmp_path: Path,
) -> None:
    result, left, again = _run(
        """
from jax._src import monitoring
from opscope.bridges.jax import compile as compilations
own = []
monitoring.register_event_duration_secs_listener(lambda *a, **k: own.append(a))
good, compilations.Metric = compilations.Metric, None
result = float(function(three).sum())
compilations.Metric = good
opscope.detach()
before = counted()
function(four)
left = [len(monitoring.get_event_duration_listeners()), len(monitoring.get_event_listeners())]
assert since(before) == {}, since(before)
opscope.attach()
opscope.attach()
print(json.dumps([result, left, len(monitoring.get_event_duration_listeners())]))
""",
        tmp_path,
    )
    assert result == pytest.approx(7.57, abs=0.01)
    assert (left, again) == ([1, 0], 2)
