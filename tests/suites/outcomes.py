"""Run a package's own test modules, and write each test's outcome as JSON.

Usage: outcomes.py FILE IS_OBSERVED PYTEST-ARGUMENT... Runs in a process of its own, attached by its
environment or not. The file has the outcomes by test, and the number of operators.
"""

import json
import sys
from pathlib import Path

import pytest


class Outcomes:
    def __init__(self) -> None:
        self.by_test: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # A module that needs something that is not installed, or fails as it is imported.
        if report.failed:
            self.by_test[f"{report.nodeid} collect"] = report.outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # Every phase counts: setup skips, teardown errors. xfail shows as skipped with wasxfail.
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        if report.when == "call" or outcome != "passed":
            self.by_test[f"{report.nodeid} {report.when}"] = outcome


def main(file: str, is_observed: str, arguments: list[str]) -> None:
    outcomes = Outcomes()
    options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    pytest.main([*options, *arguments], plugins=[outcomes])
    operators = 0
    if is_observed == "1":
        import opscope
        from opscope._native import lib

        status = opscope.attach_status()
        assert status.attached, status
        operators = int(lib.opscope_op_count())
    Path(file).write_text(json.dumps({"outcomes": outcomes.by_test, "operators": operators}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
