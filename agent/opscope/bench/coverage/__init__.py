"""The share of a numerical program's processor time that is in named operators.

Each program of programs/ runs in a process of its own, attached at sampling 1, with one thread per
library. What is measured, and how (samples.py, spans.py):

- `perf` samples all threads of the process by processor time, 2,000 times a second, with stacks.
  The first frame outside of the kernel and the C library says whose a sample is: the
  interpreter's (its binary and the standard library's extension modules), Opscope's, or the
  program's. Opscope's samples count nowhere.
- A trace of the same process says when a range was open on the sample's thread. A thread without
  ranges works for others: its samples are in a range while any thread has one open.

Cases, each in percent: NAME is the share of samples in a range among those that are not the
interpreter's; NAME_compiled leaves out outer ranges around Python code, such as an estimator's
`fit`; NAME_wall is the share of wall time with an open range; NAME_interpreter is the interpreter's
share of all samples. `--json` adds the places of the samples outside of ranges.

Needs Linux's `perf` and the right to use it. A program whose packages are missing is left out, and
named on standard error.
"""

import sys
from collections.abc import Iterator

from opscope.bench import Effort, Result
from opscope.bench.coverage.observed import Shares, observe
from opscope.bench.coverage.programs import PROGRAMS, missing
from opscope.errors import OpscopeError

_PERCENT = "%"
_AGAINST = "time not the interpreter's"


def measure(effort: Effort) -> Iterator[Result]:
    seconds = effort.seconds_of(6.0, 2.0)
    tried = False
    for program in PROGRAMS:
        if not any(effort.wants(case) for case in _cases(program.name)):
            continue
        tried = True
        lacking = missing(program)
        if lacking:
            print(f"coverage: {program.name}: {', '.join(lacking)} missing", file=sys.stderr)
            continue
        yield from _results(program.name, program.bound, observe(program, seconds))
    if not tried:
        raise OpscopeError("no program of that name")


def _cases(name: str) -> tuple[str, ...]:
    return name, f"{name}_compiled", f"{name}_wall", f"{name}_interpreter"


def _results(name: str, bound: float | None, shares: Shares) -> Iterator[Result]:
    values = (
        (shares.named, bound, _AGAINST),
        (shares.compiled, None, _AGAINST),
        (shares.wall, None, "wall time"),
        (shares.interpreter, None, "processor time"),
    )
    for case, (value, limit, against) in zip(_cases(name), values, strict=True):
        yield Result(
            "coverage",
            case,
            100 * value,
            _PERCENT,
            against,
            limit,
            1,
            more_is_better=True,
            detail={"samples": shares.samples, "outside": shares.outside} if limit else None,
        )
