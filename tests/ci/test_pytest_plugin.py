"""The pytest plugin in real runs of pytest, which load it by its name and no other one: those of
this environment take as long as the rest. test_pytest_in_an_environment.py has a pytest that finds
it by itself.

Most run in forks of a process that has imported pytest and NumPy, which take most of a run's time.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opscope.ci import baseline
from opscope.ci.budgets import Used
from opscope.errors import OpscopeError
from tests.forked_programs import WITH_PYTEST

TEST = """
import os
import numpy

x = numpy.ones(3)

def work():
    for _ in range(int(os.environ.get("CALLS", "3"))):
        numpy.add(x, 1)
    if os.environ.get("NEW"):
        numpy.linalg.det(numpy.eye(3))

"""


def pytest_in(
    place: Path, body: str, *words: str, ini: str = "", anew: bool = False, **environ: str
) -> subprocess.CompletedProcess[str]:
    """`anew`: in a new interpreter."""
    (place / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (place / "test_it.py").write_text(TEST + body)
    words = ("-p", "pytest_opscope", "-p", "no:cacheprovider", *words)
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environ
    if anew:
        command = [sys.executable, "-m", "pytest", *words]
        return subprocess.run(
            command, cwd=place, env=variables, capture_output=True, text=True, timeout=300
        )
    script = place / "run.py"
    script.write_text(f"import sys, pytest; sys.exit(pytest.main({[*words]!r}))")
    return WITH_PYTEST.run(script, place, variables, timeout_s=300)


def test_a_budget_is_kept_or_the_failure_names_the_operator(tmp_path: Path) -> None:
    body = """
def test_kept(opscope_profile):
    with opscope_profile(calls={"numpy::add": 3, "total": 3}, self_ms={"numpy::*": 1e6}) as block:
        work()
    assert block.used["numpy::add"].calls == 3

def test_exceeded(opscope_profile):
    with opscope_profile(calls={"numpy::a*": 2}, self_ms={"total": 0}):
        work()
"""
    done = pytest_in(tmp_path, body, anew=True)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "2 operator limits are exceeded:" in done.stdout
    assert any(
        line.split()[-6:-1] == ["E", "numpy::a*", "calls", "2", "3"]
        for line in done.stdout.splitlines()
    ), done.stdout
    assert "opscope/ci/" not in done.stdout.split("short test summary")[0]


BLOCK = """
def test_step(opscope_profile):
    with opscope_profile():
        work()
"""


def test_the_baseline_is_written_kept_and_exceeded(tmp_path: Path) -> None:
    assert pytest_in(tmp_path, BLOCK, "--opscope-update").returncode == 0
    path = tmp_path / "opscope-baseline.json"
    written = json.loads(path.read_text())
    assert written["blocks"]["test_it.py::test_step"]["numpy::add"][0] == 3
    assert pytest_in(tmp_path, BLOCK).returncode == 0
    assert pytest_in(tmp_path, BLOCK, CALLS="2").returncode == 0
    done = pytest_in(tmp_path, BLOCK, CALLS="5", NEW="1")
    assert done.returncode == 1
    assert "(baseline, +67 %)" in done.stdout
    assert "numpy::linalg.det" in done.stdout
    assert "(not in the baseline)" in done.stdout
    assert "pytest --opscope-update, and commit opscope-baseline.json" in done.stdout
    assert json.loads(path.read_text()) == written


def test_growth_within_the_setting_is_allowed_and_times_are_judged_on_request(
    tmp_path: Path,
) -> None:
    used = {"numpy::add": Used(3, 1e-9)}
    baseline.update(str(tmp_path / "b.json"), "test_it.py::test_step", used)
    ini = "opscope_baseline = b.json\nopscope_more_calls = 50"
    assert pytest_in(tmp_path, BLOCK, ini=ini, CALLS="4").returncode == 0
    done = pytest_in(tmp_path, BLOCK, ini=ini + "\nopscope_more_time = 10", CALLS="4")
    assert done.returncode == 1
    assert "self ms" in done.stdout


@pytest.mark.parametrize("value", ["much", "-1", "nan"])
def test_a_setting_that_is_no_percentage_is_named(tmp_path: Path, value: str) -> None:
    baseline.update(str(tmp_path / "opscope-baseline.json"), "test_it.py::test_step", {})
    done = pytest_in(tmp_path, BLOCK, ini=f"opscope_more_calls = {value}")
    assert done.returncode == 1
    assert f"opscope_more_calls = '{value}': must be a percentage" in done.stdout


def test_workers_update_one_file_together(tmp_path: Path) -> None:
    body = """
import pytest

@pytest.mark.parametrize("i", range(12))
def test_step(opscope_profile, i):
    with opscope_profile():
        work()
"""
    done = pytest_in(tmp_path, body, "--opscope-update", "-p", "xdist.plugin", "-n", "2", anew=True)
    assert done.returncode == 0, done.stdout
    assert len(baseline.load(str(tmp_path / "opscope-baseline.json"))) == 12


def test_an_error_of_the_block_stays_the_error(tmp_path: Path) -> None:
    body = """
def test_step(opscope_profile):
    with opscope_profile(calls={"total": 0}):
        work()
        raise KeyError("its own")
"""
    done = pytest_in(tmp_path, body)
    assert "KeyError: 'its own'" in done.stdout
    assert "limit" not in done.stdout.split("short test summary")[1]


def test_ranges_that_found_no_room_are_no_pass(tmp_path: Path) -> None:
    body = """
def test_step(opscope_profile):
    with opscope_profile(calls={"nothing": 1}, buffer_mib=1):
        work()
"""
    done = pytest_in(tmp_path, body, "-W", "ignore", CALLS="100000")
    assert done.returncode == 1
    assert "give buffer_mib more" in done.stdout


def test_without_the_fixture_pytest_loads_nothing_of_opscope(tmp_path: Path) -> None:
    body = """
import sys
def test_nothing():
    loaded = {name for name in sys.modules if name.startswith("opscope")}
    assert not loaded
"""
    done = pytest_in(tmp_path, body, anew=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": "opscope baseline", "version": 2}',
        '{"format": "opscope baseline", "version": 1, "blocks": {"a": {"op": ["x", 1]}}}',
    ],
)
def test_a_damaged_baseline_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(OpscopeError, match=r"b\.json is not a baseline"):
        baseline.load(str(path))
