"""NumPy's own tests of ufuncs and linear algebra end attached as they do bare."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

CORE = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
MODULES = (
    f"{CORE}.tests.test_ufunc",
    f"{CORE}.tests.test_umath",
    f"{CORE}.tests.test_indexing",
    f"{CORE}.tests.test_overrides",
    "numpy.linalg.tests.test_linalg",
)


def _run(mode: str, directory: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("numpy_suite.py")
    done = subprocess.run(
        [sys.executable, str(script), mode, str(directory), *MODULES],
        cwd=directory,
        # A test that wants gigabytes would run now and be left out then.
        env=os.environ | {"NPY_AVAILABLE_MEM": "1GB"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_numpys_own_tests_end_observed_as_they_do_bare(tmp_path: Path) -> None:
    bare = _run("bare", tmp_path)["outcomes"]
    assert len(bare) > 5000
    for mode in ("observed", "windows"):
        found = _run(mode, tmp_path)
        assert found["operators"] > 150
        assert found["outcomes"] == bare
