"""What the package costs, measured: the frame of ``opscope bench``.

Every module of this package is one bench and is found by its name: a new bench is a new file with
``measure(effort) -> Iterator[Result]``. The frame holds what they share: results, rounds, medians.
It prints nothing (cli/bench.py does) and knows no case.

The method: the sides of a comparison run in turns, round by round, in one process or in fresh ones,
so that what the machine does meanwhile meets them all. A value is the median over the rounds, and a
ratio is taken within a round before the median, so a slow drift cancels out.
"""

import pkgutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from math import comb
from pathlib import Path

RATIO = "ratio"


@dataclass(frozen=True)
class Result:
    """One measured case.

    ``value`` is in ``unit``; the unit ``"ratio"`` means to ``against``, measured in the same run.
    ``bound`` is the most that is promised, or the least where ``more_is_better``; None where
    nothing is.
    """

    bench: str
    case: str
    value: float
    unit: str
    against: str | None
    bound: float | None
    rounds: int
    more_is_better: bool = False
    interval: tuple[float, float] | None = None
    """Where the value would be with 95 % confidence, were there any number of rounds."""

    @property
    def kept(self) -> bool | None:
        """Whether the bound holds; None where there is none."""
        if self.bound is None:
            return None
        return self.value >= self.bound if self.more_is_better else self.value <= self.bound


@dataclass(frozen=True)
class Effort:
    """How long to measure: the rounds asked for, and whether a rough look is enough."""

    rounds: int | None = None
    quick: bool = False

    def rounds_of(self, usual: int) -> int:
        """Rounds to run where ``usual`` give a steady median."""
        return self.rounds or (max(3, usual // 8) if self.quick else usual)

    def count_of(self, usual: int) -> int:
        """Turns of a loop in one round where ``usual`` are worth timing."""
        return max(1, usual // 10) if self.quick else usual


def names() -> list[str]:
    """The benches there are, in order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def measure(name: str, effort: Effort) -> Iterator[Result]:
    """The results of one bench, as they come. Raises OpscopeError where it cannot run."""
    results: Iterator[Result] = import_module(f"{__name__}.{name}").measure(effort)
    return results


def interleaved(rounds: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """What each side measured in each round. Every other round runs them in reverse order."""
    measured: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            measured[name].append(sides[name]())
    return measured


def median_ratio(values: Sequence[float], against: Sequence[float]) -> float:
    """The median over the rounds of a value to what it is compared with in its round."""
    return statistics.median(value / base for value, base in zip(values, against, strict=True))


def median_interval(values: Sequence[float], wrong_once_in: int = 20) -> tuple[float, float]:
    """A 95 % confidence interval of the median: two of the values, whatever their distribution.

    Where it may be wrong less often than once in 20 times, it is wider. Of fewer values than that
    takes (six, for once in 20), the least and the greatest, which is then less sure.
    """
    ordered = sorted(values)
    count = len(ordered)
    # Of the 2 ** count ways to fall below the median or above: those with so few below.
    below, ways = 0, 1
    while 2 * wrong_once_in * (ways + comb(count, below + 1)) <= 2**count:
        below += 1
        ways += comb(count, below)
    return ordered[below], ordered[-1 - below]


@contextmanager
def segment_directory() -> Iterator[str]:
    """An empty directory in shared memory, as segments have in use; gone afterwards."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="opscope-bench-", dir=shared if shared.is_dir() else None
    ) as directory:
        yield directory
