"""Run test modules of a package bare, attached at sampling 1, and attached with short windows."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from opscope.attachment.launch import environment

MODES: Mapping[str, dict[str, str] | None] = {
    "bare": None,
    "observed": {"OPSCOPE_SAMPLING": "1", "OPSCOPE_MAX_OVERHEAD": "off"},
    "windows": {"OPSCOPE_WINDOW_MS": "0.05", "OPSCOPE_PERIOD_MS": "1"},
}
_SCRIPT = Path(__file__).with_name("outcomes.py")


class Ran(NamedTuple):
    outcomes: dict[str, str]
    """By test and phase; `passed`, `failed`, `skipped` or `xfailed`."""
    operators: int


def run(mode: str, directory: Path, arguments: Sequence[str], limit_s: float) -> Ran:
    """Raises AssertionError with the output if the tests could not run to their end."""
    directory = directory / mode
    directory.mkdir(exist_ok=True)
    file = directory / "outcomes.json"
    file.unlink(missing_ok=True)
    variables = MODES[mode]
    # One thread, as more of them only waste CPU time on small matrices.
    environ = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if variables is not None:
        environ = environment(
            environ
            | {"OPSCOPE_DIR": str(directory / "segments"), "OPSCOPE_ENABLED": "force"}
            | variables
        )
    command = [sys.executable, str(_SCRIPT), str(file), str(int(variables is not None)), *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environ, capture_output=True, text=True, timeout=limit_s
    )
    assert file.exists(), f"{mode}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    ran = json.loads(file.read_text())
    assert ran["outcomes"], f"{mode}: no test ran: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return Ran(ran["outcomes"], ran["operators"])


def differences(bare: Ran, other: Ran) -> list[str]:
    """Each test that ended otherwise, with both outcomes."""
    tests = sorted({*bare.outcomes, *other.outcomes})
    return [
        f"{test}: bare {bare.outcomes.get(test)}, attached {other.outcomes.get(test)}"
        for test in tests
        if bare.outcomes.get(test) != other.outcomes.get(test)
    ]
