"""Self times with the waiting that the kernel has counted, in place of what windows have met of it.

The kernel stops a thread for its CPU quota, or for another process. A window meets few of these
stops, and then each counts as often as the window's weight: of a program with half a processor, the
self times of 30 s rest on some seven stops. But the kernel counts how long a thread has waited for
a processor, and the process states how much off-CPU time its estimates contain. So the latter is
taken off, and each operator gets its share of the former: a stop hits any operator with the
probability of its share of the CPU time.

    f = waited / used, of the main thread
    shown = (estimate - off-CPU time) (1 + f)

Off-CPU time may also be an operator's own waiting, for a disk or for other threads. Stops hit
operators by their shares of the CPU time. An operator that was off the processor far more often
than its share explains waits by itself. Its off-CPU time stays as windows have met it. A part of
that was waiting for a processor, after each sleep, and is not shared among the others. The kernel
also counts how long the thread slept. If it slept longer than these operators explain, only a part
of all is replaced:

    r = 1 - slept / expected,   expected = waited x the operators' share of the CPU time

A program that computes all the time has r = 1.

All this holds for operators of the main thread, which the kernel's counts are about. If others have
more than a twentieth of the self time, nothing is replaced.

host/stretches.py applies this to what a segment's rows grow by.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.host.processor_time import STOP_S, MainThread
from opscope.segments.variance import F64

_SELF, _TOTAL = 0, 1
# Of the CPU time: with so little waiting, what windows have met of it changes no estimate.
NEGLIGIBLE = 0.003
# Only a damaged file or count leads to more waiting in a second of CPU time, or to a shorter time.
_MOST, _LEAST = 1e5, 1e-12
# A thread that sleeps for less than this part of its time has no operator that waits by itself.
_AWAKE = 0.005
# How unlikely stops alone make what an operator had, by the logarithm: above the first it waits by
# itself, above the second it may.
_CERTAIN, _POSSIBLE = math.log(1000), math.log(20)


class Replaced(NamedTuple):
    """What replaces stops in estimates of a stretch of time."""

    part: float
    """r above."""
    waiting: float
    """f above."""
    own: NDArray[np.bool_]
    """(n,) operators that wait by themselves."""
    unsure: NDArray[np.bool_]
    """(n,) operators that may."""


def _nothing(count: int) -> Replaced:
    none = np.zeros(count, np.bool_)
    return Replaced(0.0, 0.0, none, none)


class Growth(NamedTuple):
    """What a stretch of time adds to rows."""

    is_estimate: NDArray[np.bool_]
    """(n,) whether windows estimate its times; others are exact."""
    times_s: F64
    """(n, 2) self and total time."""
    off_cpu_s: F64
    """(n, 2) as of segments/off_cpu.py."""
    exact_s: F64
    """(n,) likewise."""
    counts: F64
    """(n,) likewise."""

    @property
    def on_cpu_s(self) -> F64:
        """(n,) self time without off-CPU time; 0 of others than estimates."""
        on_cpu_s = np.maximum(self.times_s[:, _SELF] - self.off_cpu_s[:, _SELF], 0.0)
        return np.where(self.is_estimate, on_cpu_s, 0.0)


def replaced(growth: Growth, main: MainThread) -> Replaced:
    """`main`: what the main thread had meanwhile."""
    used_s, waited_s, slept_s = (ns / 1e9 for ns in main)
    on_cpu_s = float(growth.on_cpu_s.sum())
    found = _nothing(len(growth.counts))
    if on_cpu_s <= 0.0 or waited_s <= NEGLIGIBLE * used_s:
        return found
    if slept_s > _AWAKE * (used_s + waited_s):
        evidence = _against_stops(growth)
        found = found._replace(
            own=evidence > _CERTAIN, unsure=(evidence > _POSSIBLE) & (evidence <= _CERTAIN)
        )
        own_s = float(growth.off_cpu_s[found.own, _SELF].sum())
        waited_s = max(0.0, waited_s - max(0.0, own_s - slept_s))
        slept_s = max(0.0, slept_s - own_s)
    # More than the CPU time it cannot have been.
    waiting = min(_MOST, waited_s / max(used_s, on_cpu_s, _LEAST))
    part = max(0.0, 1.0 - slept_s / max(waiting * on_cpu_s, _LEAST)) if waiting > 0.0 else 0.0
    return found._replace(part=part, waiting=waiting)


def _against_stops(growth: Growth) -> F64:
    """(n,) how unlikely it is, at least, that stops have hit the operator as often as it had
    off-CPU time: minus the logarithm of the probability (Chernoff's bound of the binomial
    distribution)."""
    counts = np.where(growth.is_estimate, growth.counts, 0.0)
    on_cpu_s, all_hits = growth.on_cpu_s, float(counts.sum())
    share, hit = on_cpu_s / float(on_cpu_s.sum()), counts / max(all_hits, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        divergence = hit * np.log(hit / share) + (1 - hit) * np.log((1 - hit) / (1 - share))
        divergence = np.where(hit < 1.0, divergence, -np.log(share))
    return np.where(hit > share, all_hits * divergence, 0.0)


def times(growth: Growth, of: Replaced) -> F64:
    """(n, 2) the self and total times with these replacements.

    The self time of an outer range is what its total time has beyond the outer ranges and the
    estimates inside; the total time is exact."""
    (self_s, total_s), (off_self_s, off_total_s) = growth.times_s.T, growth.off_cpu_s.T
    # How much of what is inside a range is other operators' own waiting is not known.
    of_all = float(off_self_s[growth.is_estimate].sum())
    of_own = float(off_self_s[of.own].sum())
    of_stops = 1.0 - of_own / max(of_all, of_own) if of_own > 0.0 else 1.0
    stops_s = np.where(of.own, 0.0, off_self_s)
    inside_s = (off_total_s - off_self_s) * of_stops
    of_outer = _better(off_total_s, off_self_s, off_self_s * of_stops, of.waiting)
    better = np.where(
        growth.is_estimate,
        (
            _better(self_s, off_self_s, stops_s, of.waiting),
            _better(total_s, off_total_s, stops_s + inside_s, of.waiting),
        ),
        ((total_s - growth.exact_s - of_outer).clip(0.0, total_s), total_s),
    ).T
    return np.maximum(
        growth.times_s + of.part * (better - growth.times_s), 0.0
    )  # but for roundings


def _better(estimates: F64, off_cpu_s: F64, stops_s: F64, waiting: float) -> F64:
    """Estimates without these stops, a part of their off-CPU time; with that much waiting."""
    on_cpu_s = np.maximum(estimates - off_cpu_s, 0.0)
    better: F64 = np.maximum(estimates - stops_s, 0.0) + on_cpu_s * waiting
    return better


def self_s2(growth: Growth, stated: F64, on_cpu: F64, main: MainThread, of: Replaced) -> F64:
    """(n,) variances of the self times. `stated`, `on_cpu`: (n,) as stated, and without off-CPU
    time; `main`: as of `replaced`."""
    off_cpu_s, on_cpu_s = growth.off_cpu_s[:, _SELF], growth.on_cpu_s
    better = np.where(of.own, stated, (1.0 + of.waiting) ** 2 * on_cpu)
    better += np.where(of.unsure, off_cpu_s**2, 0.0)
    share = on_cpu_s / max(main.used / 1e9, float(on_cpu_s.sum()), _LEAST)
    # Waiting after an own one is not the others'; how much it was, windows estimate.
    better += share**2 * float(stated[of.own].sum()) + _drawn(share, main)
    found: F64 = (1.0 - of.part) * stated + of.part * better
    return found


def phases_s2(
    growth: Growth,
    phases: NDArray[np.intp],
    stated: F64,
    on_cpu: F64,
    main: MainThread,
    of: Replaced,
) -> F64:
    """(m,) the same of all operators of a phase together. `phases`: (n,) of the rows."""
    count, on_cpu_s = len(stated), growth.on_cpu_s
    off_cpu_s = np.where(of.unsure, growth.off_cpu_s[:, _SELF], 0.0)
    has_own = np.bincount(phases, of.own, count) > 0.0
    share = np.bincount(phases, on_cpu_s, count) / max(
        main.used / 1e9, float(on_cpu_s.sum()), _LEAST
    )
    better = np.where(has_own, stated, (1.0 + of.waiting) ** 2 * on_cpu)
    better = better + np.bincount(phases, off_cpu_s**2, count) + _drawn(share, main)
    found: F64 = (1.0 - of.part) * stated + of.part * better
    return found


def _drawn(share: F64, main: MainThread) -> F64:
    """The variance of the waiting of operators with that share of the CPU time: each stop hits one
    that is drawn."""
    found: F64 = share * np.maximum(1.0 - share, 0.0) * (main.waited / 1e9) * STOP_S
    return found
