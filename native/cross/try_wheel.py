"""Install a wheel into an empty environment of the running Python, and use it there.

Usage: python try_wheel.py WHEEL, or the directory that has the wheel for this machine

Needs nothing but the standard library and PyPI. No program of the machine is on PATH, so nothing
can compile: all packages come as wheels. It observes a NumPy program exactly, and computes with
tensors; in free-threaded Python it makes sure that the GIL stays off instead.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

FREE_THREADED = "t" in sys.abiflags
ADDITIONS = 7
PROGRAM = f"""
import numpy, sys
for _ in range({ADDITIONS}):
    numpy.add(numpy.ones(3), 1)
assert "t" not in sys.abiflags or not sys._is_gil_enabled()
"""
TENSORS = """
import numpy
import opscope.tensor as t
x = t.tensor(numpy.arange(4, dtype="float32")).requires_grad_()
(x.exp() + x).sum().backward()
assert numpy.allclose(numpy.asarray(x.grad), numpy.exp(numpy.arange(4)) + 1)
assert memoryview(t.ones(2)).tolist() == [1.0, 1.0]
"""


def main(given: Path) -> None:
    wheel = given if given.is_file() else _of_this_machine(given)
    with tempfile.TemporaryDirectory() as directory:
        programs = Path(directory, "venv", "bin")
        python = programs / "python"
        environ = {"PATH": str(programs), "OPSCOPE_DIR": f"{directory}/segments"}
        environ |= {
            name: text for name, text in os.environ.items() if name.startswith(("PIP", "SSL"))
        }

        def run(*command: "str | Path") -> str:
            done = subprocess.run(
                command, env=environ, cwd=directory, stdout=subprocess.PIPE, check=True, text=True
            )
            return done.stdout

        subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
        install = ("-m", "pip", "install", "--quiet", "--only-binary", ":all:")
        run(python, *install, f"{wheel.absolute()}[agent]")
        run(programs / "opscope", "run", "--sampling", "1", "--", python, "-c", PROGRAM)
        seen = json.loads(run(programs / "opscope", "top", "--once", "--json"))
        samples = {row["operator"]: row["samples"] for row in seen["operators"]}
        assert samples["numpy::add"] == ADDITIONS, samples
        if not FREE_THREADED:
            run(python, "-c", TENSORS)
        print(wheel.name, run(python, "-VV"), end="")


def _of_this_machine(directory: Path) -> Path:
    abi = "cp{}{}t".format(*sys.version_info) if FREE_THREADED else "abi3"
    libc = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    return only_wheel(directory, f"opscope-*-{abi}-{libc}_*_{platform.machine()}.whl")


def only_wheel(directory: Path, pattern: str) -> Path:
    """The directory's wheel of that name. Several would leave open which one is tried."""
    found = sorted(directory.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise SystemExit(f"{directory} must have one {pattern}, and has {names}")
    return found[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
