"""Many short processes, each with new names, leave nothing behind.

10,000 processes; OPSCOPE_TEST_CHURN changes the number, to 100,000 in `make soak`.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from opscope.bench import segment_directory
from opscope.host import self_metrics
from opscope.host.host import Host
from opscope.host.state_file import StateFile
from opscope.segments import layout
from tests.segments.segment_writer import Process, Range, SegmentWriter

PROCESSES, BATCH = int(os.environ.get("OPSCOPE_TEST_CHURN", "10000")), 500
FULL = 22_000
"""After that many, memory no longer grows at all; before, bounded tables fill: 8 MiB in all."""
NUMBER = "00000000"


@pytest.fixture
def place() -> Iterator[Path]:
    with segment_directory() as directory:
        yield Path(directory)


class Short:
    """Segments of short processes, all different and made fast: by number, out of one."""

    def __init__(self) -> None:
        self._process = Process(0x7777777, 0x33333333, random_id=b"RANDOMID" * 2)
        writer = SegmentWriter(self._process, liveness=layout.LIVENESS_LOCK, created_unix_ns=1)
        writer.notes({"service.name": f"service{NUMBER}", f"bridge.b{NUMBER}": "attached"})
        writer.usage(f"api{NUMBER}")
        writer.metric("opscope.memory.allocated", f"pool{NUMBER}", 7, layout.METRIC_COUNTER)
        labels = (("model_id", f"model{NUMBER}"),)
        writer.add([Range("numpy::add", 1e-3, 2), Range(f"own::{NUMBER}", 1e-3, 1, labels=labels)])
        self._raw = writer.to_bytes()

    def write(self, place: Path, number: int) -> None:
        random = number.to_bytes(8, "little")
        process = Process(number % 30_000 + 2, number + 1, random_id=random + bytes(8))
        raw = self._raw.replace(NUMBER.encode(), f"{number:08}".encode())
        for old, new in (
            (self._process.random_id, process.random_id),
            (self._process.pid.to_bytes(8, "little"), process.pid.to_bytes(8, "little")),
            ((0x33333333).to_bytes(8, "little"), process.process_start.to_bytes(8, "little")),
        ):
            raw = raw.replace(old, new, 1)
        fd = os.open(place / process.file_name, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, raw)
        os.close(fd)


@pytest.mark.slow
def test_short_processes_leave_neither_files_nor_memory(place: Path) -> None:
    host = Host([str(place)], consume=True, state=StateFile(str(place / "agent.state")))
    host.collect()
    short = Short()
    held: list[int] = []
    descriptors = len(os.listdir("/proc/self/fd"))
    for first in range(0, PROCESSES, BATCH):
        for number in range(first, first + BATCH):
            short.write(place, number)
        # Mostly the cheap pass, as in the second between two scrapes.
        while host.sweep():
            pass
        if first % (10 * BATCH) == 0:
            host.collect()
        assert len(os.listdir(place)) < 40
        if first >= PROCESSES // 2:
            gc.collect()
            held.append(self_metrics.memory_bytes())
    snapshot = host.collect()
    # Threads of earlier tests may close some meanwhile.
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    host.close()
    assert snapshot.calls.sum() == 3 * PROCESSES
    assert snapshot.health.samples == 3 * PROCESSES
    assert len(snapshot.keys) == 2001
    assert snapshot.series_folded > PROCESSES
    assert len(snapshot.usage) == 1001
    assert sum(snapshot.memory_allocated.values()) == 7 * PROCESSES
    assert len(snapshot.memory_allocated) == 257
    assert len(snapshot.attach_results) < 100
    # Other programs of this host may have left reasons meanwhile.
    results = snapshot.attach_results.items()
    assert sum(count for (_, result), count in results if result == "attached") == 2 * PROCESSES
    assert snapshot.processes == ()
    assert os.listdir(place) == ["agent.state"]
    # A process that stayed would take several KiB.
    grown = median(held[-3:]) - median(held[:3])
    assert grown < (2 << 20 if PROCESSES // 2 > FULL else 8 << 20), [one >> 10 for one in held]


def test_a_sweep_reads_nothing_if_few_files_have_appeared(place: Path) -> None:
    host = Host([str(place)], consume=True)
    host.collect()
    short = Short()
    for number in range(31):
        short.write(place, number)
    assert host.sweep() == 0
    short.write(place, 31)
    assert host.sweep() == 32
    assert host.collect().calls.sum() == 3 * 32


def test_a_sweep_that_runs_out_of_time_goes_on_with_the_next(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host([str(place)], consume=True)
    host.collect()
    short = Short()
    for number in range(40):
        short.write(place, number)
    monkeypatch.setattr("opscope.host.budgets.SECONDS", -1.0)
    assert [host.sweep() for _ in range(41)] == [1] * 40 + [0]
    assert list(place.iterdir()) == []


def test_a_sweep_leaves_the_living_alone(place: Path) -> None:
    host = Host([str(place)], consume=True)
    host.collect()
    living = [SegmentWriter().add([Range("a", 1e-3)]).write(place) for _ in range(40)]
    short = Short()
    for number in range(40):
        short.write(place, number)
    assert host.sweep() == 40
    assert sorted(place.iterdir()) == sorted(living)
    assert host.collect().process_count == 1
