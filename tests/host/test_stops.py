"""Stops by the kernel: what windows have met of them is replaced by what the kernel has counted."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.host import processor_time, stretches
from opscope.host.host import Host
from opscope.host.processor_time import MainThread, ProcessorTime
from opscope.host.snapshot import Snapshot
from opscope.host.stops import Growth, Replaced, replaced, times
from opscope.host.stretches import Rows, Shown, Stretches
from opscope.segments import layout
from opscope.segments.liveness import process_start
from opscope.segments.off_cpu import OffCpu
from opscope.segments.variance import COLUMNS, F64, PHASE_COLUMNS, SELF_S2, Variances
from tests.segments.segment_writer import Process, Range, SegmentWriter

approx = pytest.approx
S = 10**9


def main(used_s: float, waited_s: float, slept_s: float = 0.0) -> MainThread:
    return MainThread(round(used_s * S), round(waited_s * S), round(slept_s * S))


# ---- what is replaced ---------------------------------------------------------------------------


def growth(
    times_s: list[list[float]],
    off_cpu_s: list[list[float]],
    *,
    exact_s: list[float] | None = None,
    counts: list[int] | None = None,
    outer: int = 0,
) -> Growth:
    """`outer`: how many of the last rows are outer ranges."""
    count = len(times_s)
    return Growth(
        np.arange(count) < count - outer,
        np.array(times_s),
        np.array(off_cpu_s),
        np.array(exact_s or [0.0] * count),
        np.array(counts or [0] * count, np.float64),
    )


def leaf(seconds: float) -> list[float]:
    return [seconds, seconds]


def stopped(part: float, waiting: float, own: tuple[int, ...] = (), count: int = 2) -> Replaced:
    mask = np.isin(np.arange(count), own)
    return Replaced(part, waiting, mask, np.zeros(count, np.bool_))


@pytest.mark.parametrize(
    ("on_cpu_s", "had", "part", "waiting"),
    [
        (10.0, main(10.0, 8.0), 1.0, 0.8),  # it computes all the time
        (5.0, main(10.0, 8.0), 1.0, 0.8),  # half of its time is in operators
        (5.0, main(10.0, 8.0, 1.0), 0.75, 0.8),  # and it slept a quarter of the 4 s to expect
        (5.0, main(10.0, 8.0, 4.0), 0.0, 0.8),  # all of them may be sleep
        (5.0, main(10.0, 8.0, 50.0), 0.0, 0.8),
        (12.0, main(10.0, 6.0), 1.0, 0.5),  # estimates beyond the CPU time
        (10.0, main(10.0, 0.03, 0.0), 0.0, 0.0),  # a machine at rest
        (10.0, MainThread(), 0.0, 0.0),  # unknown
        (0.0, main(10.0, 8.0), 0.0, 0.0),
    ],
)
def test_what_can_only_be_stops_is_replaced(
    on_cpu_s: float, had: MainThread, part: float, waiting: float
) -> None:
    found = replaced(growth([leaf(on_cpu_s)], [leaf(0.0)]), had)
    assert found.part == approx(part)
    if part:
        assert found.waiting == approx(waiting)


@pytest.mark.parametrize(
    ("counts", "slept_s", "own", "unsure"),
    [
        ([40, 0], 3.0, False, False),
        ([40, 1], 3.0, False, False),  # of 1 % of the CPU time
        ([0, 1], 3.0, False, True),
        ([10, 2], 3.0, False, True),
        ([10, 3], 3.0, False, True),
        ([10, 4], 3.0, True, False),
        ([0, 2], 3.0, True, False),
        ([0, 2], 0.0, False, False),  # it did not sleep
        ([40, 30], 3.0, True, False),
    ],
)
def test_an_operator_with_too_many_stops_waits_by_itself(
    counts: list[int], slept_s: float, own: bool, unsure: bool
) -> None:
    one = growth([leaf(9.9), leaf(3.1)], [leaf(0.0), leaf(3.0)], counts=counts)
    found = replaced(one, main(10.0, 5.0, slept_s))
    assert (found.own.tolist(), found.unsure.tolist()) == ([False, own], [False, unsure])


def test_waiting_after_an_own_one_is_not_shared() -> None:
    """It slept for 1 s in an operator that was off the processor for 3 s."""
    one = growth([leaf(10.0), leaf(3.0)], [leaf(0.0), leaf(3.0)], counts=[20, 30])
    found = replaced(one, main(10.0, 5.0, 1.0))
    assert found.part == 1.0
    assert found.waiting == approx(0.3)
    assert times(one, found) == approx(np.array([leaf(13.0), leaf(3.0)]))


def test_a_stop_that_one_operator_met_is_every_ones() -> None:
    one = growth([leaf(6.0), leaf(3.0 + 5.0)], [leaf(0.0), leaf(5.0)])
    assert times(one, stopped(1.0, 0.5)).tolist() == [leaf(9.0), leaf(4.5)]
    assert times(one, stopped(0.5, 0.5)).tolist() == [leaf(7.5), leaf(6.25)]
    assert times(one, stopped(0.0, 0.0)).tolist() == one.times_s.tolist()


def test_a_total_time_has_the_stops_inside() -> None:
    """The first operator calls the second, which met a stop."""
    one = growth([[2.0, 2.0 + 8.0], leaf(8.0)], [[0.0, 4.0], leaf(4.0)])
    assert times(one, stopped(1.0, 0.5)).tolist() == [[3.0, 9.0], leaf(6.0)]


def test_a_total_time_keeps_what_an_operator_inside_waits_by_itself() -> None:
    one = growth([[2.0, 2.0 + 8.0], leaf(8.0)], [[0.0, 4.0], leaf(4.0)])
    found = times(one, stopped(1.0, 0.5, own=(1,)))
    assert found.tolist() == [[3.0, 13.0], leaf(10.0)]


@pytest.mark.parametrize("met_s", [0.0, 5.0, 30.0])
def test_an_outer_range_keeps_its_total_time(met_s: float) -> None:
    """20 s exactly: 4 s are of another outer range, 6 s and the stops that windows have met are an
    operator's. If these are too many, the self time as stated has not made up for them yet."""
    one = growth(
        [leaf(6.0 + met_s), [max(0.0, 10.0 - met_s), 20.0]],
        [leaf(met_s), [met_s, 6.0 + met_s]],
        exact_s=[0.0, 4.0],
        outer=1,
    )
    assert times(one, stopped(1.0, 0.5)) == approx(np.array([leaf(9.0), [7.0, 20.0]]))


# ---- over stretches of time ----------------------------------------------------------------------

NONE = np.zeros((len(layout.PHASES), PHASE_COLUMNS))


def rows(
    estimates: list[float],
    off_cpu: list[float],
    s2: float = 0.0,
    on_cpu_s2: float = 0.0,
    counts: list[int] | None = None,
) -> Rows:
    """Of leaves."""

    def variances(value: float) -> Variances:
        all_rows = np.zeros((count, COLUMNS))
        all_rows[:, SELF_S2] = value
        phases = NONE.copy()
        phases[0, SELF_S2] = count * value
        return Variances(all_rows, phases, np.zeros((count, COLUMNS)))

    count = len(estimates)
    return Rows(
        np.arange(1, count + 1, dtype=np.uint64),
        np.ones(count, np.bool_),
        np.array([estimates, estimates]).T,
        variances(s2),
        OffCpu(
            np.array([off_cpu, off_cpu]).T,
            np.zeros(count),
            np.array(counts or [0] * count, np.float64),
            variances(on_cpu_s2),
        ),
        1,
    )


def self_s(shown: Shown) -> list[float]:
    found: list[float] = shown.times_s[:, 0].tolist()
    return found


def test_without_waiting_all_is_as_stated() -> None:
    one = rows([6.0, 3.0], [0.0, 1.0])
    shown = Stretches().of(one, main(9.0, 0.001, 100.0), is_over=False)
    assert shown.times_s is one.times_s
    assert shown.variances is one.stated
    assert shown.part == 0.0


def test_each_stretch_has_the_waiting_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "_STRETCH_NS", 10 * S)
    kept = Stretches()
    busy = kept.of(rows([10.0], [0.0]), main(10.0, 10.0), is_over=False)
    assert self_s(busy) == approx([20.0])
    quiet = kept.of(rows([20.0, 1.0], [0.0, 0.0]), main(21.0, 10.0), is_over=False)
    assert self_s(quiet) == approx([30.0, 1.0])
    busy = kept.of(rows([25.0, 11.0], [0.0, 5.0]), main(31.0, 15.0), is_over=False)
    assert self_s(busy) == approx([37.5, 1.0 + 1.5 * 5.0])


def test_what_was_counted_long_ago_stays_as_it_was() -> None:
    """The agent starts again; the first operator ran when nothing stopped the program."""
    kept = Stretches()
    first = rows([3600.0, 10.0], [0.0, 5.0], s2=9.0, on_cpu_s2=1.0)
    shown = kept.of(first, main(3605.0, 100.0), is_over=False)
    assert self_s(shown) == approx([3600.0, 10.0])
    assert shown.variances.rows[:, SELF_S2] == approx(9.0)
    now = rows([3600.0, 24.0], [0.0, 9.0], s2=18.0, on_cpu_s2=3.0)
    shown = kept.of(now, main(3615.0, 110.0), is_over=False)
    assert self_s(shown) == approx([3600.0, 10.0 + 20.0])
    assert shown.variances.rows[:, SELF_S2] == approx(9.0 + 2.0**2 * 2.0)


def test_a_process_that_has_ended_waited_as_before() -> None:
    kept = Stretches()
    kept.of(rows([10.0], [0.0]), main(10.0, 10.0), is_over=False)
    shown = kept.of(rows([12.0], [0.0]), main(10.0, 10.0), is_over=True)
    assert self_s(shown) == approx([24.0])
    unread = Stretches().of(rows([12.0], [3.0]), main(10.0, 10.0), is_over=True)
    assert self_s(unread) == [12.0]


@pytest.mark.parametrize(
    ("slept_s", "error2"),
    [
        (0.0, 2.0**2 * 1.0),  # the variance without stops, of twice as much
        (10.0, 9.0),  # as stated
        (5.0, 0.5 * 2.0**2 * 1.0 + 0.5 * 9.0),
    ],
)
def test_the_error_is_that_of_what_is_shown(slept_s: float, error2: float) -> None:
    one = rows([10.0], [0.0], s2=9.0, on_cpu_s2=1.0)
    shown = Stretches().of(one, main(10.0, 10.0, slept_s), is_over=False)
    assert shown.variances.rows[0, SELF_S2] == approx(error2)
    assert shown.variances.phases[0, SELF_S2] == approx(error2)
    assert one.stated.rows[0, SELF_S2] == 9.0


def test_an_operators_own_waiting_has_the_error_of_windows() -> None:
    one = rows([10.0, 3.0], [0.0, 3.0], s2=4.0, on_cpu_s2=0.25, counts=[0, 5])
    passing = one._replace(stated=one.stated._replace(owed=one.stated.owed + 1.0))
    owed = Stretches().of(passing, main(10.0, 5.0, 2.0), is_over=False).variances.owed
    assert owed[:, SELF_S2] == approx([0.0, 1.0])
    shown = Stretches().of(one, main(10.0, 5.0, 2.0), is_over=False)
    assert self_s(shown) == approx([14.0, 3.0])
    # How much of the waiting was the other's is not known better, either.
    assert shown.variances.rows[:, SELF_S2] == approx([1.4**2 * 0.25 + 4.0, 4.0])
    assert shown.variances.phases[0, SELF_S2] == approx(8.0)


def test_what_may_be_its_own_waiting_is_an_error() -> None:
    one = rows([10.0, 3.1], [0.0, 3.0], counts=[10, 2])
    shown = Stretches().of(one, main(10.1, 5.0, 0.5), is_over=False)
    assert self_s(shown)[1] < 1.0
    assert shown.variances.rows[1, SELF_S2] >= 0.8 * 3.0**2


def test_what_stops_hit_is_an_error() -> None:
    shown = Stretches().of(rows([5.0, 5.0], [0.0, 0.0]), main(20.0, 10.0), is_over=False)
    drawn = 0.25 * 0.75 * 10.0 * processor_time.STOP_S
    assert shown.variances.rows[:, SELF_S2] == approx(drawn)
    # Both are of one phase, with half of the CPU time.
    assert shown.variances.phases[0, SELF_S2] == approx(0.25 * 10.0 * processor_time.STOP_S)


AMOUNT = st.floats(0.0, float(1 << 60))
S2 = st.floats(0.0, float(1 << 124))
TIME_NS = st.integers(0, 1 << 62)


@given(
    st.lists(
        st.tuples(AMOUNT, AMOUNT, AMOUNT, AMOUNT, S2, S2, st.booleans(), AMOUNT, AMOUNT), max_size=4
    ),
    st.lists(st.tuples(TIME_NS, TIME_NS, TIME_NS), min_size=2, max_size=2),
)
def test_whatever_a_segment_states_the_times_are_possible_numbers(
    stated: list[tuple[float, float, float, float, float, float, bool, float, float]],
    mains: list[tuple[int, int, int]],
) -> None:
    kept = Stretches()
    for count, had in zip((len(stated) // 2, len(stated)), mains, strict=True):
        part = stated[:count]
        one = rows([0.0] * count, [0.0] * count)
        one = one._replace(
            times_s=np.array([row[:2] for row in part]).reshape(-1, 2),
            is_estimate=np.array([row[6] for row in part], np.bool_),
            off_cpu=one.off_cpu._replace(
                times=np.array([row[2:4] for row in part]).reshape(-1, 2),
                exact=np.array([row[7] for row in part]),
                counts=np.array([row[8] for row in part]),
            ),
        )
        one.stated.rows[:, SELF_S2] = [row[4] for row in part]
        one.off_cpu.variances.rows[:, SELF_S2] = [row[5] for row in part]
        shown = kept.of(one, MainThread(*had), is_over=False)
        for found in (shown.times_s, shown.variances.rows, shown.variances.phases):
            assert np.isfinite(found).all()
            assert (found >= 0.0).all()


# ---- a simulated program -------------------------------------------------------------------------

SHARES = (0.6, 0.25, 0.05)
"""Of the CPU time; the rest is outside of operators."""
CPU_S, STOP_S, WEIGHT = 20.0, 0.05, 80.0


def simulated(random: Random) -> tuple[F64, Rows, MainThread]:
    """The true self times, and what windows and the kernel tell of them.

    After each 50 ms of CPU time comes a stop of as long. A window meets one in eighty, and counts
    it eighty times."""
    true, met = np.array(SHARES) * CPU_S, np.zeros(len(SHARES))
    count = round(CPU_S / STOP_S)
    for _ in range(count):
        at = random.random()
        for op, share in enumerate(SHARES):
            if 0 <= at < share:
                true[op] += STOP_S
                met[op] += WEIGHT * STOP_S * (random.random() < 1 / WEIGHT)
            at -= share
    deviation = 0.01
    on_cpu = np.array([share * CPU_S * random.gauss(1.0, deviation) for share in SHARES])
    found = rows((on_cpu + met).tolist(), met.tolist())
    for op, share in enumerate(SHARES):
        found.off_cpu.variances.rows[op, SELF_S2] = (share * CPU_S * deviation) ** 2
    return true, found, main(CPU_S, count * STOP_S)


def test_intervals_hold_and_are_narrow() -> None:
    random, runs = Random(3), 400
    within, errors, as_met = np.zeros(len(SHARES)), [], []
    for _ in range(runs):
        true, found, had = simulated(random)
        shown = Stretches().of(found, had, is_over=False)
        error = np.sqrt(shown.variances.rows[:, SELF_S2])
        within += abs(shown.times_s[:, 0] - true) <= 1.96 * error
        errors.append(shown.times_s[:, 0] - true)
        as_met.append(found.times_s[:, 0] - true)
        assert (error <= 0.25 * true).all()
    # Within four standard deviations of such a share; a stop is taken to be longer than it was.
    assert (within / runs >= 0.95 - 4 * (0.95 * 0.05 / runs) ** 0.5).all()
    assert (np.std(errors, axis=0) <= 0.25 * np.std(as_met, axis=0)).all()
    unbiased = 4 * np.std(errors, axis=0) / runs**0.5
    assert (abs(np.mean(errors, axis=0)) <= unbiased).all()


# ---- the host ------------------------------------------------------------------------------------


def write(directory: Path, of_main: bool = True, **header: Any) -> None:
    """A program of this process's pid with 6 s and 2 s of self time, of which one met 2 s of
    stops."""
    directory.chmod(0o700)
    windows = {"created_unix_ns": 1, "window_ns": 3_000_000, "main_table": 1 if of_main else 2}
    writer = SegmentWriter(Process(pid=os.getpid()), **{**windows, **header})
    writer.note("service.name", "job")
    table = 0 if of_main else 2
    writer.add(
        [
            Range("a", 1e-3, 60, 100, self_s=1e-3, table=table),
            Range("b", 1e-3, 20, 100, self_s=1e-3, phase=2, table=table),
        ]
    )
    for op, phase in (("a", 1), ("b", 2)):
        writer.variance(op, 1.0, 4.0, phase=phase)
        writer.variance(None, 1.0, 4.0, phase=phase)
    writer.off_cpu("a", 2.0, 2.0, 0.25)
    writer.off_cpu("b", 0.0, 0.0, 0.25, phase=2)
    for phase in (1, 2):
        writer.off_cpu(None, 0.0, 0.0, 0.25, phase=phase)
    writer.write(directory)


def collected(
    directory: Path, slept_s: float, monkeypatch: pytest.MonkeyPatch
) -> dict[str, tuple[float, float]]:
    """By operator, its self time and variance. The process used 8 s and waited for 4 s."""
    had = {os.getpid(): ProcessorTime(8 * S, 4 * S)}
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: had)
    start_ns = (process_start(os.getpid()) or 0) * processor_time.TICK_NS
    age_ns = round((12.0 + slept_s) * S)
    monkeypatch.setattr(processor_time, "since_boot_ns", lambda: start_ns + age_ns)
    found: Snapshot = Host([str(directory)], consume=False).collect()
    return {
        key.op: (seconds, s2)
        for key, seconds, s2 in zip(
            found.keys, found.self_s.tolist(), found.self_variance.tolist(), strict=True
        )
    }


def test_the_agent_shows_the_waiting_that_the_kernel_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    found = collected(tmp_path, 0.0, monkeypatch)
    # 4 s and 2 s of 8 s of CPU time, and as large a share of 4 s of waiting.
    assert found["a"][0] == approx(6.0)
    assert found["b"][0] == approx(3.0)
    assert found["a"][1] == approx(1.5**2 * 0.25 + 0.5 * 0.5 * 4.0 * processor_time.STOP_S)
    assert found["b"][1] == approx(1.5**2 * 0.25 + 0.25 * 0.75 * 4.0 * processor_time.STOP_S)


@pytest.mark.parametrize(("slept_s", "of_main"), [(100.0, True), (0.0, False)])
def test_what_may_be_an_operators_own_waiting_stays(
    slept_s: float, of_main: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its main thread slept, or other threads ran the operators."""
    write(tmp_path, of_main)
    found = collected(tmp_path, slept_s, monkeypatch)
    assert [found["a"][0], found["b"][0]] == approx([6.0, 2.0])
    # All that no window has met is an error, too.
    assert found["a"][1] >= 4.0 + 3.0**2


def test_no_time_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window meets a stop, which the process states a moment later."""
    tmp_path.chmod(0o700)
    had: dict[int, ProcessorTime] = {}
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: had)
    monkeypatch.setattr(processor_time, "since_boot_ns", lambda: 0)
    host = Host([str(tmp_path)], consume=False)
    process, shown = Process(pid=os.getpid()), []
    for waited_s, (met_s, stated_s) in enumerate(((0, 0), (0, 0), (4, 0), (4, 4), (4, 4))):
        had[os.getpid()] = ProcessorTime(8 * S, waited_s * S)
        windows = {"window_ns": 3_000_000, "main_table": 1}
        writer = SegmentWriter(process, **windows)
        writer.add([Range("a", 1e-3, 40 + met_s * 10, 100, self_s=1e-3)])
        writer.variance("a", 1.0, 1.0)
        writer.off_cpu("a", stated_s, stated_s, 0.25)
        writer.write(tmp_path)
        found = host.collect()
        shown.append((float(found.self_s.sum()), float(found.total_s.sum())))
    for column in zip(*shown, strict=True):
        assert list(column) == sorted(column)
    assert shown[1][0] == approx(4.0 * (1 + 1 / 8))
