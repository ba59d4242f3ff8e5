"""A process that counts nothing keeps its contribution; what time changes is still shown."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from opscope.host.host import Host
from opscope.host.processor_time import USED, WAITED, ProcessorTimes
from opscope.host.snapshot import Snapshot
from opscope.host.tracked_segment import TrackedSegment
from opscope.segments import layout
from tests.segments.segment_writer import Process, Range, SegmentWriter, start_of

ADD = Range("numpy::add", 1e-3, 5, self_s=1e-3)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that is not busy."""
    monkeypatch.setattr(ProcessorTimes, "waited_little", True)


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """For each file that is read as a whole, an entry."""
    done: list[str] = []
    taken = TrackedSegment.take

    def take(self: TrackedSegment, *arguments: object) -> None:
        done.append(self.service)
        taken(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TrackedSegment, "take", take)
    return done


def _writer(child: subprocess.Popen[bytes], **header: int) -> SegmentWriter:
    writer = SegmentWriter(Process(child.pid, start_of(child.pid)), **header)
    writer.add([ADD, Range("core::mm", 2.0)])
    writer.note("service.name", "training")
    writer.metric("opscope.model.queue_length", "m/1", 7, layout.METRIC_GAUGE)
    writer.variance("numpy::add", 4.0)
    return writer


def _facts(snapshot: Snapshot) -> dict[str, object]:
    return {
        "keys": snapshot.keys,
        "counters": snapshot.counters.tolist(),
        "buckets": snapshot.buckets.tolist(),
        "variances": snapshot.variances.tolist(),
        "phases": snapshot.phase_variances,
        "processes": snapshot.processes,
        "health": snapshot.health,
        "usage": snapshot.usage,
        "attached": snapshot.attach_results,
        # The kernel counts on.
        "measures": {
            name: value for name, value in snapshot.measures.items() if name not in (USED, WAITED)
        },
    }


def test_an_unchanged_file_is_read_as_a_whole_twice_only(
    place: Path, child: subprocess.Popen[bytes], whole_reads: list[str]
) -> None:
    writer = _writer(child)
    writer.write(place)
    host = Host([str(place)], consume=True)
    found = [_facts(host.collect()) for _ in range(5)]
    assert all(one == found[0] for one in found)
    assert len(whole_reads) == 2
    writer.add([ADD]).write(place)
    assert host.collect().calls.sum() == 11
    assert len(whole_reads) == 3


def test_what_its_header_counts_meanwhile_is_shown(
    place: Path, child: subprocess.Popen[bytes], whole_reads: list[str]
) -> None:
    """An idle process goes on to open windows, and they cost something."""
    writer = _writer(child, window_ns=2_000_000, period_ns=250_000_000)
    writer.write(place)
    host = Host([str(place)], consume=True)
    for passes in range(1, 6):
        writer.header.update(
            window_thread_ns=passes * 1_000_000,
            window_count=passes,
            window_end_ticks=10**12 * passes,
            overhead_ppb=passes,
            dropped_count=passes,
        )
        writer.write(place)
        found = _facts(host.collect())
        assert found == _facts(Host([str(place)], consume=False).collect())
    assert len(whole_reads) == 2 + 5
    health = host.collect().health
    assert (health.dropped, health.overhead_ns) == (5, 5_000_000)


def test_its_end_is_noticed(place: Path, child: subprocess.Popen[bytes]) -> None:
    path = _writer(child).write(place)
    host = Host([str(place)], consume=True)
    for _ in range(3):
        assert host.collect().processes[0].is_alive
    assert child.stdin is not None
    child.stdin.close()
    child.wait()
    assert host.collect().calls.sum() == 6
    assert not path.exists()
    assert host.collect().calls.sum() == 6


def test_a_row_that_waits_for_a_series_gets_it(place: Path, child: subprocess.Popen[bytes]) -> None:
    """Though its process counts nothing."""
    now_ns = 1_700_000_000_000_000_000
    ended = SegmentWriter(Process(process_start=1), created_unix_ns=now_ns)
    ended.add(Range(f"numpy::old{number}", 1.0) for number in range(20)).write(place)
    host = Host(
        [str(place)],
        consume=True,
        max_series=16,
        series_idle_s=30.0,
        clock_ns=lambda: now_ns,
        exported=lambda since_ns: since_ns,
    )
    host.collect()
    writer = SegmentWriter(Process(child.pid, start_of(child.pid)), created_unix_ns=now_ns)
    writer.add(Range(f"core::new{number}", 1.0) for number in range(8)).write(place)
    waiting = []
    for _ in range(12):
        snapshot = host.collect()
        assert snapshot.calls.sum() == 28
        waiting.append(8 - sum(key.op.startswith("core::new") for key in snapshot.keys))
        now_ns += 10**10
    assert waiting[0] > 0
    assert waiting[-1] == 0


def test_with_time_kept_back_it_is_read_as_a_whole(
    place: Path, child: subprocess.Popen[bytes], whole_reads: list[str]
) -> None:
    """What was not possible yet becomes possible as time passes."""
    start = 10**12
    header = {"window_ns": 2_000_000, "period_ns": 250_000_000, "anchor_ticks": start}
    writer = SegmentWriter(Process(child.pid, start_of(child.pid)), **header)
    writer.add([Range("core::mm", 2.0, self_s=2.0, weight=5.0)])
    host = Host([str(place)], consume=True)
    shown = []
    for seconds in (1, 2, 4, 8, 16, 32, 64):
        writer.header["window_end_ticks"] = start + seconds * 10**9
        writer.write(place)
        shown.append(float(host.collect().self_s.sum()))
    assert shown == pytest.approx([1, 2, 4, 8, 10, 10, 10])
    assert len(whole_reads) == 6


def test_after_waiting_for_a_processor_it_is_read_as_a_whole(
    place: Path,
    child: subprocess.Popen[bytes],
    whole_reads: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The waiting is an error of what windows estimate."""
    _writer(child, window_ns=2_000_000, period_ns=250_000_000).write(place)
    host = Host([str(place)], consume=True)
    for _ in range(3):
        host.collect()
    monkeypatch.setattr(ProcessorTimes, "waited_little", False)
    for _ in range(3):
        host.collect()
    assert len(whole_reads) == 2 + 3
    assert np.isfinite(host.collect().variances).all()
