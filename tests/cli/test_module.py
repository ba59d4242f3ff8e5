"""`python -m opscope` is the command `opscope`."""

import subprocess
import sys

import pytest

import opscope


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--version"], 0, f"opscope, version {opscope.__version__}"),
        (["metrics-of-nothing"], 2, "metrics-of-nothing"),
    ],
)
def test_the_package_runs_as_the_command(arguments: list[str], status: int, text: str) -> None:
    command = [sys.executable, "-m", "opscope", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert text in done.stdout + done.stderr
