"""Compare the runs of two commands: medians, intervals and verdicts. Pure computation.

Each round gives one ratio, B over A, of runs that followed each other. The result is the median of
the ratios; its confidence interval is two of the ratios in order, which holds for any distribution
(the sign test). All operators are judged together, so each has an interval of a higher confidence:
the chance that any of them is reported by mistake is 1 - confidence (Bonferroni). An interval that
needs more rounds than were run is unknown, and the verdict is `?`.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from opscope.bench import median_interval
from opscope.ci.runs import Pair, Run
from opscope.reports.recording import Operator

MEASURES = ("wall", "cpu", "instructions")
"""Names of the measures of a whole run."""


@dataclass(frozen=True)
class Measure:
    """One quantity on both sides."""

    name: str
    """One of MEASURES, or an operator, with its phase in parentheses if it has one."""
    unit: str
    """`s`, or `instructions`."""
    a: float
    """Median per run."""
    b: float
    ratio: float
    """Median of the rounds' ratios, B over A; above 1 is more."""
    low: float
    high: float
    """Confidence interval of `ratio`; NaN with too few rounds."""
    threshold: float
    """Smallest relative change that counts; 0.05 is 5 %."""
    calls: tuple[float, float] | None = None
    """Of an operator: median calls per run."""
    has_more_calls: bool = False
    """Whether every run of B had more calls than every run of A, by the threshold at least."""

    @property
    def verdict(self) -> str:
        """`slower` or `faster` (surely, and by the threshold at least), `same` (a change that large
        is ruled out), `unsure` (the rounds differ too much), or `?` (too few rounds). Instead of
        the last two, `more calls` if that is certain."""
        least = 1 + self.threshold
        if self.low > 1 and self.ratio >= least:
            return "slower"
        if self.high < 1 and self.ratio <= 1 / least:
            return "faster"
        if self.low > 1 / least and self.high < least:
            return "same"
        if self.has_more_calls:
            return "more calls"
        return "?" if math.isnan(self.low) else "unsure"


@dataclass(frozen=True)
class Comparison:
    measures: tuple[Measure, ...]
    operators: tuple[Measure, ...]
    """Operators of both sides with at least the least share of the time, longest first."""
    small: int
    """Number of operators with less time, which are not judged."""
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    rounds_needed: int
    """Fewest rounds with which every interval is known."""

    @property
    def regressions(self) -> list[Measure]:
        """What got slower, or has more calls."""
        every = (*self.measures, *self.operators)
        return [one for one in every if one.verdict in ("slower", "more calls")]


def compare(
    pair: Pair,
    *,
    confidence: float,
    threshold: float,
    thresholds: Mapping[str, float],
    least_share: float,
) -> Comparison:
    """Compares the runs. `thresholds`: by name of a measure, or pattern (* and ?) of operators, for
    those that differ from `threshold`; the last that matches applies. `least_share`: the share of
    all operators' time, on one side at least, with which an operator is judged."""

    def limit(name: str) -> float:
        found = [part for pattern, part in thresholds.items() if fnmatchcase(name, pattern)]
        return found[-1] if found else threshold

    measures = [
        _measure(name, unit, _both(pair, value), 1 - confidence, limit(name))
        for name, unit, value in _WHOLE
        if all(value(run) is not None for run in (*pair.a, *pair.b))
    ]
    names_a, names_b = ({one for run in side for one in run.operators} for side in (pair.a, pair.b))
    shares = _shares(pair.a), _shares(pair.b)
    judged = [
        operator
        for operator in names_a & names_b
        if max(of_side[operator] for of_side in shares) >= least_share
    ]
    wrong = (1 - confidence) / max(len(judged), 1)
    operators = [
        _with_calls(
            _measure(title, "s", _both(pair, _Time(operator)), wrong, limit(title)), pair, operator
        )
        for operator in judged
        for title in [_title(operator)]
    ]
    operators.sort(key=lambda one: (-max(one.a, one.b), one.name))
    return Comparison(
        tuple(measures),
        tuple(operators),
        len(names_a & names_b) - len(judged),
        tuple(sorted(map(_title, names_a - names_b))),
        tuple(sorted(map(_title, names_b - names_a))),
        _rounds_needed(wrong),
    )


_Value = Callable[[Run], "float | None"]
_WHOLE: tuple[tuple[str, str, _Value], ...] = (
    ("wall", "s", lambda run: run.wall_s),
    ("cpu", "s", lambda run: run.cpu_s),
    ("instructions", "instructions", lambda run: run.instructions),
)


@dataclass(frozen=True)
class _Time:
    """Seconds of an operator in a run: of self time if it is known, else of total time."""

    operator: Operator

    def __call__(self, run: Run) -> float:
        found = run.operators.get(self.operator)
        if found is None:
            return 0.0
        return found.total_s if found.self_s is None else found.self_s


def _both(pair: Pair, value: _Value) -> tuple[list[float], list[float]]:
    a, b = ([value(run) or 0.0 for run in side] for side in (pair.a, pair.b))
    return a, b


def _measure(
    name: str, unit: str, sides: tuple[list[float], list[float]], wrong: float, threshold: float
) -> Measure:
    a, b = sides
    ratios = [after / before for before, after in zip(a, b, strict=True) if before > 0]
    low = high = middle = math.nan
    if len(ratios) == len(a):
        middle = statistics.median(ratios)
        if len(ratios) >= _rounds_needed(wrong):
            low, high = median_interval(ratios, math.ceil(1 / wrong - 1e-9))
    return Measure(
        name, unit, statistics.median(a), statistics.median(b), middle, low, high, threshold
    )


def _rounds_needed(wrong: float) -> int:
    """The fewest values whose least and largest hold the median but for a chance of `wrong`."""
    return math.ceil(math.log2(2 / wrong) - 1e-9)


def _with_calls(one: Measure, pair: Pair, operator: Operator) -> Measure:
    a, b = (
        [run.operators[operator].calls if operator in run.operators else 0.0 for run in side]
        for side in (pair.a, pair.b)
    )
    return replace(
        one,
        calls=(statistics.median(a), statistics.median(b)),
        has_more_calls=min(b) > max(a) * (1 + one.threshold),
    )


def _shares(runs: Sequence[Run]) -> dict[Operator, float]:
    """Each operator's share of the time of all operators."""
    sums: defaultdict[Operator, float] = defaultdict(float)
    for run in runs:
        for operator in run.operators:
            sums[operator] += _Time(operator)(run)
    whole = sum(sums.values()) or 1.0
    return {operator: time / whole for operator, time in sums.items()}


def _title(operator: Operator) -> str:
    name, phase = operator
    return name if phase == "other" else f"{name} ({phase})"
