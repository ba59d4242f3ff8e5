"""The series that exporters get: no export has dropped operators, operators below the top are
summed, and no change makes a counter fall or counts anything twice."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.host.snapshot import (
    COUNTER_COLUMNS,
    SELF_NS,
    SELF_UNKNOWN,
    TOTAL_NS,
    WEIGHT,
    Exemplar,
    SeriesKey,
    Snapshot,
)
from opscope.segments.layout import OTHER_OP
from opscope.server.exporter import PageExporter, load
from opscope.server.series_filter import FilteredPage, SeriesFilter
from tests.examples import examples
from tests.exporters.peers import agent

SECOND = 10**9
BEGAN = 1_700_000_000 * SECOND
OPS = ("mm", "add", "relu", "norm", "view")
Times = dict[str, int]
"""By operator, its seconds since the start, and as many calls."""


def key(op: str, service: str = "train", phase: str = "forward") -> SeriesKey:
    return SeriesKey(service, op, phase, ())


def snapshot(seconds: int, times: dict[SeriesKey, int], octave: int = 40) -> Snapshot:
    """The snapshot of a host after that many seconds, with this time of each series. All ranges are
    in one bucket of that octave."""
    keys = tuple(times)
    counters = np.zeros((len(keys), COUNTER_COLUMNS), np.uint64)
    taken = np.array(list(times.values()), np.uint64)
    counters[:, WEIGHT] = taken * np.uint64(65536)
    counters[:, TOTAL_NS] = counters[:, SELF_NS] = taken * np.uint64(SECOND)
    buckets = np.zeros((len(keys), 2, 8), np.uint64)
    buckets[:, 1, 3] = counters[:, WEIGHT]
    return Snapshot(
        BEGAN + seconds * SECOND, keys, np.full(len(keys), BEGAN), counters, buckets, octave - 1
    )


def calls(found: Snapshot) -> dict[str, float]:
    """By operator, over the rest; the histogram has the same."""
    by_counter: Counter[str] = Counter()
    by_histogram: Counter[str] = Counter()
    for row, one in enumerate(found.keys):
        by_counter[one.op] += found.calls[row]
        by_histogram[one.op] += found.buckets[row].sum() / 65536
    assert by_counter == by_histogram
    return dict(by_counter)


def created(found: Snapshot, op: str) -> int:
    """Seconds from the beginning."""
    row = [one.op for one in found.keys].index(op)
    return (int(found.created_unix_ns[row]) - BEGAN) // SECOND


def of(series: SeriesFilter, seconds: int, **times: int) -> Snapshot:
    return series.apply(snapshot(seconds, {key(op): taken for op, taken in times.items()}))


def test_without_a_filter_a_snapshot_is_unchanged() -> None:
    given = snapshot(10, {key("mm"): 5})
    assert SeriesFilter().apply(given) is given
    assert given.series_filtered == {}


def test_dropped_series_are_exported_nowhere() -> None:
    given = snapshot(
        10, {key("aten::mm"): 5, key("aten::view"): 1, key("aten::mm", "debug-1"): 7, key("x"): 2}
    )
    slow = {row: (Exemplar(1.0, BEGAN, "ab" * 16, "cd" * 8),) for row in (1, 3)}
    found = SeriesFilter(("*::view",), ("debug-?",)).apply(replace(given, exemplars=slow))
    assert found.keys == (key("aten::mm"), key("x"))
    assert found.calls.tolist() == [5, 2]
    assert found.buckets.sum() == given.buckets[[0, 3]].sum()
    assert found.exemplars == {1: slow[3]}
    assert found.series_filtered == {("drop",): 2}


def test_the_top_of_each_service_stays_and_the_rest_is_summed_by_phase() -> None:
    given = snapshot(
        10,
        {
            key("mm"): 50,
            key("add"): 5,
            key("relu"): 3,
            key("add", phase="backward"): 2,
            key("mm", "serve"): 1,
            SeriesKey("train", OTHER_OP, "forward", ()): 4,
        },
    )
    found = SeriesFilter(top_ops=1).apply(given)
    assert dict(zip(found.keys, found.calls.tolist(), strict=True)) == {
        key("mm"): 50,
        key(OTHER_OP): 5 + 3 + 4,
        key(OTHER_OP, phase="backward"): 2,
        key("mm", "serve"): 1,
    }
    # It contains what `other` had before, and nothing twice.
    assert found.series_filtered == {("top",): 3}
    assert found.created_unix_ns.tolist() == [BEGAN] * 4


def test_time_counts_where_self_time_is_not_known() -> None:
    given = snapshot(10, {key("a"): 5, key("b"): 4})
    given.counters[:, SELF_UNKNOWN] = 1
    given.counters[:, SELF_NS] = 0
    assert "a" in calls(SeriesFilter(top_ops=1).apply(given))


def test_an_operator_chosen_later_starts_at_zero_and_its_earlier_counts_stay_in_other() -> None:
    series = SeriesFilter(top_ops=1)
    assert calls(of(series, 10, mm=100, add=10)) == {"mm": 100, OTHER_OP: 10}
    later = of(series, 20, mm=101, add=400)
    assert calls(later) == {"add": 390, OTHER_OP: 10 + 1}
    assert (created(later, "add"), created(later, OTHER_OP)) == (10, 0)
    assert calls(of(series, 30, mm=103, add=500)) == {"add": 490, OTHER_OP: 13}


def test_little_more_time_changes_nothing() -> None:
    series = SeriesFilter(top_ops=1)
    of(series, 10, mm=100, add=90)
    assert set(calls(of(series, 20, mm=100, add=140))) == {"mm", OTHER_OP}
    assert set(calls(of(series, 30, mm=100, add=260))) == {"add", OTHER_OP}


def test_a_burst_of_long_ago_is_forgotten() -> None:
    series = SeriesFilter(top_ops=1)
    of(series, 10, mm=100_000, add=1)
    later = of(series, 10 + 20 * 600, mm=100_000, add=1001)
    assert set(calls(later)) == {"add", OTHER_OP}


def test_new_octaves_are_put_in_their_place() -> None:
    series = SeriesFilter(top_ops=1)
    series.apply(snapshot(10, {key("mm"): 5, key("add"): 1}, octave=40))
    given = snapshot(20, {key("mm"): 9, key("add"): 2}, octave=40)
    wider = np.zeros((2, 6, 8), np.uint64)
    wider[:, 3, 3] = given.buckets[:, 1, 3]
    wider[:, 0, 0] = 65536
    given.counters[:, WEIGHT] += np.uint64(65536)
    found = series.apply(replace(given, buckets=wider, first_octave=37))
    assert calls(found) == {"mm": 10, OTHER_OP: 3}
    assert found.first_octave == 37
    assert (found.buckets == wider).all()


def test_after_another_agent_all_series_begin_anew() -> None:
    """The same calls may have been exported as `other`."""
    series = SeriesFilter(top_ops=1, from_now=True)
    first = of(series, 10, mm=100, add=10)
    assert calls(first) == {"mm": 0, OTHER_OP: 0}
    assert created(first, "mm") == created(first, OTHER_OP) == 10
    assert calls(of(series, 20, mm=103, add=11, relu=2)) == {"mm": 3, OTHER_OP: 1 + 2}


def test_threads_that_come_late_get_the_newest() -> None:
    series = SeriesFilter(top_ops=1)
    older, newer = (snapshot(seconds, {key("mm"): seconds}) for seconds in (10, 20))
    latest = series.apply(newer)
    assert series.apply(older) is series.apply(newer) is latest
    # The clock was set back an hour.
    assert calls(series.apply(snapshot(20 - 3600, {key("mm"): 21}))) == {"mm": 21}


def test_a_series_that_begins_anew_is_counted_anew() -> None:
    """Its series was retired, and it came back."""
    series = SeriesFilter(top_ops=1)
    of(series, 10, mm=100, add=10)
    again = snapshot(20, {key("mm"): 7, key("add"): 10})
    again.created_unix_ns[0] += 15 * SECOND
    assert calls(series.apply(again)) == {"mm": 107, OTHER_OP: 10}


def test_an_ended_series_is_not_exported_and_its_counts_in_other_are() -> None:
    """Also one of the host's own `other`."""
    series = SeriesFilter(top_ops=1)
    given = {key("mm"): 100, key("add"): 10, key(OTHER_OP, "old"): 5}
    assert calls(series.apply(snapshot(10, given))) == {"mm": 100, OTHER_OP: 10 + 5}
    assert calls(series.apply(snapshot(20, {key("relu"): 7}))) == {"relu": 7, OTHER_OP: 10}


STEPS = st.lists(
    st.lists(st.sampled_from([0, 0, 1, 10, 1000]), min_size=len(OPS), max_size=len(OPS)),
    min_size=1,
    max_size=12,
)


@examples(30)
@given(STEPS, st.integers(1, 3))
def test_nothing_is_lost_counted_twice_or_counted_back(steps: list[list[int]], top: int) -> None:
    """What a store sees: the increase of each series between pages, new ones from 0."""
    series = SeriesFilter(top_ops=top)
    times = dict.fromkeys(map(key, OPS), 0)
    before: dict[SeriesKey, tuple[int, float]] = {}
    for number, step in enumerate(steps):
        for op, more in zip(OPS, step, strict=True):
            times[key(op)] += more
        found = series.apply(snapshot(60 * number, dict(times)))
        now = {
            one: (began, count)
            for one, began, count in zip(
                found.keys, found.created_unix_ns.tolist(), found.calls.tolist(), strict=True
            )
        }
        grown = 0.0
        for one, (began, count) in now.items():
            known = before.get(one)
            grown += count - (known[1] if known and known[0] == began else 0.0)
            assert known is None or known[0] < began or known[1] <= count
        assert grown == sum(step)
        assert len({one.op for one in found.keys} - {OTHER_OP}) <= top
        before = now


def page(wanted: PageExporter, given: Snapshot) -> str:
    return b"".join(wanted.page(given, "")[0]).decode()


def test_a_filtered_page_counts_the_series_left_out() -> None:
    wanted = load("prometheus")
    assert isinstance(wanted, PageExporter)
    given = snapshot(10, {key("mm"): 5, key("add"): 4, key("relu"): 3})
    assert "opscope_series_filtered{" not in page(wanted, given)
    text = page(FilteredPage(wanted, SeriesFilter(("relu",), (), 1)), given)
    assert 'opscope_series_filtered{filter="drop"} 1.0\n' in text
    assert 'opscope_series_filtered{filter="top"} 1.0\n' in text
    assert operators(text.splitlines()) == {"mm", OTHER_OP}


def operators(lines: Iterable[str]) -> set[str]:
    return {found[1] for line in lines if (found := re.search(r'[{,]op="([^"]*)"', line))}


PROGRAM = """
import sys, opscope
from opscope.record import recorder
recorder.start(sys.argv[1])
for name, times in (("core::most", 100_000), ("core::less", 10), ("core::least", 1)):
    for _ in range(times):
        with opscope.record_function(name):
            pass
"""


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--drop-op", "core::le*"], {"core::most"}),
        (["--top-ops", "1"], {"core::most", OTHER_OP}),
        (["--drop-service", "*"], set()),
    ],
)
def test_the_agents_options(tmp_path: Path, options: list[str], left: set[str]) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=True)
    with agent(tmp_path, *options) as target:
        text = urlopen(f"http://{target}/metrics").read().decode()
    assert operators(text.splitlines()) == left
