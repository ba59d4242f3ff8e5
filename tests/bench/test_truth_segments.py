"""`bench truth` reads segments as the agent does."""

import os
from pathlib import Path

import pytest

from opscope.bench.truth import segments
from tests.segments.segment_writer import Process, Range, SegmentWriter


def _written(directory: Path, writer: SegmentWriter) -> Path:
    path = directory / writer.process.file_name
    path.write_bytes(writer.to_bytes())
    return path


def test_variances_are_summed_over_labels_and_processes(tmp_path: Path) -> None:
    for _ in range(2):
        writer = SegmentWriter(Process(random_id=os.urandom(16)), window_ns=2_000_000)
        writer.add([Range("one", 1e-3, count=4, weight=10.0, self_s=1e-3)])
        writer.variance("one", 3.0, 1.0)
        writer.variance("one", 2.0, labels=(("model_id", "m"),))
        writer.variance(None, 7.0, 4.0)
        _written(tmp_path, writer)
    sums = segments.read(str(tmp_path))
    assert sums.calls[("one", "forward")] == 80.0
    assert sums.self_s[("one", "forward")] == pytest.approx(0.08)
    assert sums.calls_variance == {("one", "forward"): 10.0, ("", "forward"): 14.0}
    assert sums.self_variance == {("one", "forward"): 2.0, ("", "forward"): 8.0}


@pytest.mark.parametrize(("window_ns", "stated"), [(0, True), (2_000_000, False)])
def test_without_windows_the_variance_of_calls_follows_from_their_weight(
    tmp_path: Path, window_ns: int, stated: bool
) -> None:
    writer = SegmentWriter(window_ns=window_ns)
    _written(tmp_path, writer.add([Range("one", 1e-3, count=4, weight=10.0)]))
    variance = segments.read(str(tmp_path)).calls_variance
    assert variance == ({("one", "forward"): 40.0**2 / 4 - 40.0} if stated else {})


def test_the_increase_between_two_readings_is_their_difference(tmp_path: Path) -> None:
    writer = SegmentWriter()
    path = _written(tmp_path, writer.add([Range("one", 1e-3, count=4, self_s=5e-4)]))
    before = segments.read(str(tmp_path))
    writer.add([Range("one", 1e-3, count=2, self_s=1e-3), Range("two", 1.0, self_s=1.0)])
    path.write_bytes(writer.to_bytes())
    between = segments.read(str(tmp_path)).since(before)
    assert between.samples == {("one", "forward"): 2, ("two", "forward"): 1}
    assert between.calls == {("one", "forward"): 2.0, ("two", "forward"): 1.0}
    assert between.self_s[("one", "forward")] == pytest.approx(2e-3)


def test_what_was_owed_at_the_first_reading_may_have_come_since(tmp_path: Path) -> None:
    writer = SegmentWriter(window_ns=2_000_000)
    writer.add([Range("one", 1e-3, count=4, weight=10.0)])
    writer.variance("one", 9.0, 5.0, owed=(4.0, 1.0))
    path = _written(tmp_path, writer)
    before = segments.read(str(tmp_path))
    writer.variance("one", 8.0, 9.0, owed=(1.0, 2.0))
    path.write_bytes(writer.to_bytes())
    between = segments.read(str(tmp_path)).since(before)
    # What is not owed has grown by 2 and by 3; both readings owe.
    assert between.calls_variance == {("one", "forward"): 2.0 + 4.0 + 1.0}
    assert between.self_variance == {("one", "forward"): 3.0 + 1.0 + 2.0}
