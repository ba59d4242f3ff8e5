"""NumPy's own tests of ufuncs and linear algebra end attached as they do bare."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

CORE = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
# Windows change the pointers of ufuncs and leave those of builtins alone.
IN_WINDOWS = "test_ufunc", "test_umath"
ALWAYS = "test_linalg", "test_indexing", "test_overrides"

_VARIABLES = {
    # Whether tests that need gigabytes run depends on the free memory.
    "NPY_AVAILABLE_MEM": "1GB",
    # More threads only waste CPU time on small matrices.
    "OPENBLAS_NUM_THREADS": "1",
    # NumPy's tests need none of our plugins, which cost time at each test.
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


def _run(mode: str, directory: Path, names: Sequence[str]) -> dict[str, Any]:
    folders = {"test_linalg": "numpy.linalg.tests"}
    modules = [f"{folders.get(name, f'{CORE}.tests')}.{name}" for name in names]
    script = Path(__file__).with_name("numpy_suite.py")
    done = subprocess.run(
        [sys.executable, str(script), mode, str(directory), *modules],
        cwd=directory,
        env=os.environ | _VARIABLES,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize(("mode", "names"), [("windows", IN_WINDOWS), ("observed", ALWAYS)])
def test_numpys_own_tests_end_observed_as_they_do_bare(
    mode: str, names: Sequence[str], tmp_path: Path
) -> None:
    bare = _run("bare", tmp_path, names)["outcomes"]
    assert len(bare) > 700
    observed = _run(mode, tmp_path, names)
    assert observed["operators"] > 70
    assert observed["outcomes"] == bare
