"""Metrics that processes count themselves, summed over a host."""

from pathlib import Path

from opscope.host.host import Host
from opscope.host.processor_time import USED, WAITED
from opscope.host.snapshot import Snapshot
from opscope.segments import layout
from tests.segments.segment_writer import Process, SegmentWriter

ALLOCATED, LIVE, PEAK = (f"opscope.memory.{name}" for name in ("allocated", "live", "peak"))


def writer_of(process: Process, memory: tuple[int, int, int], label: str = "cpu") -> SegmentWriter:
    writer = SegmentWriter(process)
    writer.note("service.name", "training")
    writer.metric(ALLOCATED, label, memory[0], layout.METRIC_COUNTER)
    writer.metric(LIVE, label, memory[1], layout.METRIC_GAUGE)
    writer.metric(PEAK, label, memory[2], layout.METRIC_PEAK)
    return writer


def memory(snapshot: Snapshot, label: str = "cpu") -> tuple[int | None, ...]:
    key = ("training", label)
    return (
        snapshot.memory_allocated.get(key),
        snapshot.memory_live.get(key),
        snapshot.memory_peak.get(key),
    )


def test_counters_and_gauges_add_up_and_of_peaks_the_largest_counts(place: Path) -> None:
    for process, of_process in ((Process(), (10, 1, 7)), (Process(), (20, 2, 5))):
        writer_of(process, of_process).write(place)
    writer_of(Process(), (1, 1, 1), "caching").write(place)
    snapshot = Host([str(place)], consume=True).collect()
    assert memory(snapshot) == (30, 3, 7)
    assert memory(snapshot, "caching") == (1, 1, 1)


def test_of_a_dead_process_only_counters_stay(place: Path) -> None:
    writer_of(Process(process_start=1), (10, 4, 8)).write(place)
    writer_of(Process(), (1, 2, 3)).write(place)
    host = Host([str(place)], consume=True)
    for _ in range(3):  # when it is first seen dead, when its file is removed, and later
        assert memory(host.collect()) == (11, 2, 3)


def test_values_are_those_of_now(place: Path) -> None:
    process = Process()
    host = Host([str(place)], consume=True)
    for of_process in ((1, 1, 1), (5, 4, 4), (6, 1, 4)):
        writer_of(process, of_process).write(place)
        assert memory(host.collect()) == of_process


def test_a_gauge_below_zero_is_zero(place: Path) -> None:
    writer_of(Process(), (1, 2**64 - 8, 3)).write(place)
    assert memory(Host([str(place)], consume=False).collect()) == (1, 0, 3)


def test_a_counter_beyond_all_measure_is_damage(place: Path) -> None:
    writer_of(Process(), (2**63, 1, 1)).write(place)
    assert Host([str(place)], consume=False).collect().bad_segments == {("corrupt",): 1}


def test_a_value_without_a_name_is_damage(place: Path) -> None:
    writer = writer_of(Process(), (1, 1, 1))
    writer._metrics["unnamed", "x"] = 1
    writer.write(place)
    assert Host([str(place)], consume=False).collect().bad_segments == {("corrupt",): 1}


def test_names_that_are_not_in_the_table_are_left_out(place: Path) -> None:
    writer = SegmentWriter()
    writer.metric("somebody.elses", "x", 1, layout.METRIC_COUNTER)
    writer.write(place)
    measures = Host([str(place)], consume=False).collect().measures
    assert measures.keys() <= {USED, WAITED}  # which the agent counts itself


def test_labels_beyond_the_limit_are_one(place: Path) -> None:
    for number in range(2):
        writer = SegmentWriter(Process())
        for label in range(200):
            writer.metric(ALLOCATED, f"{number}-{label}", 1, layout.METRIC_COUNTER)
        writer.write(place)
    allocated = Host([str(place)], consume=False).collect().memory_allocated
    assert len(allocated) == 257
    assert sum(allocated.values()) == 400
    assert allocated["other", "other"] == 400 - 256
