"""A process is over once no process can write into its segment; its lock decides."""

import fcntl
import os
from pathlib import Path

import pytest

from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.segments import layout, liveness
from tests.segments.segment_writer import Process, Range, SegmentWriter

ADD = [Range("numpy::add", 1e-3, 5)]
OF_ANOTHER_NAMESPACE = Process(pid=7, process_start=1, pid_namespace=1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def collected(place: Path) -> Snapshot:
    return Host([str(place)], consume=True).collect()


def by_lock(process: Process | None = None) -> SegmentWriter:
    return SegmentWriter(process, liveness=layout.LIVENESS_LOCK).add(ADD)


def test_a_process_lives_as_long_as_its_lock_wherever_it_is(place: Path) -> None:
    writer = by_lock(OF_ANOTHER_NAMESPACE)
    path = writer.write(place)
    observer = Host([str(place)], consume=True)
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert observer.collect().process_count == 1
        writer.add(ADD).write(place)
        assert observer.collect().calls.sum() == 10
        assert path.exists()
    snapshot = observer.collect()
    assert (snapshot.calls.sum(), snapshot.process_count) == (10, 0)
    assert not path.exists()


def test_a_lock_that_is_gone_is_the_end_though_the_pid_is_there(place: Path) -> None:
    """The process is a zombie, or has called exec."""
    path = by_lock().write(place)
    snapshot = collected(place)
    assert (snapshot.calls.sum(), snapshot.process_count) == (5, 0)
    assert not path.exists()


def test_readers_at_the_same_time_do_not_take_each_other_for_the_process(place: Path) -> None:
    path = by_lock().write(place)
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert collected(place).process_count == 0


def test_without_a_known_lock_the_pid_decides(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    by_lock().write(place)
    by_lock(Process(process_start=1)).write(place)
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert collected(place).process_count == 1


def test_a_segment_of_another_boot_is_over_even_if_locked(place: Path) -> None:
    path = by_lock(Process(boot_id=b"another boot....")).write(place)
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert collected(place).process_count == 0


def test_a_boot_that_could_not_be_read_is_no_other_boot(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc is missing, or lacks /proc/sys, for the process or for the agent."""
    unknown = bytes(16)
    path = by_lock(Process(boot_id=unknown, pid_namespace=0, process_start=0)).write(place)
    lives = SegmentWriter(Process(boot_id=unknown)).add(ADD).write(place)
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert collected(place).process_count == 2
        monkeypatch.setattr(liveness, "here", lambda: liveness.Here(unknown, 0))
        assert collected(place).process_count == 2
    assert collected(place).process_count == 1
    assert (path.exists(), lives.exists()) == (False, True)


def test_unreadable_facts_of_this_boot_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    assert liveness.here() == (bytes(16), 0)


def test_a_bad_file_that_is_locked_stays(place: Path) -> None:
    path = place / Process(process_start=1).file_name
    path.write_bytes(b"garbage")
    os.utime(path, (1, 1))
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        collected(place)
        assert path.exists()
    collected(place)
    assert not path.exists()
