"""Compare estimates with true values: the errors of one run, and the coverage of intervals.

It works on sums only, without processes and files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import median
from typing import NamedTuple

from opscope.bench import median_interval
from opscope.bench.truth.programs import Done
from opscope.bench.truth.segments import Key, Sums
from opscope.reports import certainty

ALLOWED = 0.05
ALLOWED_ERRORS = 3.0
SURE_ERRORS = 1.96
_TOP_SHARE = 0.02
_SMALL_PHASE = 0.1
"""A phase with a smaller share of time is allowed the error of one with this share."""
# Of a recorded range's cost, the part inside the range: native/recorder/range_clock.h.
_INSIDE = 3 / 16
# The cost relative to the stated one, which lies between 0.5 and 2; and half of that interval,
# relative to its middle.
_COST_FACTOR = 1.25
_COST_SLACK = 0.6
# Operators' ranges cost more or less than their mean, and the part inside differs.
_COST_SPREAD = 0.2


class Cost(NamedTuple):
    """What recording takes in a program of which every range is recorded."""

    range_s: float
    slack_s: float
    """Its possible error."""


@dataclass(frozen=True)
class Estimate:
    """One number: calls or self time of an operator, or of all (""), or a phase's share."""

    kind: str
    name: str
    true: float
    estimated: float
    standard_error: float | None
    """The stated standard error; None without one."""
    slack: float = 0.0
    """The possible error of the truth itself."""
    scale: float = 0.0
    """The base of the allowance, if that is more than the truth."""

    @property
    def error(self) -> float:
        """As a multiple of the allowed error."""
        allowed = max(
            ALLOWED * max(self.true, self.scale), ALLOWED_ERRORS * (self.standard_error or 0.0)
        )
        return max(0.0, abs(self.estimated - self.true) - self.slack) / allowed

    @property
    def is_within_interval(self) -> bool:
        """Whether the truth is in the stated 95 % interval; False without one."""
        if self.standard_error is None:
            return False
        reach = SURE_ERRORS * self.standard_error + self.slack
        # Sums of doubles: an exact value may differ in its last digits.
        return abs(self.estimated - self.true) <= reach + 1e-6 * self.true

    @property
    def says_something_of_intervals(self) -> bool:
        """False if everything is recorded, and so exact."""
        return self.standard_error != 0.0 or not self.is_within_interval

    def described(self) -> dict[str, object]:
        return {
            "of": f"{self.kind} {self.name}".strip(),
            "true": self.true,
            "estimated": self.estimated,
            "standard_error": self.standard_error,
            "slack": self.slack,
            "error": self.error,
        }


@dataclass
class Truth:
    """The contents of a step, by operator and phase."""

    calls: dict[Key, float]
    """Of a step."""
    shares: list[dict[Key, float]] = field(default_factory=list)
    """In each run, the share of the steps' time that is its self time; empty if unknown."""
    cost_slack: dict[Key, float] = field(default_factory=dict)
    """The change of a share if recording costs as much as it possibly does."""

    def share(self, is_counted: Callable[[Key], bool]) -> tuple[float, float]:
        """The share of these together, the median over the runs, and its possible error."""
        sums = [
            sum(share for key, share in shares.items() if is_counted(key)) for shares in self.shares
        ]
        middle, (low, high) = median(sums), median_interval(sums)
        cost = sum(slack for key, slack in self.cost_slack.items() if is_counted(key))
        return middle, max(high - middle, middle - low) + abs(cost)

    def shares_by_op(self) -> dict[str, float]:
        ops = {op for shares in self.shares for op, _ in shares}
        return {op: self.share(_is_op(op))[0] for op in ops}


def _is_op(op: str) -> Callable[[Key], bool]:
    return lambda key: key[0] == op


def _is_phase(phase: str) -> Callable[[Key], bool]:
    return lambda key: key[1] == phase


def _is_any(key: Key) -> bool:
    return True


def truth(
    runs: list[tuple[Done, Sums]],
    children: Mapping[str, int],
    *,
    with_times: bool,
    sampled: Sequence[Done] = (),
) -> Truth:
    """The truth from runs in which every range was recorded.

    `children`: by operator, the ranges directly within its ranges, in any number of steps;
    `sampled`: after each run, one in which windows alone were recorded, which cost next to nothing.
    """
    steps = sum(done.steps for done, _ in runs)
    calls: Counter[Key] = Counter()
    for _, sums in runs:
        calls.update(sums.samples)
    found = Truth({key: count / steps for key, count in calls.items()})
    if with_times:
        of_range = cost(runs, sampled)
        both = [_shares(done, sums, children, of_range) for done, sums in runs]
        found.shares = [{key: share for key, (share, _) in one.items()} for one in both]
        for key in found.calls:
            found.cost_slack[key] = median(one.get(key, (0.0, 0.0))[1] for one in both)
    return found


def cost(runs: list[tuple[Done, Sums]], sampled: Sequence[Done]) -> Cost:
    """By how much steps take longer where every range is recorded; if the speed of the machine
    varies too much for that, by what the recorder states."""
    ranges = sum(sums.samples.total() for _, sums in runs)
    stated_s = _COST_FACTOR * sum(sums.overhead_ns for _, sums in runs) * 1e-9 / max(1, ranges)
    found = Cost(stated_s, _COST_SLACK * stated_s)
    if len(sampled) == len(runs):
        longer = [
            (done.active_s - other.active_s / other.steps * done.steps)
            / max(1, sums.samples.total())
            for (done, sums), other in zip(runs, sampled, strict=True)
        ]
        middle, (low, high) = median(longer), median_interval(longer)
        slack_s = max(high - middle, middle - low, _COST_SPREAD * middle)
        if middle > 0.0 and slack_s < found.slack_s:
            found = Cost(middle, slack_s)
    return found


def _shares(
    done: Done, sums: Sums, children: Mapping[str, int], of_range: Cost
) -> dict[Key, tuple[float, float]]:
    """Each one's self time as a share of the steps' time, without recording's cost; its change if
    recording costs more: then its time is less, and so is the time of the steps."""
    ranges = sums.samples.total()
    cost_s = of_range.range_s
    relative = of_range.slack_s / cost_s if cost_s > 0.0 else 0.0
    calls: Counter[str] = Counter()
    for (op, _), count in sums.samples.items():
        calls[op] += count
    # Children were counted in other steps, with as many in each.
    scale = ranges / max(1, sum(children.values()))
    active_s = done.active_s - cost_s * ranges
    shares = {}
    for (op, phase), seconds in sums.self_s.items():
        within = scale * children.get(op, 0) / max(1, calls[op])
        count = sums.samples[op, phase]
        taken_s = cost_s * count * (_INSIDE + (1 - _INSIDE) * within)
        share = max(0.0, seconds - taken_s) / active_s
        shares[op, phase] = share, relative * (share * cost_s * ranges - taken_s) / active_s
    return shares


def estimates(truth: Truth, done: Done, sums: Sums) -> list[Estimate]:
    """The judged estimates of a run: totals, top operators, phases."""
    found = list(_of_calls(truth, done, sums))
    if truth.shares and not _is_unmet(done, sums):
        found += _of_self_times(truth, done, sums)
        found += _of_phases(truth, done, sums)
    return found


def _by_op(by_key: Mapping[Key, float]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for (op, _), value in by_key.items():
        sums[op] = sums.get(op, 0.0) + value
    return sums


def _top(by_op: Mapping[str, float]) -> dict[str, float]:
    """Those with at least a fiftieth of all."""
    total = sum(by_op.values())
    return {op: value for op, value in by_op.items() if value >= _TOP_SHARE * total}


def _of(by_key: Mapping[Key, float], op: str) -> float:
    return sum(value for (name, _), value in by_key.items() if name == op)


def _total(by_key: Mapping[Key, float]) -> float:
    return sum(value for (op, _), value in by_key.items() if op)


def _error_of(variance: Mapping[Key, float], op: str) -> float | None:
    """The standard error of an operator, or with "" of all; None without one."""
    of_it = [value for (name, _), value in variance.items() if name == op]
    if not op:
        of_it = list(_variance_by_phase(variance).values())
    return sqrt(max(0.0, sum(of_it))) if of_it else None


def _variance_by_phase(variance: Mapping[Key, float]) -> dict[str, float]:
    """The variance of a phase's total: as stated, or else the sum of its operators', which are then
    sampled by probability, or exact."""
    stated = {phase: value for (op, phase), value in variance.items() if not op}
    return _by_phase(variance) | stated


def _judged(truth: Truth) -> list[str]:
    """Operators to judge, most self time first."""
    by_time, by_calls = _top(truth.shares_by_op()), _top(_by_op(truth.calls))
    return sorted(by_time.keys() | by_calls.keys(), key=lambda op: -by_time.get(op, 0.0))


def _is_unmet(done: Done, sums: Sums) -> bool:
    """Whether windows met nothing, as a view then states, of so little time that they may.

    There is one in each period, at a random moment: of some time in any number of pieces, n periods
    long together, they all miss everything with a probability of at most exp(-n)."""
    return not sums.samples and done.active_s <= certainty.UNSEEN * sums.period_s


def _of_calls(truth: Truth, done: Done, sums: Sums) -> Iterator[Estimate]:
    variance = sums.calls_variance
    for op in ("", *_judged(truth)):
        true = (_of(truth.calls, op) if op else _total(truth.calls)) * done.steps
        estimated = _of(sums.calls, op) if op else _total(sums.calls)
        is_unseen = _is_unmet(done, sums) or _is_unseen(op, truth, done, sums)
        # Of one that may be missing, the truth is within what is stated: at an interval's end.
        error = true / SURE_ERRORS if is_unseen else _error_of(variance, op)
        yield Estimate("calls", op, true, estimated, error)


def _is_unseen(op: str, truth: Truth, done: Done, sums: Sums) -> bool:
    """Whether the operator has no row, and no more than may be missing as a view states it."""
    if not op or _of(sums.samples, op):
        return False
    estimated = {key for key, variance in sums.calls_variance.items() if variance and key[0]}
    unseen = certainty.unseen(
        sum(sums.samples[key] for key in estimated),
        sum(sums.calls[key] for key in estimated),
        sums.window_calls2.values(),
    )
    has_few_calls = _of(truth.calls, op) * done.steps <= unseen.calls
    if has_few_calls or not truth.shares:
        return has_few_calls
    share, slack = truth.share(_is_op(op))
    return max(0.0, share - slack) < unseen.time_share


def _of_self_times(truth: Truth, done: Done, sums: Sums) -> Iterator[Estimate]:
    self_s, by_op = sums.self_s, truth.shares_by_op()
    # Sums lack operators without a row, of which views state that they may be missing.
    unseen = {op for op in by_op if _is_unseen(op, truth, done, sums)}
    for op in ("", *_top(by_op)):
        if op in unseen:
            continue
        share, slack = truth.share(_is_op(op) if op else lambda key: key[0] not in unseen)
        if share * done.active_s > 0:
            yield Estimate(
                "self",
                op,
                share * done.active_s,
                _of(self_s, op) if op else _total(self_s),
                _error_of(sums.self_variance, op),
                slack * done.active_s + _stops_s(share, done),
            )


def _stops_s(share: float, done: Done) -> float:
    """How far stops by the kernel move the self time of operators with that share of the time.

    They hit operators at random, and most of a short program's stops may hit a few of them."""
    return SURE_ERRORS * sqrt(max(0.0, share * (1 - share)) * done.stopped_s2)


def _of_phases(truth: Truth, done: Done, sums: Sums) -> Iterator[Estimate]:
    all_true = truth.share(_is_any)[0] or 1.0
    relative = Truth(
        {},
        [_of_all(shares) for shares in truth.shares],
        _relative_slack(truth, all_true),
    )
    estimated = _by_phase(sums.self_s)
    all_estimated = sum(estimated.values())
    phases = {phase for shares in truth.shares for _, phase in shares}
    for phase in sorted(phases | estimated.keys()):
        share, slack = relative.share(_is_phase(phase))
        stops_s = _stops_s(share, done)
        yield Estimate(
            "phase",
            phase,
            share,
            estimated.get(phase, 0.0) / all_estimated if all_estimated else 0.0,
            error_of_share(sums, phase),
            slack + stops_s / (all_true * done.active_s),
            scale=_SMALL_PHASE,
        )


def _relative_slack(truth: Truth, all_true: float) -> dict[Key, float]:
    """The same for shares of the time in operators."""
    of_all = sum(truth.cost_slack.values())
    shares = {
        key: median(one.get(key, 0.0) for one in truth.shares) / all_true
        for key in truth.cost_slack
    }
    return {
        key: (slack - shares[key] * of_all) / all_true for key, slack in truth.cost_slack.items()
    }


def _of_all(shares: dict[Key, float]) -> dict[Key, float]:
    """The same as shares of the time in operators."""
    return {key: share / (sum(shares.values()) or 1.0) for key, share in shares.items()}


def _by_phase(by_key: Mapping[Key, float]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for (_, phase), value in by_key.items():
        sums[phase] = sums.get(phase, 0.0) + value
    return sums


def error_of_phase(sums: Sums, phase: str) -> float | None:
    """The standard error of a phase's self time in seconds, None without one."""
    variance = _variance_by_phase(sums.self_variance).get(phase)
    return None if variance is None else sqrt(max(0.0, variance))


def error_of_share(sums: Sums, phase: str) -> float | None:
    """The standard error of a phase's share of self time, None without one.

    It assumes that the errors of phases are independent."""
    of_phases = _variance_by_phase(sums.self_variance)
    self_s = _by_phase(sums.self_s)
    total = sum(self_s.values())
    if not of_phases or not total:
        return None
    share = self_s.get(phase, 0.0) / total
    own = of_phases.get(phase, 0.0)
    others = sum(of_phases.values()) - own
    return sqrt(max(0.0, (1 - share) ** 2 * own + share**2 * others)) / total


def coverage(all_estimates: list[Estimate], kind: str) -> float | None:
    """The share of operators whose true value is in the stated interval; None without operators."""
    told = [
        estimate
        for estimate in all_estimates
        if estimate.kind == kind and estimate.name and estimate.says_something_of_intervals
    ]
    if not told:
        return None
    return sum(estimate.is_within_interval for estimate in told) / len(told)
