"""Reasons in the ledger: each is counted once, also over restarts, and none is kept for ever."""

import os
from pathlib import Path

import pytest

from opscope.host.host import Host
from opscope.host.state_file import StateFile
from tests.segments.segment_writer import start_of

NOW_S = 1_000_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "segments"
    directory.mkdir(mode=0o700)
    return directory


def agent(place: Path, *moments_s: int) -> Host:
    clock = iter(moments_s)
    return Host(
        [str(place)],
        consume=True,
        state=StateFile(str(place / "agent.state")),
        clock_ns=lambda: next(clock, NOW_S) * 10**9,
    )


def refuse(place: Path, start: int, code: str, at_s: int = 5) -> Path:
    path = place / f"{os.getpid()}-{start}.why"
    path.unlink(missing_ok=True)
    path.symlink_to(f"{at_s}:{code}:some text")
    return path


def test_entries_of_invisible_processes_stay_for_an_hour_up_to_a_limit(place: Path) -> None:
    """Their pids may belong to another namespace, whose own `opscope ps` lists them."""
    for number in range(250):
        refuse(place, number + 1, "denied", NOW_S - number)
    observer = agent(place, NOW_S, NOW_S, NOW_S + 3500, NOW_S + 4000)
    left = []
    for _ in range(4):
        assert observer.collect().attach_results == {("process", "denied"): 250}
        left.append(len(list(place.glob("*.why"))))
    assert left == [200, 200, 100, 0]


def test_a_living_process_that_says_something_else_has_said_both(place: Path) -> None:
    start = start_of("self")
    observer = agent(place)
    refuse(place, start, "denied")
    assert observer.collect().attach_results == {("process", "denied"): 1}
    refuse(place, start, "config")
    expected = {("process", "denied"): 1, ("process", "config"): 1}
    for _ in range(2):
        assert observer.collect().attach_results == expected
    observer.close()
    for _ in range(2):
        again = agent(place)
        assert again.collect().attach_results == expected
        again.close()


def test_codes_are_bounded(place: Path) -> None:
    for number in range(200):
        refuse(place, number + 1, f"code{number}")
    results = agent(place).collect().attach_results
    assert sum(results.values()) == 200
    assert 10 < len(results) < 70
    assert results["process", "other"] > 100


def test_one_from_the_future_is_not_kept_for_ever(place: Path) -> None:
    refuse(place, 1, "denied", NOW_S * 1000)
    agent(place).collect()
    assert list(place.glob("*.why")) == []
