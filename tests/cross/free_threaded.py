"""The tests on free-threaded CPython: recording, attaching and the NumPy bridge without the GIL.

Usage: python -m tests.cross.free_threaded [PYTHON]

Builds the package for that interpreter (native/cross/free_threaded.py finds or builds one),
installs it into an environment of its own below build/free-threaded, and runs the tests there.
Tests of opscope.tensor are left out: it stands down without the GIL.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from native.cross.build import ROOT
from native.cross.free_threaded import interpreter

HERE = ROOT / "build" / "free-threaded"
PACKAGES = (
    *("pip>=25.1", "scikit-build-core>=0.11", "cffi>=2.1", "cmake", "ninja"),
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
assert opscope.status().bridges == {"numpy": "attached"}, opscope.status()
assert not sys._is_gil_enabled()
"""


def main(given: str) -> None:
    python = environment(interpreter(given))
    install(python)
    # Warnings are errors: the interpreter warns of a module that switches the GIL on.
    run(python, "-W", "error", "-c", STATES, cwd=HERE)
    environ = os.environ | {"OPSCOPE_TEST_PYTHONS": str(python)}
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, environ=environ)


def environment(base: str) -> Path:
    python = HERE / "environment" / "bin" / "python"
    if not python.exists():
        run(base, "-m", "venv", "--without-pip", python.parent.parent)
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *PACKAGES)
    return python


def install(python: Path) -> None:
    with tempfile.TemporaryDirectory() as wheels:
        build = (f"build-dir={HERE / 'wheel'}", "cmake.define.OPSCOPE_WERROR=ON")
        settings = [f"--config-settings={setting}" for setting in build]
        wheel = ("wheel", "--quiet", "--no-build-isolation", "--no-deps", *settings)
        path = {"PATH": os.pathsep.join((str(python.parent), os.environ["PATH"]))}
        run(python, "-m", "pip", *wheel, "--wheel-dir", wheels, ROOT, environ=os.environ | path)
        (made,) = Path(wheels).iterdir()
        run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", made)


def run(*command: str | Path, cwd: Path = ROOT, environ: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=environ, check=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
