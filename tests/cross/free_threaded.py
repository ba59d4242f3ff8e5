"""The tests on free-threaded CPython: recording, attaching and the NumPy bridge without the GIL.

Usage: python -m tests.cross.free_threaded [PYTHON]

Builds the package for that interpreter (native/cross/free_threaded.py finds or builds one),
installs it into an environment of its own below build, and runs the tests there.
Tests of opscope.tensor are left out: it stands down without the GIL.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from native.cross.build import ROOT, build_wheel
from native.cross.free_threaded import environment, install, interpreter

HERE = ROOT / "build" / "free-threaded-environment"
PACKAGES = (
    *("numpy", "click", "rich", "pytest>=9", "hypothesis", "prometheus-client"),
    *("anyio", "opentelemetry-sdk", "uvloop"),
)
TESTS = (
    *("tests/record", "tests/bridges/test_numpy_counts.py", "tests/bridges/test_numpy_pointers.py"),
    *("tests/bridges/test_numpy_threads.py", "tests/bridges/test_numpy_values.py"),
    *("tests/bridges/test_numpy_windows.py", "tests/attachment/test_free_threaded.py"),
    *("tests/attachment/test_policy.py", "tests/attachment/test_one_thread.py"),
)
STATES = """
import sys
import numpy, opscope
assert not sys._is_gil_enabled()
opscope.attach()
assert opscope.attach_status().bridges == {"numpy": "attached"}, opscope.attach_status()
assert not sys._is_gil_enabled()
"""


def main(given: str) -> None:
    python = environment(interpreter(given), HERE)
    install(python, *PACKAGES)
    with tempfile.TemporaryDirectory() as wheels:
        wheel = build_wheel(ROOT, Path(wheels), python=python)
        install(python, "--no-deps", "--force-reinstall", str(wheel))
    # Warnings are errors: the interpreter warns of a module that switches the GIL on.
    run(python, "-W", "error", "-c", STATES, cwd=HERE)
    environ = os.environ | {"OPSCOPE_TEST_PYTHONS": str(python)}
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, environ=environ)


def run(*command: str | Path, cwd: Path = ROOT, environ: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=environ, check=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
