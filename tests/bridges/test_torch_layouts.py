"""The trial on a real PyTorch: it confirms the layout that was found, refuses each wrong one, and
prints nothing. Needs a C compiler: the bridge is compiled so that a test can put in a layout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opscope import _native

from .torch_observed import TIMEOUT_S

REPOSITORY = Path(__file__).parents[2]
LIBOPSCOPE = Path(_native.__file__).parent

# In a process of its own: one trial for each layout, each in a child, which a crash ends.
PROGRAM = """
import ctypes, os, sys
import torch
from opscope.bridges.torch import run_trial

FIELDS = (
    "scope", "name", "has_schema", "sequence_nr", "inputs", "input_count", "outputs",
    "forward_thread_id", "is_async",
)
lib = ctypes.CDLL(sys.argv[1])
for name in ("trial_begin", "trial_end", "fault"):
    getattr(lib, f"opscope_torch_{name}").restype = ctypes.c_char_p
layout = (ctypes.c_uint16 * len(FIELDS)).in_dll(lib, "opscope__torch")


def outcome(shifts):
    child = os.fork()
    if child == 0:
        refused = lib.opscope_torch_trial_begin(b"") is not None
        for field, shift in enumerate(shifts):
            layout[field] += shift
        run_trial(torch)
        refused = refused or lib.opscope_torch_trial_end() is not None
        os._exit(1 if refused else 2 if lib.opscope_torch_fault(0) is not None else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


print("as found", outcome([0] * len(FIELDS)))
for number, name in enumerate(FIELDS):
    for shift in (-8, 8, 16):
        after = [shift * (other >= number) for other in range(len(FIELDS))]
        alone = [shift * (other == number) for other in range(len(FIELDS))]
        print(f"{name} and after {shift:+}", outcome(after))
        print(f"{name} {shift:+}", outcome(alone))
"""


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("the bridge is compiled with cc")
    library = tmp_path_factory.mktemp("bridge") / "libbridge.so"
    native = REPOSITORY / "native"
    bridges = native / "bridges"
    sources = [*(bridges / "torch").glob("*.c"), bridges / "pages.c", bridges / "slot.c"]
    links = [f"-L{LIBOPSCOPE}", f"-Wl,-rpath,{LIBOPSCOPE}", "-lopscope"]
    flags = ["-O1", "-fPIC", "-shared", "-std=gnu11", "-ftls-model=initial-exec"]
    places = [f"-I{native}", f"-I{native / 'include'}"]
    subprocess.run(["cc", *flags, *places, "-o", library, *map(str, sources), *links], check=True)
    return library


def test_the_layout_found_is_confirmed_and_a_wrong_one_is_refused_without_harm(
    bridge: Path,
) -> None:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(bridge)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    outcomes = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert outcomes.pop("as found") == "0"
    assert len(outcomes) == 9 * 3 * 2
    assert {case: code for case, code in outcomes.items() if code != "2"} == {}
