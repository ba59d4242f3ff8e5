"""Run NumPy's own test modules, bare or observed, and print each test's outcome as JSON.

Usage: numpy_suite.py bare|observed|windows DIRECTORY MODULE... Not a test itself:
test_numpy_suites.py runs it in processes of its own. Observed means attached, the recorder at p=1
writing to DIRECTORY; windows, the same in windows so short that pointers change all the time.
"""

import json
import sys
from pathlib import Path

import pytest

# Left out: three quarters of the time of numpy.linalg's tests (stacks of matrices are in others
# too), most of the 3,360 cases of a test that looks at floating-point flags, and the 335 cases of
# one of two tests of accumulate with overlapping memory.
_CHOSEN = (
    "not ((TestCond or TestDet or TestEig or TestEigvals or TestPinv or TestSVD) and generalized)"
    " and not (test_unary_spurious_fpexception and not data13)"
    " and not test_memoverlap_accumulate_symmetric"
)
# Of pytest's own plugins: they take a third of the time of thousands of short tests.
_LEFT_OUT = [
    f"-pno:{plugin}"
    for plugin in (
        *("cacheprovider", "faulthandler", "logging", "randomly"),
        *("threadexception", "unraisableexception"),
    )
]


class Outcomes:
    def __init__(self) -> None:
        self.by_test: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # Every phase counts: setup skips, teardown errors. xfail shows as skipped with wasxfail.
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        if report.when == "call" or outcome != "passed":
            # The id alone does not contain the module of the test.
            module = Path(report.location[0]).name
            self.by_test[f"{module} {report.nodeid} {report.when}"] = outcome


def run(modules: list[str]) -> Outcomes:
    outcomes = Outcomes()
    arguments = ["-q", "-s", "--tb=no", *_LEFT_OUT, "-k", _CHOSEN, "--pyargs", *modules]
    pytest.main(arguments, plugins=[outcomes])
    return outcomes


def run_observed(
    directory: str, modules: list[str], window_ms: float = 0.0, period_ms: float = 0.0
) -> tuple[Outcomes, int]:
    """The outcomes, and how many operators were recorded."""
    import numpy  # noqa: F401 - what the bridge attaches to

    from opscope._native import lib
    from opscope.bridges import numpy as bridge
    from opscope.record import recorder

    recorder.start(directory, window_ms=window_ms, period_ms=period_ms)
    bridge.attach()
    outcomes = run(modules)
    status = bridge.status()
    assert status.attached and not status.missed, status
    recorded = int(lib.opscope_op_count())
    bridge.detach()
    recorder.stop(discard=True)
    return outcomes, recorded


def main(mode: str, directory: str, modules: list[str]) -> None:
    if mode == "observed":
        outcomes, recorded = run_observed(directory, modules)
    elif mode == "windows":
        outcomes, recorded = run_observed(directory, modules, window_ms=0.05, period_ms=0.1)
    else:
        outcomes, recorded = run(modules), 0
    print("\n" + json.dumps({"outcomes": outcomes.by_test, "operators": recorded}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
