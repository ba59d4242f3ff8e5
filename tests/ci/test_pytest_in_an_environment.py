"""The plugin as users have it: from a wheel, in an environment where pytest turns warnings to
errors, observed and unobserved."""

import subprocess
from pathlib import Path

import pytest

from tests.environments import new_environment, pip

TEST = """
import sys
import numpy

def test_it(opscope_profile):
    with opscope_profile(calls={"numpy::add": 1}) as block:
        numpy.add(numpy.ones(3), 1)
    assert block.used["numpy::add"].calls == 1
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    place = new_environment(tmp_path_factory.mktemp("environment"))
    pip(place, "install", "--quiet", wheel, "numpy", "pytest")
    return place / "bin"


@pytest.mark.parametrize("observed", [False, True])
def test_pytest_runs_without_a_warning(programs: Path, tmp_path: Path, observed: bool) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    command: list[str | Path] = [programs / "python", "-m", "pytest", "-W", "error"]
    if observed:
        command = [programs / "opscope", "run", "--directory", tmp_path / "s", "--", *command]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "opscope-0.1.0" in done.stdout
    assert "1 passed" in done.stdout
    assert "warning" not in done.stdout
