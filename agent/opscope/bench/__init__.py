"""The framework of `opscope bench`: it measures the package's costs and the accuracy of estimates.

Every module and package here is one bench, found by its name: a new bench is a new file with
`measure(effort) -> Iterator[Result]`. This file has the shared parts: results, rounds, medians. It
prints nothing (cli/bench.py does) and knows no case.

The method: the sides of a comparison run in turns, round by round, in one process or in fresh ones,
so that other load on the machine affects all of them. A value is the median over the rounds; a
ratio is computed within each round before the median, so that slow drift cancels out.
"""

import pkgutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from math import comb
from pathlib import Path
from typing import Any

from opscope.record import recorder

RATIO = "ratio"


@dataclass(frozen=True)
class Result:
    """One measured case.

    `value` is in `unit`; the unit `"ratio"` means relative to `against`, measured in the same run.
    `bound` is the upper bound (the lower one if `more_is_better`), or both bounds; None for a case
    without a bound.
    """

    bench: str
    case: str
    value: float
    unit: str
    against: str | None
    bound: float | tuple[float, float] | None
    rounds: int
    more_is_better: bool = False
    interval: tuple[float, float] | None = None
    """95 % confidence interval of the value."""
    detail: Mapping[str, object] | None = None
    """The data behind the value, for `--json`."""

    @property
    def kept(self) -> bool | None:
        """Whether the bound holds; None without a bound."""
        if self.bound is None:
            return None
        if isinstance(self.bound, tuple):
            return self.bound[0] <= self.value <= self.bound[1]
        return self.value >= self.bound if self.more_is_better else self.value <= self.bound


@dataclass(frozen=True)
class Effort:
    """The requested cases, rounds and seconds, and whether a rough estimate suffices."""

    rounds: int | None = None
    quick: bool = False
    seconds: float | None = None
    only: str | None = None
    """A pattern of cases, with * and ?; None: all."""

    def rounds_of(self, usual: int) -> int:
        """The number of rounds; by default `usual`, which gives a steady median."""
        return self.rounds or (max(3, usual // 8) if self.quick else usual)

    def count_of(self, usual: int) -> int:
        """Iterations of a loop in one round; by default `usual`."""
        return max(1, usual // 10) if self.quick else usual

    def seconds_of(self, usual: float, quick: float) -> float:
        """Seconds to observe one program, for benches that do so."""
        return self.seconds or (quick if self.quick else usual)

    def wants(self, case: str) -> bool:
        """Whether the case is requested. A bench may skip other cases."""
        return self.only is None or fnmatchcase(case, self.only)


def names() -> list[str]:
    """The names of the benches, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def measure(name: str, effort: Effort) -> Iterator[Result]:
    """Yields the results of one bench as they are ready. Raises OpscopeError if it cannot run."""
    results: Iterator[Result] = import_module(f"{__name__}.{name}").measure(effort)
    return (result for result in results if effort.wants(result.case))


def interleaved(rounds: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Each side's values by round. Every other round runs the sides in reverse order."""
    measured: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            measured[name].append(sides[name]())
    return measured


def median_ratio(values: Sequence[float], against: Sequence[float]) -> float:
    """The median over the rounds of the ratio of the two values in each round."""
    return statistics.median(value / base for value, base in zip(values, against, strict=True))


def median_interval(values: Sequence[float], wrong_once_in: int = 20) -> tuple[float, float]:
    """A 95 % confidence interval of the median for any distribution: two of the values.

    With a larger `wrong_once_in` than 20, the confidence is higher and the interval wider. With too
    few values (below six for 20), returns the minimum and the maximum, with less confidence.
    """
    ordered = sorted(values)
    count = len(ordered)
    # Of 2 ** count ways to fall on either side of the median, those with that few below it.
    below, ways = 0, 1
    while 2 * wrong_once_in * (ways + comb(count, below + 1)) <= 2**count:
        below += 1
        ways += comb(count, below)
    return ordered[below], ordered[-1 - below]


@contextmanager
def segment_directory() -> Iterator[str]:
    """An empty directory in shared memory, as segments normally have; removed afterwards. No agent
    of the host reads it: root's reads all that are named `opscope-*` there."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="bench-opscope-", dir=shared if shared.is_dir() else None
    ) as directory:
        yield directory


@contextmanager
def attached(
    bridge: Any,
    directory: str,
    *,
    sampling: float = 1.0,
    window_ms: float = 0.0,
    period_ms: float = 0.0,
) -> Iterator[None]:
    """A bridge's module attached to this process, which records with these settings of
    `recorder.start`. Afterwards nothing is recorded."""
    recorder.start(directory, sampling=sampling, window_ms=window_ms, period_ms=period_ms)
    try:
        bridge.attach()
        try:
            yield
        finally:
            bridge.detach()
    finally:
        recorder.stop(discard=True)
