"""Quantiles, groups and differences of snapshots, compared with the ranges in them."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.host.host import Host
from opscope.host.processor_time import USED, WAITED
from opscope.host.snapshot import SAMPLES, SeriesKey, Snapshot
from opscope.reports.breakdown import breakdown
from opscope.reports.view import Base, by_operator, view
from tests.segments.segment_writer import Range, SegmentWriter

DURATIONS = st.lists(st.floats(1e-8, 100.0), min_size=1, max_size=60)


def snapshot_of(place: Path, ranges: list[Range]) -> Snapshot:
    path = SegmentWriter().add(ranges).write(place)
    try:
        return Host([str(place)], consume=False).collect()
    finally:
        os.unlink(path)


@given(DURATIONS, st.floats(0.0, 1.0))
def test_quantiles_are_within_four_and_a_half_per_cent(
    tmp_path_factory: pytest.TempPathFactory, durations: list[float], p: float
) -> None:
    place = tmp_path_factory.mktemp("segments")
    snapshot = snapshot_of(place, [Range("a", duration) for duration in durations])
    true = sorted(durations)[max(math.ceil(p * len(durations) - 1e-9), 1) - 1]
    assert snapshot.quantile(p)[0] == pytest.approx(true, rel=0.045)


def test_quantiles_count_weights_not_samples(tmp_path: Path) -> None:
    ranges = [Range("a", 1e-6, 10, 1.0), Range("a", 1e-3, 10, 3.0)]
    snapshot = snapshot_of(tmp_path, ranges)
    assert snapshot.quantile(0.2)[0] == pytest.approx(1e-6, rel=0.045)
    assert snapshot.quantile(0.5)[0] == pytest.approx(1e-3, rel=0.045)


def test_the_histogram_has_opentelemetrys_indices(tmp_path: Path) -> None:
    duration = 3.3e-4
    snapshot = snapshot_of(tmp_path, [Range("a", duration)])
    (index,) = np.flatnonzero(snapshot.buckets[0].reshape(-1)) + snapshot.bucket_offset
    # https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram
    assert index == math.ceil(math.log2(duration) * 2**3) - 1


def test_groups_are_summed(tmp_path: Path) -> None:
    ranges = [Range("a", 1e-3, 2, phase=1), Range("a", 1e-3, 3, phase=2), Range("b", 1.0)]
    grouped = snapshot_of(tmp_path, ranges).grouped(by_operator)
    assert dict(zip(grouped.keys, grouped.calls.tolist(), strict=True)) == {
        SeriesKey("", "a", "", ()): 5,
        SeriesKey("", "b", "", ()): 1,
    }


def test_a_difference_has_only_the_increase(tmp_path: Path) -> None:
    writer = SegmentWriter().add([Range("a", 1e-3, 4, self_s=1e-3)])
    writer.write(tmp_path)
    host = Host([str(tmp_path)], consume=False)
    before = host.collect()
    writer.add([Range("a", 1.0, 2, self_s=1.0), Range("b", 1e-6, self_s=1e-6)]).write(tmp_path)
    since = host.collect().since(before)
    assert since.calls.tolist() == [2, 1]
    assert since.total_s.tolist() == [2.0, 1e-6]
    assert since.quantile(0.5)[0] == pytest.approx(1.0, rel=0.045)


def test_nothing_at_all_is_a_snapshot_too(tmp_path: Path) -> None:
    snapshot = Host([str(tmp_path)], consume=False).collect()
    assert snapshot.quantile(0.5).tolist() == []
    assert view(snapshot, snapshot, by_operator).rows == ()


def test_shares_are_of_the_time_in_operators(tmp_path: Path) -> None:
    ranges = [Range("outer", 4.0, self_s=1.0), Range("inner", 3.0, self_s=3.0)]
    snapshot = snapshot_of(tmp_path, ranges)
    shown = view(snapshot, None, by_operator)
    assert shown.base_is_self
    assert shown.base_s == 4.0
    assert [(row.key.op, row.total_share, row.self_share) for row in shown.rows] == [
        ("outer", 1.0, 0.25),
        ("inner", 0.75, 0.75),
    ]
    seconds = (snapshot.time_unix_ns - snapshot.created_unix_ns[0]) / 1e9
    assert shown.rows[0].calls_per_s == 1 / seconds


def test_shares_are_of_an_exact_outer_range_of_which_windows_met_less(tmp_path: Path) -> None:
    inside = Range("inside", 0.0025, weight=80, self_s=0.0025)
    ranges = [Range("outer", 4.0, self_s=0.0), inside]
    writer = SegmentWriter(window_ns=3 * 10**6, period_ns=250 * 10**6).add(ranges)
    writer.write(tmp_path)
    shown = view(Host([str(tmp_path)], consume=False).collect(), None, by_operator)
    assert (shown.base_s, shown.base_is_least) == (4.0, True)
    assert [(row.key.op, row.total_share) for row in shown.rows] == [
        ("outer", 1.0),
        ("inside", 0.05),
    ]


def test_time_that_counts_later_is_time_of_its_operator(tmp_path: Path) -> None:
    now = snapshot_of(tmp_path, [Range("a", 1.0, self_s=1.0), Range("b", 3.0, self_s=3.0)])
    counters = now.counters.copy()
    counters[:, SAMPLES] = 0
    before = replace(now, counters=now.counters - counters, time_unix_ns=now.time_unix_ns - 10**9)
    shown = view(now, before, by_operator)
    assert [(row.key.op, row.self_share, row.samples) for row in shown.rows] == [
        ("b", 0.75, 0),
        ("a", 0.25, 0),
    ]


def test_nested_calls_of_an_exact_operator_are_no_more_time(tmp_path: Path) -> None:
    shown = view(
        snapshot_of(tmp_path, [Range("calls_itself", 4.0, 2, self_s=1.0)]), None, by_operator
    )
    assert (shown.base_s, shown.base_is_least) == (2.0, False)


def test_a_few_unknown_self_times_leave_the_shares_as_they_are(tmp_path: Path) -> None:
    ranges = [Range("a", 1.0, self_s=1.0), Range("b", 0.5, phase=2)]
    ranges.append(Range("b", 0.5, 6, self_s=0.5))
    snapshot = replace(snapshot_of(tmp_path, ranges), measures={})
    shown = view(snapshot, None, by_operator, "self")
    assert (shown.base_is_self, shown.base_is_least, shown.base_s) == (True, True, 4.0)
    assert [(row.key.op, row.self_share) for row in shown.rows] == [("a", 0.25), ("b", None)]
    ((name, threads, _, _),) = breakdown(snapshot, snapshot_before(snapshot), 2.0)["framework"]
    assert (name, threads) == ("user", 2.0)


def snapshot_before(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, counters=np.zeros_like(snapshot.counters))


def test_with_unknown_self_times_shares_are_of_the_time_in_which_threads_ran(
    tmp_path: Path,
) -> None:
    """Of an integrator that calls the program's operators back, windows meet parts."""
    snapshot = snapshot_of(tmp_path, [Range("a", 1.0, self_s=1.0), Range("b", 3.0)])
    service = snapshot.keys[0].service
    ran = {USED: {(service, ""): 4 * 10**9}, WAITED: {(service, ""): 10**9}}
    shown = view(replace(snapshot, measures=ran), None, by_operator, "self")
    assert (shown.base_of, shown.base_s) == (Base.RUNNING, 5.0)
    assert [(row.key.op, row.total_share, row.self_share) for row in shown.rows] == [
        ("a", 0.2, 0.2),
        ("b", 0.6, None),
    ]
    # The same while the unknown self time is less than the known one, but not if it is a tenth.
    for unknown_s, base in (0.5, Base.RUNNING), (0.05, Base.SELF):
        known, other = Range("a", 1.0, self_s=1.0), Range("b", unknown_s)
        few = replace(snapshot_of(tmp_path, [known, other]), measures=ran)
        assert view(few, None, by_operator).base_of is base
    earlier = replace(snapshot_before(snapshot), measures={USED: {(service, ""): 10**9}})
    assert view(replace(snapshot, measures=ran), earlier, by_operator).base_s == 4.0


def test_an_operator_that_waits_for_longer_than_threads_ran_has_no_share_of_that(
    tmp_path: Path,
) -> None:
    snapshot = snapshot_of(tmp_path, [Range("a", 1.0, self_s=1.0), Range("b", 3.0)])
    ran = {USED: {(snapshot.keys[0].service, ""): 2 * 10**9}}
    shown = view(replace(snapshot, measures=ran), None, by_operator)
    assert (shown.base_of, shown.base_s) == (Base.TOTAL, 4.0)


def test_without_self_times_shares_are_of_all_total_times(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, [Range("a", 1.0, self_s=1.0), Range("b", 3.0)])
    shown = view(replace(snapshot, measures={}), None, by_operator, "self")
    assert not shown.base_is_self
    assert shown.base_s == 4.0
    assert [(row.key.op, row.self_share) for row in shown.rows] == [("a", 0.25), ("b", None)]


def test_a_file_that_is_written_over_may_lose_octaves(tmp_path: Path) -> None:
    """Only hostile data does this; the difference from the earlier snapshot is not below zero."""
    host = Host([str(tmp_path)], consume=False)
    writer = SegmentWriter().add([Range("a", 1e-6), Range("b", 1e-3)])
    path = writer.write(tmp_path)
    before = host.collect()
    other = SegmentWriter(writer.process).add([Range("a", 1e-1), Range("b", 1e-3, 3)])
    path.write_bytes(other.to_bytes())
    after = host.collect()
    assert after.since(before).calls.sum() == 2
    assert before.since(after).calls.sum() == 0
