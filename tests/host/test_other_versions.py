"""Segments of another version stay for their processes and its agent, up to a bound."""

import os
import time
from pathlib import Path

import pytest

from opscope.host import segment_directory
from opscope.host.host import Host
from opscope.host.state_file import NAME, StateFile
from opscope.segments import layout
from tests.segments.segment_writer import Process, Range, SegmentWriter

ADD = [Range("numpy::add", 1e-3, 5)]
NEWER = layout.VERSION + 1


def agent(place: Path) -> Host:
    return Host([str(place)], consume=True, state=StateFile(str(place / NAME)))


def newer(place: Path, number: int | None, age_s: float = 3600) -> Path:
    """A segment of the next version; of this process, or of one that has ended."""
    process = Process() if number is None else Process(process_start=1 + number)
    path = SegmentWriter(process, version=NEWER).add(ADD).write(place)
    then = time.time() - age_s - (number or 0)
    os.utime(path, (then, then))
    return path


def test_the_segment_of_a_live_process_is_left_alone(place: Path) -> None:
    path = newer(place, None)
    observer = agent(place)
    snapshot = observer.collect()
    assert path.exists()
    assert snapshot.bad_segments == {("version",): 1}
    assert (snapshot.own.files_parked, snapshot.own.files_discarded) == (0, 0)
    assert observer.warnings() == []


def test_that_of_an_ended_process_waits_for_its_agent_and_is_counted(place: Path) -> None:
    paths = [newer(place, number) for number in range(3)]
    for _ in range(2):  # a restart changes nothing
        observer = agent(place)
        for _ in range(3):
            snapshot = observer.collect()
            observer.sweep()
            assert snapshot.own.files_parked == 3
            assert all(path.exists() for path in paths)
        (warning,) = observer.warnings()
        assert warning.startswith("3 segments of ended processes have another version")
        observer.close()


def test_the_agent_of_its_version_takes_it_in(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = newer(place, 0)
    observer = agent(place)
    observer.collect()
    observer.close()
    monkeypatch.setattr(layout, "VERSION", NEWER)
    snapshot = agent(place).collect()
    assert snapshot.calls.sum() == 5
    assert not path.exists()


def test_beyond_the_bound_the_oldest_go_and_are_counted(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_directory, "_PARKED_FILES", 4)
    paths = [newer(place, number) for number in range(7)]
    observer = agent(place)
    snapshot = observer.collect()
    # A higher number means older.
    assert [path.exists() for path in paths] == [True] * 4 + [False] * 3
    assert (snapshot.own.files_parked, snapshot.own.files_discarded) == (4, 3)
    paths[0].unlink()
    assert observer.collect().own.files_parked == 3


def test_the_bound_is_of_bytes_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [newer(place, number) for number in range(7)]
    one = 512 * paths[0].stat().st_blocks
    monkeypatch.setattr(segment_directory, "_PARKED_BYTES", 2 * one)
    snapshot = agent(place).collect()
    assert [path.exists() for path in paths] == [True] * 2 + [False] * 5
    assert snapshot.own.files_discarded == 5
