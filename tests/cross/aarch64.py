"""The tests on aarch64, emulated: C tests, recording, both bridges and the tensor core.

Usage: python -m tests.cross.aarch64 [pytest's arguments, in place of all that is here]

The compiler and the C library are those of the wheel, with -Werror. QEMU's user mode runs the
tests, with Debian's Python and PyPI's packages; all are fetched below build/cross the first time.
QEMU shows neither aarch64's weak memory order nor its costs.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from native.cross import debian
from native.cross.build import ROOT, build_wheel
from native.cross.emulator import qemu
from native.cross.targets import BUILD, TARGETS
from native.cross.try_wheel import ADDITIONS, PROGRAM

TARGET = TARGETS["manylinux_2_27_aarch64"]
HERE = BUILD / "aarch64"
PYTHON_PACKAGES = (
    *("libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1", "libssl3", "libstdc++6", "zlib1g"),
    *("libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1", "libgomp1", "netbase"),
    *("libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal"),
)
PACKAGES = (
    *("numpy", "cffi", "click", "rich", "pytest", "hypothesis", "scipy-openblas32"),
    "scikit-learn",
    *("filelock", "fsspec", "jinja2", "networkx", "sympy", "typing-extensions"),  # PyTorch's
)
# Later versions for aarch64 need CUDA's packages. It comes without dependencies, because pip would
# take those of x86-64: CUDA's packages.
TORCH = "torch==2.9.1"
PYTHON_TESTS = (
    *("tests/record/test_ranges.py", "tests/record/test_values.py"),
    *("tests/bridges/test_numpy_counts.py", "tests/bridges/test_numpy_pointers.py"),
    "tests/bridges/test_numpy_values.py",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/bridges/test_torch_*.py")),
    *("tests/tensor/test_operators.py", "tests/tensor/test_reductions.py"),
    *("tests/tensor/test_optim.py", "tests/tensor/test_saved.py", "tests/tensor/test_numbers.py"),
    "tests/tensor/test_tanh.py",
)
LIMIT_S = 3600
"""For each test: the emulator is some twenty times slower than the processor."""
# The C tests that QEMU's user mode cannot run: what they need, and it has not or says wrongly.
NOT_EMULATED = {
    "test_fork_windows": "the number of threads in /proc/self/stat",
    "test_full": "madvise(MADV_POPULATE_WRITE)",
    "test_liveness": "prctl(PR_SET_CHILD_SUBREAPER)",
    "test_pages": "seccomp filters",
    "test_sandbox": "seccomp filters",
    "test_state": "exec of a program for aarch64",
}
# The Python tests that cannot run so, with what they need.
NOT_EMULATED_IN_PYTHON = {
    "tests/bridges/test_torch_counts.py::test_self_times_are_shared_out_as_by_the_profiler": (
        "the times of a real processor"
    ),
    "tests/bridges/test_torch_cuda.py": "a GPU",
    "tests/bridges/test_torch_own_tests.py": (
        "PyTorch's own test programs, which its wheel for aarch64 has not"
    ),
    "tests/bridges/test_torch_processes.py::test_children_forked_within_windows_go_on": (
        "forks while threads run: a child hung, and it is not known whether by QEMU's fault"
    ),
    "tests/bridges/test_torch_windows.py": "hours, as it computes until its estimates are exact",
    "tests/bridges/test_torch_windows_phases.py": "the times of a real processor",
}


def main(arguments: list[str]) -> None:
    root = debian.unpack(PYTHON_PACKAGES, "bookworm", BUILD / "python-aarch64", "arm64")
    # OpenBLAS 0.3.34 multiplies wrongly with SME, as emulated, and the tensor core refuses it then.
    processor = ("-cpu", "max,sme=off")
    emulator = [str(qemu()), *processor, "-L", str(root)]
    if not arguments:
        run_c_tests(emulator)
    opscope = own_package()
    programs = make_programs(emulator, root)
    environ = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": f"{opscope}:{packages()}",
        "PYTHONHOME": str(root / "usr"),
        "CXX": "",  # that of this machine compiles for x86-64
        "OPSCOPE_TEST_LIMIT_S": str(LIMIT_S),
    }
    python = str(programs / "python3.11")
    limit = f"faulthandler_timeout={2 * LIMIT_S}"
    pytest = [python, "-m", "pytest", "-p", "no:cacheprovider", "-o", limit]
    if arguments:
        run([*pytest, *arguments], environ)
        return
    record(python, environ, opscope / "opscope" / "attachment" / "site")
    for name, reason in NOT_EMULATED_IN_PYTHON.items():
        print(f"left out: {name}, which needs {reason}", flush=True)
    left_out = (f"--deselect={name}" for name in NOT_EMULATED_IN_PYTHON)
    run([*pytest, "-q", *left_out, *PYTHON_TESTS], environ)


def run_c_tests(emulator: list[str]) -> None:
    build = HERE / "c"
    definitions = TARGET.definitions() | {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CROSSCOMPILING_EMULATOR": ";".join(emulator),
        "OPSCOPE_BUILD_PYTHON": "OFF",
        "OPSCOPE_BUILD_TESTS": "ON",
        "OPSCOPE_WERROR": "ON",
    }
    environ = TARGET.environment()
    defined = [f"-D{name}={value}" for name, value in definitions.items()]
    run(["cmake", "-S", str(ROOT / "native"), "-B", str(build), "-G", "Ninja", *defined], environ)
    run(["cmake", "--build", str(build)], environ)
    for name, reason in NOT_EMULATED.items():
        print(f"left out: {name}, which needs of QEMU {reason}", flush=True)
    left_out = "|".join(f"{name}$" for name in NOT_EMULATED)
    ctest = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error"]
    run([*ctest, "--timeout", "900", "-E", left_out, "-j", str(os.cpu_count())])


def make_programs(emulator: list[str], root: Path) -> Path:
    """A folder with Python for aarch64, and `cc`, which compiles for it, as shell scripts.

    The kernel of x86-64 starts no program for aarch64, but such a script. So tests can start Python
    by `sys.executable`, which is the script.
    """
    into = HERE / "bin"
    into.mkdir(parents=True, exist_ok=True)
    start = shlex.join([*emulator, "-0"])
    _make_script(
        into / "python3.11", f'{start} "$0" {shlex.quote(str(root / "usr/bin/python3.11"))}'
    )
    environ = TARGET.environment()
    libraries = shlex.quote(f"LD_LIBRARY_PATH={environ['LD_LIBRARY_PATH']}")
    compiler = " ".join(environ[name] for name in ("CC", "CFLAGS", "LDFLAGS"))
    _make_script(into / "cc", f"env {libraries} {compiler}")
    return into


def _make_script(path: Path, command: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


def packages() -> Path:
    """A folder with PyPI's packages for aarch64."""
    into = HERE / "packages"
    if not into.exists():
        with tempfile.TemporaryDirectory(dir=HERE) as new:
            wheels, unpacked = Path(new, "wheels"), Path(new, "packages")
            glibc = ("manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28")
            download = [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"),
                *("--dest", str(wheels), "--python-version=3.11"),
                *(f"--platform={name}_aarch64" for name in glibc),
            ]
            run([*download, *PACKAGES])
            run([*download, "--no-deps", TORCH])
            for wheel in wheels.iterdir():
                zipfile.ZipFile(wheel).extractall(unpacked)
            unpacked.rename(into)
    return into


def own_package() -> Path:
    """A folder with Opscope, built from this tree."""
    into = HERE / "opscope"
    shutil.rmtree(into, ignore_errors=True)
    with tempfile.TemporaryDirectory() as new:
        zipfile.ZipFile(build_wheel(ROOT, Path(new), TARGET)).extractall(into)
    return into


def record(python: str, environ: dict[str, str], entry: Path) -> None:
    """Counts a NumPy program's calls, attached from its start; the host's command reads them."""
    with tempfile.TemporaryDirectory() as directory:
        environ = {**environ, "OPSCOPE_DIR": directory, "OPSCOPE_SAMPLING": "1"}
        attached = {"OPSCOPE_ATTACH": "1", "PYTHONPATH": f"{entry}:{environ['PYTHONPATH']}"}
        run([python, "-c", PROGRAM], environ | attached)
        top = "import sys; sys.argv[0] = 'opscope'; from opscope.cli import main; main()"
        command = [python, "-c", top, "top", "--once", "--json"]
        said = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True)
        rows = {row["operator"]: row["samples"] for row in json.loads(said.stdout)["operators"]}
        assert rows["numpy::add"] == ADDITIONS, rows
        print("recorded:", rows, flush=True)


def run(command: list[str], environ: dict[str, str] | None = None) -> None:
    subprocess.run(command, env=environ, cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
