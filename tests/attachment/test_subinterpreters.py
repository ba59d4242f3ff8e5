"""Several interpreters in one process: only the main one is observed, and none is disturbed.

Opscope's extension has one state for the process, and the functions that it lends to NumPy outlive
a subinterpreter; so a subinterpreter loads none of it.
"""

from __future__ import annotations

import pytest

from .conftest import Bench

IN_ANOTHER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def run(code):
    options = ("legacy",) if sys.version_info >= (3, 13) else ()
    named = {} if options or sys.version_info < (3, 12) else {"isolated": False}
    other = interpreters.create(*options, **named)
    interpreters.run_string(other, code)
    interpreters.destroy(other)
"""
SHOW = (
    "import numpy, sys; print('other', numpy.__version__,"
    " [m for m in sys.modules if m.startswith('opscope')], flush=True)"
)


@pytest.mark.parametrize("first", ["main", "other"])
def test_a_subinterpreter_that_imports_numpy_is_left_alone(bench: Bench, first: str) -> None:
    work = ["import numpy, opscope; print('main', opscope.attach_status().attached, flush=True)"]
    work.insert(first == "main", f"run({SHOW!r}); run({SHOW!r})")
    done = bench.run("-c", "\n".join([IN_ANOTHER, *work]), OPSCOPE_BRIDGES="none")
    others = ["other 99.0 []"] * 2
    expected = ["main True", *others] if first == "main" else [*others, "main True"]
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, expected, "")
    assert len(bench.segment_files()) == 1
    assert bench.reasons() == [("subinterpreter", "numpy imported in a subinterpreter")]


def test_the_real_numpy_behaves_as_without_opscope(bench: Bench) -> None:
    code = "import numpy; numpy.add(numpy.ones(3), 1); print('worked', flush=True)"
    program = (
        f"{IN_ANOTHER}\nimport numpy\n"
        f"try:\n    run({code!r})\nexcept Exception as error:\n    print(type(error).__name__)\n"
        "print(numpy.add(1, 2))"
    )
    flags = ("-W", "ignore")
    bare = bench.run(*flags, "-c", program, observed=False, stub=False)
    observed = bench.run(*flags, "-c", program, stub=False, OPSCOPE_SAMPLING="1")
    assert (observed.returncode, observed.stdout) == (bare.returncode, bare.stdout)
    assert observed.stdout.endswith("3\n")


def test_in_a_thread_of_the_main_interpreter_numpy_is_observed(bench: Bench) -> None:
    program = (
        "import threading, sys\n"
        "def work():\n    import numpy\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "import opscope; print(opscope.attach_status().attached)"
    )
    assert bench.run("-c", program).stdout == "True\n"


def test_attaching_in_a_subinterpreter_is_refused_with_the_reason(bench: Bench) -> None:
    code = "import opscope; opscope.attach(); print(opscope.attach_status()[:2], flush=True)"
    program = (
        f"{IN_ANOTHER}\ntry:\n    run({code!r})\nexcept Exception:\n    print('not importable')"
    )
    done = bench.run("-c", program, observed=False, OPSCOPE_DIR=str(bench.segments))
    assert done.stdout in ("(False, 'subinterpreter')\n", "not importable\n")
    assert bench.segment_files() == []
