"""PyTorch's own tests of its callbacks, profiler and debug info pass with the bridge attached.

The wheel has no Python tests (torch.testing has only their helpers), but it has C++ test programs,
which run here unchanged. Opscope is loaded as a preloaded library.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from opscope import _native
from tests.kept_builds import kept

from .torch_observed import TIMEOUT_S, counts

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
TORCH = Path(torch.__file__).parent
LIBOPSCOPE = Path(_native.__file__).parent

# Program, tests of it, at least as many. Those of RecordFunctionTest remove all callbacks as they
# end, also of ours: each runs in its own process.
SUITES = [
    *[
        ("bin/test_jit", f"RecordFunctionTest.{name}", 1)
        for name in (
            *["TracedTestInputsOutputs", "SampledCallbacks", "RecordFunctionGuard", "Callbacks"],
            *["ShouldRun", "Basic", "OperatorNameOverload"],
        )
    ],
    ("bin/test_jit", "ThreadLocalDebugInfoTest.*:InterpreterTest.*:TestAsync*", 4),
    ("bin/test_profiler_collection", "*", 1),
    ("bin/test_privateuse1_profiler", "*", 4),
    ("test/op_registration_test", "*", 50),
    ("test/kernel_function_test", "*", 30),
    ("test/backend_fallback_test", "*", 3),
]
NEEDED = [shutil.which("cc"), shutil.which("c++")]


@pytest.fixture(scope="module")
def attacher() -> Path:
    """The library that attaches: the bridge, without Python, and what calls it. Reading PyTorch's
    headers takes most of the time of these tests, so it is kept."""
    if None in NEEDED:
        pytest.skip("a library to preload is built with cc and c++")
    native = REPOSITORY / "native"
    places = [
        f"-I{native}",
        f"-I{native / 'include'}",
        f"-L{LIBOPSCOPE}",
        f"-Wl,-rpath,{LIBOPSCOPE}",
    ]
    shared = ["-O1", "-fPIC", "-shared", *places]
    bridge = [str(path) for path in sorted((native / "bridges" / "torch").glob("*.c"))]
    bridge += [str(native / "bridges" / name) for name in ("pages.c", "slot.c")]
    own = ["-std=gnu11", "-ftls-model=initial-exec", "-o", "libbridge.so", *bridge, "-lopscope"]
    pytorch = [f"-I{TORCH / 'include'}", f"-L{TORCH / 'lib'}", f"-Wl,-rpath,{TORCH / 'lib'}"]
    libraries = ["-L.", "-Wl,-rpath,$ORIGIN", "-lbridge", "-lopscope", "-ltorch_cpu", "-lc10"]
    caller = str(REPOSITORY / "tests" / "bridges" / "torch_attached.cpp")
    commands = [
        ["cc", *shared, *own],
        ["c++", "-std=c++20", *shared, *pytorch, "-o", "libattacher.so", caller, *libraries],
    ]

    def make(directory: Path) -> None:
        for command in commands:
            subprocess.run(command, cwd=directory, check=True)

    sources = [path for path in sorted(native.rglob("*.[ch]")) if path.is_file()]
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=True)
    texts = (repr(commands), compiler.stdout, torch.__version__)
    return kept("attacher", [*sources, Path(caller), *texts], make) / "libattacher.so"


@pytest.mark.parametrize("window_us", [0, 50], ids=["every range", "windows"])
@pytest.mark.parametrize(
    ("program", "tests", "fewest"), SUITES, ids=[f"{path} {tests}" for path, tests, _ in SUITES]
)
def test_they_pass(
    program: str, tests: str, fewest: int, window_us: int, attacher: Path, tmp_path: Path
) -> None:
    if not (TORCH / program).exists():
        pytest.skip(f"this wheel carries no {program}")
    environ = {
        **os.environ,
        "LD_PRELOAD": str(attacher),
        "OPSCOPE_DIR": str(tmp_path / "segments"),
        "WINDOW_US": str(window_us),
    }
    done = subprocess.run(
        [str(TORCH / program), f"--gtest_filter={tests}"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    passed = re.search(r"\[  PASSED  ] (\d+) test", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= fewest
    found = counts(tmp_path / "segments")
    assert found.snapshot.processes
    if window_us == 0 and "profiler" not in program:  # those run no operators
        assert found.total_calls > 0
