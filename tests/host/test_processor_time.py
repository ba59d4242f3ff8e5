"""Waiting for a processor: the kernel's count, and what it adds to standard errors."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from opscope.host import processor_time
from opscope.host.host import Host
from opscope.host.processor_time import (
    OnlyGrowing,
    ProcessorTime,
    ProcessorTimes,
    ProcessStat,
    of_threads,
    unseen_s,
)
from opscope.host.snapshot import Snapshot
from opscope.host.state_file import StateFile
from opscope.reports.view import by_operator, view
from opscope.segments import layout
from tests.busy import busy_beside
from tests.segments.segment_writer import Process, Range, SegmentWriter
from tests.waiting import until

S = 10**9
OF_PROCESS = processor_time.of_process


def is_due(cpu_s: float) -> Callable[[], bool]:
    return lambda: time.process_time() >= cpu_s


@pytest.fixture(autouse=True)
def of_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests say which threads there are; nothing else had a processor."""
    monkeypatch.setattr(processor_time, "of_process", lambda pid: ProcessStat())


def test_cpu_time_is_that_of_the_thread() -> None:
    me = threading.get_native_id()
    before = time.thread_time_ns()
    found = of_threads(os.getpid())
    assert found is not None
    tick = S // 10  # the kernel brings its count up to date when the thread is next stopped
    assert before - tick <= found[me].used <= time.thread_time_ns()


def test_two_busy_programs_on_one_processor_wait_for_each_other() -> None:
    def has_waited(pid: int) -> bool:
        found = of_threads(pid)
        assert found is not None
        return found[pid].waited > S // 20

    cpu = min(os.sched_getaffinity(0))
    with busy_beside(cpu) as one, busy_beside(cpu) as other:
        for pid in (one, other):
            until(partial(has_waited, pid), "50 ms of waiting")


def test_a_process_that_has_ended_or_has_too_many_threads_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert of_threads(0x7777777) is None
    monkeypatch.setattr(processor_time, "_THREAD_LIMIT", 0)
    assert of_threads(os.getpid()) is None


def test_what_ended_threads_had_stays() -> None:
    times = ProcessorTimes()
    for threads in (
        {1: ProcessorTime(5, 1), 2: ProcessorTime(7, 2)},
        {1: ProcessorTime(6, 1)},  # 2 has ended
        None,  # unknown for a moment
        {1: ProcessorTime(6, 2), 2: ProcessorTime(1, 0)},  # another thread with that id
    ):
        times.add(threads)
    assert times.sums == ProcessorTime(6 + 7 + 1, 2 + 2 + 0)


@pytest.mark.parametrize(
    ("self_s", "used_s", "waited_s", "unseen"),
    [
        (10.0, 10.0, 8.0, 8.0),  # all of the CPU time is in operators, no wait was met
        (18.0, 10.0, 8.0, 0.0),  # the estimate contains all of the waiting
        (14.0, 10.0, 8.0, 4.0),
        (5.0, 10.0, 8.0, 4.0),  # half of the waiting hits the rest of the program
        (90.0, 10.0, 8.0, 0.0),  # operators that wait by themselves
        (5.0, 0.0, 8.0, 0.0),
        (0.0, 10.0, 8.0, 0.0),
    ],
)
def test_waiting_that_no_window_has_met(
    self_s: float, used_s: float, waited_s: float, unseen: float
) -> None:
    process = ProcessorTime(int(used_s * S), int(waited_s * S))
    assert unseen_s(self_s, process) == pytest.approx(unseen)


def test_each_stretch_of_time_has_the_error_of_its_own_waiting() -> None:
    times = ProcessorTimes()
    # All of the CPU time is in operators; a window meets no stop, none, one of 8 s, none, none.
    passes = [(1, 3, 1), (2, 5, 2), (3, 7, 11), (4, 9, 12), (5, 11, 13)]
    variances, lacking = [0.0], [0.0]
    for used, waited, self_s in passes:
        times.add({1: ProcessorTime(used * S, waited * S)})
        variances.append(times.lacked_s2(self_s, 1.0))
        lacking.append(waited - (self_s - used))
    assert lacking == [0, 3, 5, -1, 1, 3]
    assert variances == pytest.approx([0, 9, 25, 25, 26, 34])
    for a in range(len(variances)):
        for b in range(a, len(variances)):
            if lacking[b] > lacking[a] >= 0 and min(lacking[a : b + 1]) >= 0:
                assert variances[b] - variances[a] >= (lacking[b] - lacking[a]) ** 2


# ---- the host ------------------------------------------------------------------------------------


def observed(
    directory: Path,
    waited_s: float,
    monkeypatch: pytest.MonkeyPatch,
    window_ns: int = 0,
    *outer: Range,
) -> Snapshot:
    """A program of this process's pid with 6 s and 2 s of self time in 8 s of CPU time."""
    directory.chmod(0o700)
    writer = SegmentWriter(created_unix_ns=1, window_ns=window_ns)
    writer.note("service.name", "job")
    writer.add(
        [Range("a", 1e-3, 60, 100, self_s=1e-3), Range("b", 1e-3, 20, 100, self_s=1e-3, phase=2)]
    )
    writer.variance("a", 1.0, 0.25)
    writer.variance("b", 1.0, 0.25, phase=2)
    for one in outer:
        writer.add([one])
        writer.variance(one.op, 0.0, 0.5)
    writer.write(directory)
    of = {1: ProcessorTime(8 * S, int(waited_s * S))}
    monkeypatch.setattr(
        processor_time, "of_threads", lambda pid, _: of if pid == os.getpid() else {}
    )
    return Host([str(directory)], consume=False).collect()


def test_standard_errors_contain_waiting_that_no_window_has_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = observed(tmp_path, 4.0, monkeypatch, window_ns=3_000_000)
    errors = dict(zip((key.op for key in found.keys), found.self_variance, strict=True))
    assert errors == pytest.approx({"a": 0.25 + 3.0**2, "b": 0.25 + 1.0**2})
    phases = {phase: one.self_s2 for (_, phase), one in found.phase_variances.items()}
    assert sorted(phases.values()) == pytest.approx([0.25 + 1.0**2, 0.25 + 3.0**2])
    assert found.calls_variance.tolist() == [1.0, 1.0]
    assert found.cpu_wait_s == {("job",): 4.0}
    assert found.cpu_time_s == {("job",): 8.0}


def test_an_outer_range_has_the_waiting_that_is_not_taken_off_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6 s of which 3 s are operators', which lack half as much of waiting."""
    step = Range("step", 0.1, 60, 1, self_s=0.05)
    found = observed(tmp_path, 4.0, monkeypatch, 3_000_000, step)
    errors = dict(zip((key.op for key in found.keys), found.self_variance, strict=True))
    assert errors["step"] == pytest.approx(0.5 + 1.5**2)
    assert errors["a"] == pytest.approx(0.25 + 3.0**2)


def test_times_that_are_no_estimates_of_windows_have_no_such_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = observed(tmp_path, 4.0, monkeypatch)
    assert found.self_variance.tolist() == [0.25, 0.25]


def test_a_process_cannot_state_its_own_waiting_or_that_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    read: list[int] = []
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: read.append(pid))
    writer = SegmentWriter(Process(pid=1, process_start=5), liveness=1)
    for name in (processor_time.USED, processor_time.WAITED):
        writer.metric(name, "", 10**12, 0)
    writer.write(tmp_path)
    found = Host([str(tmp_path)], consume=False).collect()
    assert found.cpu_wait_s == {}
    assert found.cpu_time_s == {}
    assert read == []


def test_an_idle_process_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its only thread runs, which alone can begin another one."""
    tmp_path.chmod(0o700)
    SegmentWriter().write(tmp_path)
    pid, kernel = os.getpid(), {"used": 1, "threads": 1}
    counts: list[int] = []

    def of_process(pid: int) -> ProcessStat:
        counts.append(pid)
        return ProcessStat(kernel["used"] * S, kernel["threads"])

    def threads(_: int, count: int) -> dict[int, ProcessorTime]:
        found = {pid: ProcessorTime(kernel["used"] * S)}
        return found if count == 1 else {**found, pid + 1: ProcessorTime(S)}

    monkeypatch.setattr(processor_time, "of_process", of_process)
    monkeypatch.setattr(processor_time, "of_threads", threads)
    host = Host([str(tmp_path)], consume=True)

    def cpu_s() -> float:
        return sum(host.collect().cpu_time_s.values())

    # The first reading counts before it reads the thread, which may begin another one in between.
    assert [cpu_s() for _ in range(4)] == [1.0] * 4
    assert len(counts) == 2
    kernel |= {"used": 2, "threads": 2}
    assert [cpu_s() for _ in range(3)] == [3.0] * 3
    assert len(counts) == 5
    kernel |= {"used": 4, "threads": 1}
    assert [cpu_s() for _ in range(4)] == [5.0] * 4
    assert len(counts) == 7


@pytest.mark.parametrize("name", [processor_time.USED, processor_time.WAITED])
def test_a_time_of_a_service_only_grows(name: str) -> None:
    times, held, key = OnlyGrowing(), {(name, "a"): 5}, (name, ("a", ""))
    # Another agent had counted 5 until its end; then a thread ends with a count that is lost.
    for now, wanted in ((3, 5), (4, 6), (2, 6), (7, 11)):
        measured = Counter({key: now})
        held = times.hold(measured, held)
        assert (held, measured[key]) == ({(name, "a"): wanted}, wanted)


def test_the_next_agent_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    SegmentWriter().write(tmp_path)
    waited = iter((5, 3, 4))
    monkeypatch.setattr(
        processor_time,
        "of_threads",
        lambda pid, _: {pid: ProcessorTime(10 * S * (seconds := next(waited)), S * seconds)},
    )
    for wanted in ((5.0,), (5.0, 6.0)):
        state = StateFile(str(tmp_path / "agent.state"))
        host = Host([str(tmp_path)], consume=True, state=state)
        for seconds in wanted:
            found = host.collect()
            assert [*found.cpu_wait_s.values()] == [seconds]
            assert [*found.cpu_time_s.values()] == [10 * seconds]
        host.close()


def test_waiting_stays_counted_when_a_process_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: {pid: ProcessorTime(S, S)})
    process = subprocess.Popen(["sleep", "1000"])
    start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    SegmentWriter(Process(pid=process.pid, process_start=int(start))).write(tmp_path)
    host = Host([str(tmp_path)], consume=True)
    assert sum(host.collect().cpu_wait_s.values()) == 1.0
    process.kill()
    process.wait()
    for _ in range(3):
        assert sum(host.collect().cpu_wait_s.values()) == 1.0
    assert not [*tmp_path.glob("*.seg")]


def test_a_process_with_two_segments_counts_its_time_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It called exec, or attached anew: the kernel's count goes on."""
    tmp_path.chmod(0o700)
    used = iter((5, 7, 9))
    monkeypatch.setattr(
        processor_time,
        "of_threads",
        lambda pid, _: {pid: ProcessorTime(10 * S * (seconds := next(used)), S * seconds)},
    )
    host = Host([str(tmp_path)], consume=True)
    first = SegmentWriter(Process(random_id=b"a" * 16))
    first.write(tmp_path)
    host.collect()
    SegmentWriter(Process(random_id=b"a" * 16), state=layout.CLOSED).write(tmp_path)
    SegmentWriter(Process(random_id=b"b" * 16)).write(tmp_path)
    for seconds in (7.0, 9.0):
        found = host.collect()
        assert sum(found.cpu_wait_s.values()) == seconds
        assert sum(found.cpu_time_s.values()) == 10 * seconds


def test_a_view_has_the_cpu_time_of_its_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators that no window met are in it, and in nothing else that a view shows."""
    tmp_path.chmod(0o700)
    used = iter((0, 5, 12))
    monkeypatch.setattr(
        processor_time, "of_threads", lambda pid, _: {pid: ProcessorTime(S * next(used))}
    )
    SegmentWriter().add([Range("a", 1.0, 2)]).write(tmp_path)
    host = Host([str(tmp_path)], consume=True)
    unknown, before, after = (host.collect() for _ in range(3))
    assert view(unknown, None, by_operator).cpu_s is None
    assert view(before, None, by_operator).cpu_s == 5.0
    assert view(after, before, by_operator).cpu_s == 7.0


def test_cpu_time_contains_threads_that_no_pass_has_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(processor_time, "of_process", OF_PROCESS)
    SegmentWriter().write(tmp_path)
    host = Host([str(tmp_path)], consume=True)
    host.collect()
    before = time.process_time()
    thread = threading.Thread(target=lambda: [None for _ in iter(is_due(before + 0.5), True)])
    thread.start()
    thread.join()
    own_s = time.process_time()
    # The kernel's ticks are of 10 ms.
    assert sum(host.collect().cpu_time_s.values()) >= own_s - 0.05
