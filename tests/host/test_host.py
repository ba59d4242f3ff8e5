"""Totals over passes equal what the processes did, even if some die, vanish or break meanwhile."""

import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.attachment import ledger
from opscope.host.host import Host
from opscope.host.snapshot import SELF_NS, Snapshot
from tests.examples import examples
from tests.segments.segment_writer import (
    TICKS_PER_SECOND,
    Process,
    Range,
    SegmentWriter,
    start_of,
)

ANOTHER_BOOT = b"another boot....."[:16]
ADD = [Range("numpy::add", 1e-3, 5, self_s=1e-3)]


def process_of(child: subprocess.Popen[bytes]) -> Process:
    return Process(child.pid, start_of(child.pid))


def dead_process(number: int = 0) -> Process:
    """Of this boot, with the pid of this process but another start time."""
    return Process(process_start=1 + number)


def host(place: Path, *, consume: bool = True, **options: object) -> Host:
    return Host([str(place)], consume=consume, **options)  # type: ignore[arg-type]


def calls(snapshot: Snapshot) -> dict[str, float]:
    found: Counter[str] = Counter()
    for key, value in zip(snapshot.keys, snapshot.calls.tolist(), strict=True):
        found[key.op] += value
    return dict(found)


def test_live_processes_of_a_service_are_summed(place: Path) -> None:
    for _ in range(3):
        writer = SegmentWriter().add([*ADD, Range("core::mm", 1.0)])
        writer.note("service.name", "training")
        writer.write(place)
    snapshot = host(place).collect()
    assert calls(snapshot) == {"numpy::add": 15, "core::mm": 3}
    assert {(key.service, key.framework) for key in snapshot.keys} == {
        ("training", "numpy"),
        ("training", "opscope"),
    }
    assert len(list(place.iterdir())) == 3


def test_repeated_passes_count_nothing_twice(place: Path) -> None:
    writer = SegmentWriter().add(ADD)
    writer.write(place)
    SegmentWriter(dead_process()).add(ADD).write(place)
    observer = host(place)
    for _ in range(3):
        assert calls(observer.collect()) == {"numpy::add": 10}
    writer.add(ADD).write(place)
    assert calls(observer.collect()) == {"numpy::add": 15}


def test_a_dead_process_stays_counted_and_its_file_goes(
    place: Path, child: subprocess.Popen[bytes]
) -> None:
    path = SegmentWriter(process_of(child)).add(ADD).write(place)
    observer = host(place)
    observer.collect()
    assert path.exists()
    SegmentWriter(process_of(child)).add(ADD)
    assert child.stdin is not None
    child.stdin.close()
    child.wait()
    for _ in range(2):
        assert calls(observer.collect()) == {"numpy::add": 5}
        assert not path.exists()


def test_counts_after_the_last_pass_are_not_lost(place: Path) -> None:
    writer = SegmentWriter().add(ADD)
    path = writer.write(place)
    observer = host(place)
    observer.collect()
    writer.header["state"] = 2
    writer.add(ADD).write(place)
    assert calls(observer.collect()) == {"numpy::add": 10}
    assert not path.exists()


def test_a_process_of_another_boot_is_dead(place: Path) -> None:
    path = SegmentWriter(Process(boot_id=ANOTHER_BOOT)).add(ADD).write(place)
    snapshot = host(place).collect()
    assert calls(snapshot) == {"numpy::add": 5}
    assert snapshot.process_count == 0
    assert not path.exists()


def test_a_process_of_another_pid_namespace_is_taken_to_be_alive(place: Path) -> None:
    path = SegmentWriter(Process(pid=7, process_start=1, pid_namespace=1)).add(ADD).write(place)
    assert host(place).collect().process_count == 1
    assert path.exists()


def test_a_row_stays_in_the_series_it_got_first(place: Path) -> None:
    """Even if other series of its process are new, and there may be space now."""
    writer = SegmentWriter().add([Range("a", 1e-3), Range("b", 1e-3)])
    writer.write(place)
    observer = host(place, max_series=1)
    assert calls(observer.collect()) == {"a": 1, "other": 1}
    observer._state.tables.series.limit = 10
    writer.add([Range("c", 1e-3)]).write(place)
    assert calls(observer.collect()) == {"a": 1, "other": 1, "c": 1}


def test_a_service_that_was_said_stays_and_one_that_was_not_may_come(place: Path) -> None:
    writer = SegmentWriter().add(ADD)
    writer.note("program", "x.py")
    writer.write(place)
    observer = host(place)
    assert {key.service for key in observer.collect().keys} == {"x.py"}
    for name in ("first", "second"):
        writer.note("service.name", name)
        writer.write(place)
        snapshot = observer.collect()
        assert [
            (key.service, value)
            for key, value in zip(snapshot.keys, snapshot.calls.tolist(), strict=True)
        ] == [("x.py", 0.0), ("first", 5.0)]


def test_a_reader_without_consume_removes_nothing(place: Path) -> None:
    path = SegmentWriter(dead_process()).add(ADD).write(place)
    observer = host(place, consume=False)
    for _ in range(2):
        snapshot = observer.collect()
        assert calls(snapshot) == {"numpy::add": 5}
        assert [process.is_alive for process in snapshot.processes] == [False]
    assert path.exists()


def test_a_file_that_vanishes_stays_counted(place: Path) -> None:
    path = SegmentWriter().add(ADD).write(place)
    observer = host(place, consume=False)
    observer.collect()
    path.unlink()
    snapshot = observer.collect()
    assert calls(snapshot) == {"numpy::add": 5}
    assert snapshot.processes == ()
    assert snapshot.bad_segments == {}


def test_a_directory_that_vanishes_stays_counted(place: Path) -> None:
    inner = place / "segments"
    inner.mkdir(mode=0o700)
    path = SegmentWriter().add(ADD).write(inner)
    observer = host(inner)
    observer.collect()
    path.unlink()
    inner.rmdir()
    assert calls(observer.collect()) == {"numpy::add": 5}


def test_a_dead_file_that_cannot_be_removed_is_counted_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    SegmentWriter(dead_process()).add(ADD).write(place)
    observer = host(place)
    for _ in range(3):
        assert calls(observer.collect()) == {"numpy::add": 5}


def test_bad_files_are_counted_once_by_reason_and_the_rest_is_exported(place: Path) -> None:
    SegmentWriter().add(ADD).write(place)
    (place / Process().file_name).write_bytes(b"")
    (place / Process().file_name).write_bytes(os.urandom(70_000))
    (place / Process().file_name).write_bytes(SegmentWriter().to_bytes()[:100])
    SegmentWriter(version=9).write(place)
    observer = host(place)
    for _ in range(2):
        snapshot = observer.collect()
        assert calls(snapshot) == {"numpy::add": 5}
        assert snapshot.bad_segments == {
            ("empty",): 1,
            ("magic",): 1,
            ("truncated",): 1,
            ("version",): 1,
        }
    assert len(list(place.iterdir())) == 5


def test_a_file_that_becomes_damaged_keeps_its_counts(place: Path) -> None:
    path = SegmentWriter().add(ADD).write(place)
    observer = host(place)
    observer.collect()
    path.write_bytes(b"garbage")
    snapshot = observer.collect()
    assert calls(snapshot) == {"numpy::add": 5}
    assert snapshot.bad_segments == {("truncated",): 1}


def test_a_bad_file_goes_only_when_old_and_its_process_is_dead(place: Path) -> None:
    dead, alive = place / dead_process().file_name, place / Process().file_name
    for path in (dead, alive):
        path.write_bytes(b"garbage")
    now_ns = time.time_ns()
    clock = iter([now_ns, now_ns + 10**12])
    observer = host(place, clock_ns=lambda: next(clock))
    observer.collect()
    assert dead.exists()
    observer.collect()
    assert not dead.exists()
    assert alive.exists()


def test_a_file_left_half_made_is_no_bad_one_and_goes_in_time(place: Path) -> None:
    path = place / f".{dead_process().file_name}"
    path.write_bytes(b"")
    now_ns = time.time_ns()
    clock = iter([now_ns, now_ns + 10**12])
    observer = host(place, clock_ns=lambda: next(clock))
    assert observer.collect().bad_segments == {}
    assert path.exists()
    assert observer.collect().bad_segments == {}
    assert not path.exists()


def test_a_header_of_another_process_than_the_name_says_is_refused(place: Path) -> None:
    raw = SegmentWriter(Process()).add(ADD).to_bytes()
    (place / Process().file_name).write_bytes(raw)
    assert host(place).collect().bad_segments == {("identity",): 1}


def test_a_directory_that_others_may_write_is_not_trusted(place: Path) -> None:
    SegmentWriter().add(ADD).write(place)
    place.chmod(0o777)
    snapshot = host(place).collect()
    assert snapshot.keys == ()
    assert snapshot.bad_segments == {("owner",): 1}


def test_a_directory_named_for_another_user_is_not_trusted(place: Path) -> None:
    other = place / f"opscope-{os.geteuid() + 1}"
    other.mkdir(mode=0o700)
    SegmentWriter().add(ADD).write(other)
    assert host(other).collect().bad_segments == {("owner",): 1}


def test_series_beyond_the_limit_are_summed_up_as_other(place: Path) -> None:
    writer = SegmentWriter().add(Range(f"op{n}", 1e-3) for n in range(10))
    writer.write(place)
    observer = host(place, max_series=4)
    for _ in range(2):
        snapshot = observer.collect()
        assert len(snapshot.keys) == 5
        assert calls(snapshot)["other"] == 6
        assert snapshot.calls.sum() == 10
        assert snapshot.buckets.sum() == 10 << 16
        assert snapshot.series_folded == 6


def test_self_time_is_estimated_from_where_it_is_known(place: Path) -> None:
    SegmentWriter().add(
        [Range("half", 2e-3, 10, self_s=1e-3), Range("half", 2e-3, 10), Range("none", 1.0)]
    ).write(place)
    snapshot = host(place).collect()
    by_op = dict(zip((key.op for key in snapshot.keys), snapshot.self_s.tolist(), strict=True))
    assert by_op["half"] == pytest.approx(20e-3)
    assert np.isnan(by_op["none"])


def test_self_time_is_unknown_where_one_process_does_not_know_it(place: Path) -> None:
    SegmentWriter().add(ADD).write(place)
    SegmentWriter().add([Range("numpy::add", 1.0)]).write(place)
    assert np.isnan(host(place).collect().self_s[0])


def test_self_time_never_steps_back(place: Path) -> None:
    writer = SegmentWriter().add([Range("a", 1.0, 1, self_s=0.9), Range("a", 1.0, 9)])
    writer.write(place)
    observer = host(place)
    before = observer.collect().counters[0, SELF_NS]
    writer.add([Range("a", 0.1, 9, self_s=0.0)]).write(place)
    assert observer.collect().counters[0, SELF_NS] >= before


def test_a_thread_never_has_more_time_than_passed(place: Path) -> None:
    windows: dict[str, Any] = {"window_ns": 2_000_000, "period_ns": 250_000_000, "anchor_ticks": 1}
    writer = SegmentWriter(**windows, window_end_ticks=TICKS_PER_SECOND)
    # In a window the thread was stopped for 50 ms.
    writer.add([Range("a", 0.05, weight=80.0, self_s=0.05)]).write(place)
    observer = host(place)
    assert observer.collect().self_s.tolist() == [pytest.approx(1.0)]
    writer.header["window_end_ticks"] = 3 * TICKS_PER_SECOND
    writer.write(place)
    assert observer.collect().self_s.tolist() == [pytest.approx(3.0)]


def test_a_process_has_series_of_its_own_where_asked_for(place: Path) -> None:
    SegmentWriter().add(ADD).write(place)
    SegmentWriter(Process(1, start_of(1))).add(ADD).write(place)
    snapshot = host(place, by_process=True).collect()
    assert {key.process for key in snapshot.keys} == {1, os.getpid()}
    assert calls(host(place, pids={1}).collect()) == {"numpy::add": 5}


def test_usage_and_attach_results_count_processes(place: Path) -> None:
    for outcome in ("attached", "numpy 0.1 is not known"):
        writer = SegmentWriter()
        writer.usage("core.linalg")
        writer.note("bridge.numpy", outcome)
        writer.write(place)
    (place / f"{os.getpid()}-{start_of('self')}.why").symlink_to("5:denied:a compiler")
    observer = host(place)
    for _ in range(2):
        snapshot = observer.collect()
        assert snapshot.usage == {("core.linalg", "unknown"): 2}
        assert snapshot.attach_results == {
            ("process", "attached"): 2,
            ("numpy", "attached"): 1,
            ("numpy", "refused"): 1,
            ("process", "denied"): 1,
        }


def test_a_reason_is_forgotten_with_its_process_but_stays_counted(place: Path) -> None:
    (place / f"{os.getpid()}-1.why").symlink_to("5:denied:a compiler")
    observer = host(place)
    for _ in range(2):
        assert observer.collect().attach_results == {("process", "denied"): 1}
    assert ledger.read_all([str(place)]) == []


EVENTS = st.lists(
    st.tuples(st.sampled_from(["work", "start", "end", "vanish", "break"]), st.integers(0, 50)),
    max_size=25,
)


@settings(
    examples(15),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(EVENTS)
def test_totals_equal_the_truth_over_any_course_of_events(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, int]]
) -> None:
    place = tmp_path_factory.mktemp("segments")
    observer = host(place)
    truth: Counter[str] = Counter()
    live: list[SegmentWriter] = []
    before: dict[str, float] = {}
    for event, number in events:
        writer = live[number % len(live)] if live else None
        if event == "start":
            live.append(SegmentWriter())
        elif writer is None:
            continue
        elif event == "work":
            op = f"op{number % 3}"
            writer.add([Range(op, 1e-4 * (number + 1), number + 1, 1.5, table=number % 2)])
            truth[op] += round((number + 1) * 1.5 * 65536)
            writer.write(place)
        elif event == "end":
            writer.header["state"] = 2
            writer.write(place)
            live.remove(writer)
        else:
            observer.collect()
            path = place / writer.process.file_name
            path.unlink(missing_ok=True)
            if event == "break":
                path.write_bytes(b"garbage")
            live.remove(writer)
        after = calls(observer.collect())
        assert all(after[op] >= before[op] for op in before)
        before = after
    found = calls(observer.collect())
    assert {op: round(value * 65536) for op, value in found.items()} == dict(truth)
