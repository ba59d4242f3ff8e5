"""A test that waits for a program forever fails at the limit, and the tests after it run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HANGS = """
import subprocess

def test_a_program_that_never_ends():
    with subprocess.Popen(["sh", "-c", "sleep 1000; true"], stdout=-1) as program:
        program.communicate()

def test_after_it():
    pass
"""


def test_a_test_that_hangs_fails_and_the_next_one_runs(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.time_limit"]')
    options = ("--rootdir", str(tmp_path), "-c", "/dev/null", "-p", "no:cacheprovider")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=pytestconfig.rootpath,
        env=os.environ | {"OPSCOPE_TEST_LIMIT_S": "0.5"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "did not end within 0.5 s" in result.stdout
    assert "1 failed, 1 passed" in result.stdout, result.stdout + result.stderr
