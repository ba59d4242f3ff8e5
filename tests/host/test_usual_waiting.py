"""The waiting of processes that ended before a pass could read the kernel's count of it."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from opscope.host import processor_time
from opscope.host.host import Host
from opscope.host.processor_time import ProcessorTime, ProcessorTimes, ProcessStat, unread_s2
from opscope.host.usual_waiting import UsualWaiting
from tests.segments.segment_writer import Process, Range, SegmentWriter

S = 10**9
HALF = ProcessorTime(4 * S, 4 * S)
"""It waits for half of the time."""


def write(directory: Path, process: Process, service: str, op: str) -> None:
    """A process with a second of self time in 100 calls, of which windows met ten."""
    writer = SegmentWriter(process, window_ns=2_000_000)
    writer.note("service.name", service)
    writer.add([Range(op, 0.01, 10, 10, self_s=0.01)]).variance(op, 1.0, 0.25)
    writer.write(directory)


@pytest.mark.parametrize(("service", "error"), [("job", True), ("another", False)])
def test_an_ended_process_waited_as_others_of_its_service(
    service: str, error: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(processor_time, "of_process", lambda pid: ProcessStat())
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: {pid: HALF})
    host = Host([str(tmp_path)], consume=True)
    write(tmp_path, Process(), "job", "living")
    host.collect()
    write(tmp_path, Process(process_start=1), service, "ended")
    for _ in range(3):
        found = host.collect()
        errors = dict(zip((key.op for key in found.keys), found.self_variance, strict=True))
        # In a second of work it waited for another one, in stops of which one in ten is met.
        assert errors["ended"] == pytest.approx(0.25 + error * unread_s2(1.0, 10.0, HALF))
    assert unread_s2(1.0, 10.0, HALF) == pytest.approx(1.0 + 9 * 0.1)


def test_what_was_read_of_a_process_itself_counts_first() -> None:
    times = ProcessorTimes()
    times.add({1: ProcessorTime(2 * S, S)})
    before = times.lacked_s2(2.0, 5.0)
    times.ends(HALF)
    assert before == pytest.approx(1.0)
    # Another second, of which it waited half as long.
    assert times.lacked_s2(3.0, 1.0) == pytest.approx(before + 0.5**2)
    assert times.lacked_s2(3.0, 1.0) == pytest.approx(before + 0.5**2)


def test_nothing_is_known_of_a_service_without_a_living_process() -> None:
    times = ProcessorTimes()
    times.ends(UsualWaiting().of((os.getuid(), "job")))
    assert times.waited_little
    assert times.lacked_s2(1.0, 10.0) == 0.0


def test_waiting_of_now_counts_for_more_than_that_of_long_ago() -> None:
    usual, key = UsualWaiting(), (0, "job")
    for _ in range(1000):
        usual.note(key, ProcessorTime(10 * S, 0))
    for _ in range(30):
        usual.note(key, ProcessorTime(10 * S, 10 * S))
    used, waited = usual.of(key)
    assert 0.9 <= waited / used <= 1.0
    usual.note(key, ProcessorTime(0, 5 * S))
    assert usual.of(key) == (used, waited)


def test_the_error_of_many_short_processes_is_honest() -> None:
    """Each has one stop of 50 ms in as much work; one in ten is in a window."""
    random = Random(1)
    runs, processes, weight, stop_s = 500, 60, 10, 0.05
    variance = processes * unread_s2(stop_s, weight, HALF)
    within = 0
    for _ in range(runs):
        met = sum(random.random() < 1 / weight for _ in range(processes))
        within += abs(weight * met * stop_s - processes * stop_s) <= 1.96 * variance**0.5
    # At least 95 %, within four standard deviations of such a share.
    assert within / runs >= 0.95 - 4 * (0.95 * 0.05 / runs) ** 0.5
