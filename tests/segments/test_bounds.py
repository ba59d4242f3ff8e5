"""Numbers of foreign files are bounded where they enter, and their sums stop at a limit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.host.state_file import StateFile
from opscope.reports.view import by_operator
from opscope.segments import bounds, layout
from opscope_exporters.samples import ClassicBuckets
from tests.segments.segment_writer import Process, Range, SegmentWriter

ONES = (1 << 64) - 1


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "segments"
    directory.mkdir(mode=0o700)
    return directory


def agent(place: Path) -> Host:
    return Host([str(place)], consume=True, state=StateFile(str(place / "agent.state")))


def dead(number: int) -> Process:
    return Process(process_start=1 + number)


def test_health_as_large_as_may_be_in_three_files_is_read_back_by_the_next_agent(
    place: Path,
) -> None:
    for number in range(3):
        SegmentWriter(
            dead(number),
            dropped_count=(1 << 62) - 1,
            folded_count=(1 << 62) - 1,
            callback_error_count=(1 << 62) - 1,
            adaptation_count=(1 << 62) - 1,
            uncounted_cost_ps=(1 << 62) - 1,
        ).add([Range("numpy::add", 1e-3, 5)]).write(place)
    first = agent(place)
    assert first.collect().health.dropped == bounds.SUM_LIMIT
    first.close()
    second = agent(place)
    assert second.goes_on, second.resumed
    snapshot = second.collect()
    assert snapshot.calls.sum() == 15
    assert snapshot.health.dropped == bounds.SUM_LIMIT


def _heavy(place: Path, number: int, op: str = "numpy::add", **header: int) -> None:
    """A file with the largest counters that a reader accepts."""
    most = ((1 << 62) - 1) / layout.WEIGHT_ONE
    ranges = [Range(op, 1e-3, weight=most * 0.99, self_s=1e-3, failed=True, bytes=60_000)]
    SegmentWriter(dead(number), **header).add(ranges).write(place)


def _heavy_snapshot(place: Path) -> Snapshot:
    for number in range(5):
        _heavy(place, number, ticks_per_second=10**5)
    _heavy(place, 9, "numpy::sub", ticks_per_second=10**5)
    host = agent(place)
    first = host.collect()
    host.close()
    again = agent(place)
    assert again.goes_on, again.resumed
    snapshot = again.collect()
    assert np.array_equal(first.counters, snapshot.counters)
    assert np.array_equal(first.buckets, snapshot.buckets)
    return snapshot


def test_sums_over_files_stop_at_their_limit_and_are_saved(place: Path) -> None:
    snapshot = _heavy_snapshot(place)
    rows = {key.op: row for row, key in enumerate(snapshot.keys)}
    add, sub = rows["numpy::add"], rows["numpy::sub"]
    assert snapshot.counters.max() <= bounds.SUM_LIMIT
    assert (snapshot.calls[add] > 1.9 * snapshot.calls[sub]) and snapshot.calls[sub] > 6e13
    assert snapshot.buckets[add].max() == bounds.SUM_LIMIT


def test_no_sum_of_exporters_and_views_wraps(place: Path) -> None:
    snapshot = _heavy_snapshot(place)
    grouped = snapshot.grouped(lambda key: by_operator(key)._replace(op="all"))
    assert grouped.counters[0, 1] == bounds.SUM_LIMIT
    assert grouped.buckets.max() == bounds.SUM_LIMIT
    upto, _ = ClassicBuckets().upto(snapshot)
    assert (np.diff(upto, axis=1) >= 0).all()
    assert upto.max() <= bounds.SUM_LIMIT / layout.WEIGHT_ONE


def _rewrite(path: Path, field: str, value: int) -> None:
    fields: Any = layout.HEADER.fields
    dtype, offset = fields[field][:2]
    raw = bytearray(path.read_bytes())
    raw[offset : offset + dtype.itemsize] = value.to_bytes(8, "little")[: dtype.itemsize]
    path.write_bytes(raw)


_KNOWN_NOT = {"magic", "boot_id", "random_id", "process_start", "liveness", "is_disabled"}


@pytest.mark.parametrize(
    "field", [name for name in layout.HEADER.names or () if name not in _KNOWN_NOT]
)
def test_every_number_of_a_header_is_bounded(place: Path, field: str) -> None:
    path = SegmentWriter().add([Range("numpy::add", 1e-3)]).write(place)
    _rewrite(path, field, ONES)
    (reason,) = agent(place).collect().bad_segments
    assert reason[0] in ("corrupt", "version", "identity")


def test_sums_by_group_are_exact_below_the_limit_and_stop_at_it() -> None:
    group = np.array([0, 1, 0, 1, 2], np.intp)
    values = np.array([1, bounds.SUM_LIMIT, 2, bounds.SUM_LIMIT, bounds.SUM_LIMIT], np.uint64)
    assert bounds.sum_by(group, values[:, None], 3).tolist() == [
        [3],
        [bounds.SUM_LIMIT],
        [bounds.SUM_LIMIT],
    ]
    many = np.full((64, 2), bounds.SUM_LIMIT, np.uint64)
    assert bounds.total(many).tolist() == [bounds.SUM_LIMIT] * 2
    assert bounds.added(many, many).max() == bounds.SUM_LIMIT
