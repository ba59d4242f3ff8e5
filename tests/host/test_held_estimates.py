"""Exported self times only grow, and their sums by service are those of the estimates."""

import os
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from opscope.host import processor_time
from opscope.host.held_estimates import grown
from opscope.host.host import Host
from opscope.segments.layout import U64
from tests.segments.segment_writer import Process, Range, SegmentWriter

ALL = np.ones(4, np.bool_)


def ns(*values: int) -> U64:
    return np.array(values, np.uint64)


def services() -> NDArray[np.intp]:
    """Of the first three series, and of the last."""
    return np.array([0, 0, 0, 1])


def unasked() -> NDArray[np.intp]:
    raise AssertionError("asked for the services")


def test_without_a_fallen_estimate_all_are_exported() -> None:
    found = grown(ns(4, 5, 6, 7), ns(4, 3), ALL, unasked)
    assert found.tolist() == [4, 5, 6, 7]


def test_what_has_fallen_stays_and_the_others_of_the_service_grow_by_less() -> None:
    found = grown(ns(900, 200, 400, 70), ns(1000, 100, 100, 50), ALL, services)
    assert found.tolist() == [1000, 175, 325, 70]
    assert int(found[:3].sum()) == 1500


def test_nothing_grows_while_more_was_exported_than_is_estimated() -> None:
    found = grown(ns(500, 200, 400, 70), ns(1000, 100, 100, 50), ALL, services)
    assert found.tolist() == [1000, 100, 100, 70]


def test_what_is_exact_is_never_late() -> None:
    found = grown(
        ns(900, 200, 400, 70), ns(1000, 100, 100, 50), np.array([True, False, True, True]), services
    )
    assert found.tolist() == [1000, 200, 300, 70]


def test_sums_are_those_of_the_estimates_however_these_move() -> None:
    random = Random(7)
    exported = ns(0, 0, 0, 0)
    estimates = np.zeros(4)
    for _ in range(1000):
        moved = [random.gauss(10.0, 40.0) for _ in range(3)]
        estimates[:3] = np.maximum(estimates[:3] + moved, 0.0)
        now = np.rint(estimates).astype(np.uint64)
        before, exported = exported, grown(now, exported, ALL, services)
        assert (exported >= before).all()
        assert abs(float(exported.sum()) - max(now.sum(), before.sum())) <= 3


def test_a_service_exports_no_more_than_its_thread_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows meet one operator, and later the other."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: None)
    host, process = Host([str(tmp_path)], consume=False), Process(pid=os.getpid())
    for self_ms in ((60, 40), (40, 80), (90, 60), (80, 120)):
        writer = SegmentWriter(process, window_ns=3_000_000, main_table=1)
        for op, each in zip("ab", self_ms, strict=True):
            writer.add([Range(op, each * 1e-3, 10, 100, self_s=each * 1e-3)])
            writer.variance(op, 1.0, 1.0)
        writer.write(tmp_path)
        found = host.collect()
        assert float(found.self_s.sum()) == pytest.approx(sum(self_ms), rel=1e-6)
    assert found.self_s.tolist() == pytest.approx([90.0, 110.0], rel=1e-6)
