"""Self times stay within the time that threads had, whatever windows happened to contain."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import Segment, read_header, read_segment
from opscope.segments.self_time import NO_LIMIT, PossibleTimes, wanted
from tests.segments.segment_writer import TICKS_PER_SECOND, Range, SegmentWriter

PERIOD_NS = 250_000_000


def segment(ranges: list[Range], elapsed_s: float, **header: Any) -> Segment:
    end = 10 + round(elapsed_s * TICKS_PER_SECOND)
    windows = {"window_ns": 2_000_000, "period_ns": PERIOD_NS}
    header = {"anchor_ticks": 10, "window_end_ticks": end, **windows, **header}
    raw = SegmentWriter(**header).add(ranges).to_bytes()

    def read(offset: int, size: int) -> bytes:
        return raw[offset : offset + size]

    return read_segment(read, read_header(read), Dictionary())


def shown_s(times: PossibleTimes, one: Segment) -> dict[str, float]:
    own, _ = times.of(one.rows.keys, wanted(one.rows.values), one.possible_self_ticks)
    ops = [one.dictionary.ops[int(key) & 0xFFFFFFFF] for key in one.rows.keys]
    return dict(zip(ops, (own / TICKS_PER_SECOND).tolist(), strict=True))


def stopped(weight: float = 80.0, table: int = 0) -> Range:
    """A window contained the 50 ms for which a quota stopped the thread."""
    return Range("stopped", 0.05, weight=weight, self_s=0.05, table=table)


def work(seconds: float, op: str = "work", table: int = 0) -> Range:
    return Range(op, seconds, self_s=seconds, table=table)


def test_what_fits_into_the_time_is_shown_as_it_is() -> None:
    one = segment([work(3.0), stopped()], elapsed_s=7.0)
    assert one.possible_self_ticks == NO_LIMIT
    assert shown_s(PossibleTimes(), one) == pytest.approx({"work": 3.0, "stopped": 4.0})


def test_an_excess_is_shown_when_the_time_for_it_has_passed() -> None:
    times = PossibleTimes()
    assert shown_s(times, segment([work(4.5)], 5.0)) == {"work": 4.5}
    # 4 s more in half a second: half a second of them is possible.
    shown = shown_s(times, segment([work(4.5), stopped()], 5.5))
    assert shown == pytest.approx({"work": 4.5, "stopped": 1.0})
    shown = shown_s(times, segment([work(5.0), stopped()], 7.0))
    assert sum(shown.values()) == pytest.approx(7.0)
    shown = shown_s(times, segment([work(5.0), stopped()], 9.0))
    assert shown == pytest.approx({"work": 5.0, "stopped": 4.0})


def test_the_first_windows_after_exact_sampling_show_no_more_than_has_passed() -> None:
    times = PossibleTimes()
    exact = segment([work(4.0)], 0.0, window_ns=0, window_end_ticks=0)
    assert shown_s(times, exact) == {"work": 4.0}
    shown = shown_s(times, segment([work(4.0), stopped()], 5.0))
    assert shown == pytest.approx({"work": 4.0, "stopped": 1.0})


def test_a_thread_that_waits_does_not_lend_its_time_to_another() -> None:
    one = segment([work(3.0), stopped(), work(0.5, "other", table=1)], elapsed_s=5.0)
    assert sum(shown_s(PossibleTimes(), one).values()) == pytest.approx(5.5)


def test_the_total_of_a_leaf_stays_with_its_self_time() -> None:
    one = segment([stopped()], elapsed_s=1.0)
    own, total = PossibleTimes().of(one.rows.keys, wanted(one.rows.values), one.possible_self_ticks)
    assert own.tolist() == total.tolist() == [pytest.approx(TICKS_PER_SECOND)]


@pytest.mark.parametrize(
    "header", [{"window_ns": 0}, {"window_end_ticks": 0}, {"anchor_ticks": 2**61}]
)
def test_without_the_time_of_windows_nothing_is_kept_back(header: dict[str, int]) -> None:
    one = segment([stopped()], elapsed_s=1.0, **header)
    assert shown_s(PossibleTimes(), one) == pytest.approx({"stopped": 4.0})


PASSES = st.lists(
    st.tuples(st.floats(0.01, 2.0), st.lists(st.tuples(st.integers(0, 4), st.floats(1e-6, 5)))),
    min_size=1,
    max_size=8,
)


@given(PASSES)
def test_over_any_course_times_only_grow_and_stay_possible(
    passes: list[tuple[float, list[tuple[int, float]]]],
) -> None:
    times, ranges, elapsed_s = PossibleTimes(), [work(1e-3, "first")], 1.0
    before: dict[str, float] = {}
    for passed_s, more in passes:
        elapsed_s += passed_s
        ranges += [work(seconds, f"op{op}") for op, seconds in more]
        one = segment(ranges, elapsed_s)
        shown = shown_s(times, one)
        wanted = one.rows.values[:, 4].sum() / TICKS_PER_SECOND
        assert all(shown[op] >= seconds - 1e-9 for op, seconds in before.items())
        assert sum(shown.values()) == pytest.approx(min(wanted, elapsed_s), rel=1e-9)
        before = shown


def test_a_new_row_gets_only_what_is_left() -> None:
    times = PossibleTimes()
    shown_s(times, segment([work(2.0, "b"), work(1.0, "c")], 3.0))
    shown = shown_s(times, segment([work(2.0, "b"), work(1.0, "c"), work(1.0, "a")], 3.5))
    assert shown == pytest.approx({"a": 0.5, "b": 2.0, "c": 1.0})
    assert np.isfinite(list(shown.values())).all()
