"""Services of short processes: what one process keeps back counts once others leave room for it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.host.host import Host
from opscope.host.kept_back import Ending, KeptBack
from opscope.host.snapshot import SELF_NS, TOTAL_NS
from tests.segments.segment_writer import TICKS_PER_SECOND, Process, Range, SegmentWriter

LIFE_S = 0.25
MET_S = 0.002
"""Self time in the window that meets a process."""
WINDOWS: dict[str, Any] = {"window_ns": 2_000_000, "period_ns": 250_000_000, "anchor_ticks": 1}


def ended(place: Path, number: int, ranges: list[Range], service: str = "job") -> None:
    """A process of that life that has ended."""
    end = 1 + round(LIFE_S * TICKS_PER_SECOND)
    writer = SegmentWriter(Process(process_start=1 + number), **WINDOWS, window_end_ticks=end)
    writer.note("service.name", service)
    writer.add(ranges).write(place)


def met(weight: float) -> list[Range]:
    return [Range("a", MET_S, weight=weight, self_s=MET_S)]


def seconds(observer: Host) -> float:
    return float(np.nansum(observer.collect().self_s))


def test_what_one_process_keeps_back_counts_when_others_of_the_service_have_room(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o700)
    observer = Host([str(tmp_path)], consume=True)
    # The only window of four processes falls into this one: it estimates 1 s for all four.
    ended(tmp_path, 0, met(500.0))
    assert seconds(observer) == pytest.approx(LIFE_S)
    ended(tmp_path, 1, [])
    assert seconds(observer) == pytest.approx(2 * LIFE_S)
    ended(tmp_path, 2, [], service="another")
    assert seconds(observer) == pytest.approx(2 * LIFE_S)
    for number in range(3, 9):
        ended(tmp_path, number, [])
        seconds(observer)
    assert seconds(observer) == pytest.approx(1.0)


ENDINGS = st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1), st.integers(1, 3)), max_size=30)


@given(ENDINGS)
def test_times_stay_possible_and_none_is_lost_for_which_there_is_room(
    endings: list[tuple[float, float, int]],
) -> None:
    kept_back = KeptBack()
    wanted = shown = elapsed = 0.0
    for estimate, life, series in endings:
        kept = max(0.0, estimate - life)
        wanted, elapsed, shown = wanted + estimate, elapsed + life, shown + min(estimate, life)
        if kept:
            left = Ending((life - min(estimate, life)) * 1e9, np.array([series]), of(kept))
        else:
            left = Ending((life - estimate) * 1e9, np.zeros(0, np.intp), np.zeros((0, 2)))
        kept_back.end((0, "job"), left)
        shown += sum_s(kept_back)
        assert shown <= min(wanted, elapsed) + 1e-6
    kept_back.end((0, "job"), Ending(1e12, np.zeros(0, np.intp), np.zeros((0, 2))))
    assert shown + sum_s(kept_back) == pytest.approx(wanted, abs=1e-6)


def of(kept_s: float) -> np.ndarray[Any, Any]:
    return np.array([[kept_s * 1e9, 2 * kept_s * 1e9]])


def sum_s(kept_back: KeptBack) -> float:
    return sum(int(one.counters[:, SELF_NS].sum()) for one in kept_back.released()) / 1e9


def released(kept_back: KeptBack) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in kept_back.released():
        values: Iterable[list[int]] = one.counters[:, [SELF_NS, TOTAL_NS]].tolist()
        found |= dict(zip(one.series.tolist(), values, strict=True))
    return found


def test_freed_series_and_other_users_get_nothing() -> None:
    kept_back = KeptBack()
    kept_back.end((1, "job"), Ending(0.0, np.array([3, 4]), np.full((2, 2), 100.0)))
    kept_back.end((2, "job"), Ending(1e9, np.zeros(0, np.intp), np.zeros((0, 2))))
    assert released(kept_back) == {}
    kept_back.forget([4])
    kept_back.end((1, "job"), Ending(1e9, np.zeros(0, np.intp), np.zeros((0, 2))))
    assert released(kept_back) == {3: [100, 100]}
    assert released(kept_back) == {}


def test_a_process_whose_time_is_unknown_leaves_no_room() -> None:
    kept_back = KeptBack()
    kept_back.end((1, "job"), Ending(0.0, np.array([3]), np.full((1, 2), 100.0)))
    kept_back.end((1, "job"), None)
    assert released(kept_back) == {}
