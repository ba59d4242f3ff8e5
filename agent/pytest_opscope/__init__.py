"""A plugin for pytest: the fixture `opscope_profile` fails a test whose operators exceed limits.

    def test_step(opscope_profile):
        with opscope_profile(calls={"numpy::matmul": 3}, self_ms={"total": 20}):
            step()

Without limits, or besides them, the block is compared with the baseline file, which
`pytest --opscope-update` writes. agent/opscope/ci/README.md describes both.

pytest imports this module at each start in every environment that has opscope. So it is not part of
the package opscope, and imports that only in a test that has the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from opscope.ci.budgets import Excess, Used
    from opscope.timeline.profiler import profile

_FILE = "opscope-baseline.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("opscope", "operator budgets (opscope)")
    group.addoption(
        "--opscope-update",
        action="store_true",
        help="Write the operators of each opscope_profile block into the baseline file, instead of "
        "comparing them with it.",
    )
    parser.addini(
        "opscope_baseline", f"Baseline file, from the root directory ({_FILE}).", default=_FILE
    )
    parser.addini(
        "opscope_more_calls",
        "Allowed growth of an operator's calls since the baseline, in percent (0).",
        default="0",
    )
    parser.addini(
        "opscope_more_time",
        "Allowed growth of an operator's self time since the baseline, in percent; empty: times "
        "are not compared, because they differ between machines.",
        default="",
    )


@pytest.fixture
def opscope_profile(request: pytest.FixtureRequest) -> BlockProfiles:
    """Call it for a `with` block whose operators are judged (opscope/ci/README.md)."""
    return BlockProfiles(request.config, request.node.nodeid)


class BlockProfiles:
    """The fixture's value: a call makes the context manager of one block."""

    def __init__(self, config: pytest.Config, test: str) -> None:
        self._config = config
        self._test = test

    def __call__(
        self,
        name: str = "",
        *,
        calls: Mapping[str, int] | None = None,
        self_ms: Mapping[str, float] | None = None,
        baseline: bool = True,
        buffer_mib: int = 64,
    ) -> BlockProfile:
        """A context manager that records every operator of its block, and then judges them.

        `name`: tells the blocks of one test apart, in the baseline. `calls`, `self_ms`: the most
        calls, and milliseconds of self time, by operator, pattern with * and ?, or "total".
        `baseline`: whether the baseline file is used. `buffer_mib`: as in opscope.profile().
        """
        block = f"{self._test}[{name}]" if name else self._test
        return BlockProfile(self._config, block, calls or {}, self_ms or {}, baseline, buffer_mib)


class BlockProfile:
    """One block. `profile` is its opscope.profile(), for a test's own assertions."""

    def __init__(
        self,
        config: pytest.Config,
        block: str,
        calls: Mapping[str, int],
        self_ms: Mapping[str, float],
        has_baseline: bool,
        buffer_mib: int,
    ) -> None:
        from opscope import profile

        self.profile: profile = profile(buffer_mib=buffer_mib)
        self._config = config
        self._block = block
        self._calls, self._self_ms = calls, self_ms
        self._has_baseline = has_baseline

    def __enter__(self) -> BlockProfile:
        self.profile.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        __tracebackhide__ = True
        self.profile.stop()
        if error is not None:
            return
        if lost := self.profile.lost_count:
            pytest.fail(f"{lost:,} ranges found no room and cannot be judged: give buffer_mib more")
        from opscope.ci import budgets

        used = self.used
        excesses = budgets.over_budget(used, self._calls, self._self_ms)
        if self._has_baseline:
            excesses += self._against_baseline(used)
        if excesses:
            pytest.fail(self._message(excesses))

    @property
    def used(self) -> dict[str, Used]:
        """Calls and self time in ms of each operator, after the block."""
        from opscope.ci.budgets import Used

        return {
            row.key: Used(row.count, row.self_cpu_time_total / 1e3)
            for row in self.profile.key_averages()
        }

    def _against_baseline(self, used: Mapping[str, Used]) -> list[Excess]:
        from opscope.ci import baseline, budgets

        path = self._path()
        if self._config.getoption("--opscope-update"):
            baseline.update(path, self._block, used)
            return []
        before = baseline.load(path).get(self._block)
        if before is None:
            return []
        more_time = self._percent("opscope_more_time")
        more_calls = self._percent("opscope_more_calls") or 0.0
        return budgets.over_baseline(used, before, more_calls=more_calls, more_time=more_time)

    def _path(self) -> str:
        return os.path.join(self._config.rootpath, self._config.getini("opscope_baseline"))

    def _percent(self, name: str) -> float | None:
        text = str(self._config.getini(name)).strip().removesuffix("%")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1e6:
            raise pytest.UsageError(f"{name} = {text!r}: must be a percentage of 0 or more")
        return value / 100

    def _message(self, excesses: list[Excess]) -> str:
        from opscope.ci import budgets

        lines = [budgets.report(excesses)]
        if any(one.source == "baseline" for one in excesses):
            path = os.path.relpath(self._path())
            lines.append(f"If this is intended: pytest --opscope-update, and commit {path}")
        return "\n".join(lines)
