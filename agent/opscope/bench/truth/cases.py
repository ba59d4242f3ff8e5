"""The cases of `bench truth`: each program under each load, coverage of intervals, costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median

from opscope.bench import RATIO, Effort, Result
from opscope.bench.truth import cost, judge
from opscope.bench.truth.judge import Estimate, Truth
from opscope.bench.truth.loads import LOADS, Load, quiet
from opscope.bench.truth.observed import EVERY_RANGE, Observed, run
from opscope.bench.truth.programs import PROGRAMS, Program

_SECONDS = 30.0
_QUICK_SECONDS = 6.0
_REFERENCE = 0.07
"""The share of these seconds for each run that records every range; at least a second."""
_REFERENCE_RUNS = 6
"""The fewest whose smallest and largest value are a 95 % interval of the median."""
_HONEST = (0.90, 0.99)
_DESCRIBED = 6
"""Number of estimates in a case's detail, the worst ones."""


def measure(effort: Effort) -> Iterator[Result]:
    seconds = effort.seconds_of(_SECONDS, _QUICK_SECONDS)
    programs = [program for program in PROGRAMS.values() if _is_installed(program.needs)]
    children: dict[str, Counter[str]] = {}
    references: dict[str, Truth] = {}
    for load_name, start in LOADS.items():
        wanted = [program for program in programs if effort.wants(f"{program.name}_{load_name}")]
        if not wanted:
            continue
        judged: list[Estimate] = []
        for program in wanted:
            if program.times_itself and program.name not in children:
                children[program.name] = _children(program, seconds)
            if program.has_one_thread and program.name not in references:
                of_program = children.get(program.name, Counter())
                with quiet() as load:
                    references[program.name] = reference(program, load, seconds, of_program)
        with start() as load:
            for program in wanted:
                of_program = children.get(program.name, Counter())
                known = references.get(program.name)
                if known is None:
                    known = reference(program, load, seconds, of_program)
                rounds = list(_rounds(program, load, seconds, known, effort.rounds or 1))
                judged += [estimate for estimates in rounds for estimate in estimates]
                yield _case(program, load_name, load, rounds)
        yield from _coverages(load_name, judged)
    yield from cost.measure(effort, seconds)


def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


def _children(program: Program, seconds: float) -> Counter[str]:
    with quiet() as load:
        short = max(1.0, seconds * _REFERENCE)
        return run(program.name, short, load, EVERY_RANGE, count_children=True).children


def reference(program: Program, load: Load, seconds: float, children: Counter[str]) -> Truth:
    """The truth from runs that record every range; `seconds`: of a judged run."""
    short = max(1.0, seconds * _REFERENCE)
    runs, sampled = [], []
    for _ in range(_REFERENCE_RUNS):
        every = run(program.name, short, load, EVERY_RANGE)
        runs.append((every.done, every.sums))
        # Where threads come and go, to record costs time for each of them as well.
        if program.times_itself and program.has_one_thread:
            sampled.append(run(program.name, short, load, {}).done)
    return judge.truth(runs, children, with_times=program.times_itself, sampled=sampled)


def _rounds(
    program: Program, load: Load, seconds: float, known: Truth, count: int
) -> Iterator[list[Estimate]]:
    for _ in range(count):
        observed: Observed = run(program.name, seconds, load, {})
        yield judge.estimates(known, observed.done, observed.sums)


def _case(program: Program, load_name: str, load: Load, rounds: list[list[Estimate]]) -> Result:
    worst = [max(estimates, key=lambda estimate: estimate.error) for estimates in rounds]
    described = sorted(rounds[-1], key=lambda estimate: -estimate.error)[:_DESCRIBED]
    totals = [one for one in rounds[-1] if not one.name and one not in described]
    return Result(
        "truth",
        f"{program.name}_{load_name}",
        median(estimate.error for estimate in worst),
        RATIO,
        "allowed error",
        1.0,
        len(rounds),
        detail={
            "load": load.how,
            "estimates": [estimate.described() for estimate in (*described, *totals)],
        },
    )


def _coverages(load_name: str, judged: list[Estimate]) -> Iterator[Result]:
    for kind, case, bound in (("calls", "coverage", _HONEST), ("self", "coverage_self", None)):
        share = judge.coverage(judged, kind)
        if share is not None:
            pairs = sum(estimate.kind == kind for estimate in judged)
            yield Result("truth", f"{case}_{load_name}", share, "share", None, bound, pairs)
