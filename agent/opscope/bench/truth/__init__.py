"""The accuracy of window estimates: programs with known work, observed with the defaults.

Each program (`programs/`) runs under each load (`loads.py`) in separate processes and counts its
steps, which all run the same operators. The true values follow from the number of steps:

`calls`: a run of the same program that records every range, with probability 1, counts each
operator's calls per step exactly; the truth is that number times the steps.

`self time`: every recording has a cost, so the true time is an estimate too. The program itself
measures the time of its steps, with two clock reads a step, in the judged run. Each operator's
share of it is the median of six short runs that record every range; half of its 95 % interval is
the truth's slack. For a program with one thread these runs have no load: a load slows all parts
of its step alike. Other programs have the same load as in the judged run. The recorder's cost is
subtracted from these shares: a quarter of a range's cost lies within it, the rest within the
enclosing range; callbacks in a further run count how often one range encloses another. The cost
is assumed to be between 0.5 and 2 times the recorder's stated cost, and the change that this makes
to the share is added to the slack. Under a load, the kernel's stops hit operators at random in the
judged run too: the time without a processor in every 20 ms of steps, squared, gives the spread of
an operator's true time, whose 95 % interval is slack as well.

`phase shares`: from the same self times, summed by phase.

The allowed error is the larger of 5 % and 3 stated standard errors, plus the slack of the truth;
errors are given as a share of it, so the bound is 1. A phase with less than a tenth of the time is
allowed 5 % of a tenth. Judged are the totals, each phase, the self time of operators with at least
2 % of it, and the calls of these and of operators with at least 2 % of calls. A case is a program
and a load; its value is the worst of its errors, each the median of several rounds; `detail` names
it. Without a stated standard error, only the 5 % apply. An operator that no window met has no row;
it may have had as much of the time as a view states (reports/certainty.py).

`coverage_...` is the share of (program, operator) pairs whose calls lie within 1.96 stated
standard errors, over the requested cases; an estimate without a standard error covers nothing, and
exact pairs with an error of 0 are left out. `coverage_self_...` is the same for self times, with
intervals widened by the truth's slack, and so has no bound. `cost_...` are in cost.py.

A full run takes more than an hour. The installed packages determine which programs run.
"""

from collections.abc import Iterator

from opscope.bench import Effort, Result


def measure(effort: Effort) -> Iterator[Result]:
    # The observed programs import this package too, but not the modules for judging.
    from opscope.bench.truth import cases

    return cases.measure(effort)
