"""Living processes give series up to who has fewer; no count is lost, told twice, or decreases."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from opscope.host.division import Owner, filled, targets
from opscope.host.series_table import SeriesTable
from opscope.host.snapshot import OTHER, SeriesKey, Snapshot
from opscope.host.state import decode
from tests.host.test_retirement import START_NS, Agent, Follower, calls
from tests.segments.segment_writer import Process, Range, SegmentWriter, start_of

LIMIT = 200
OWN_LIMIT = SeriesTable(LIMIT).own_limit
PART = OWN_LIMIT // 3
"""Of two users who want more, each gets a third; a third stays free."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    tmp_path.chmod(0o700)
    yield tmp_path
    for program in Program.all:
        program.end()
    Program.all.clear()


class Program:
    """A live process of a user, with one service."""

    all: ClassVar[list[Program]] = []

    def __init__(self, place: Path, service: str, user: int) -> None:
        self.service, self.user = service, user
        self.calls: Counter[str] = Counter()
        self._place = place
        self._child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pid = self._child.pid
        process = Process(pid, start_of(pid))
        self._writer = SegmentWriter(process, created_unix_ns=START_NS, uid=user)
        self._writer.note("service.name", service)
        self.all.append(self)

    def run(self, *ops: int, count: int = 1) -> None:
        """Runs these operators; each takes 2 ms, half of it in itself."""
        self._writer.add([Range(f"op{n}", 2e-3, count, self_s=1e-3) for n in ops])
        self.calls.update({f"op{n}": count for n in ops})
        path = self._writer.write(self._place)
        os.chown(path, self.user, -1)

    def end(self) -> None:
        if self._child.poll() is None:
            self._child.communicate()


class Watched:
    """An agent; every snapshot is checked against what the programs ran."""

    def __init__(self, place: Path, programs: list[Program], max_series: int = LIMIT) -> None:
        self.agent = Agent(place, max_series)
        self._programs = programs
        self._follower = Follower()
        self.found: Snapshot

    def after(self, seconds: float = 10) -> Snapshot:
        snapshot = self.agent.after(seconds)
        self._follower.take(snapshot)
        truth = sum(sum(one.calls.values()) for one in self._programs)
        assert snapshot.calls.sum() == truth
        assert snapshot.buckets.sum() >> 16 == truth
        assert np.isclose(snapshot.total_s.sum(), 2e-3 * truth)
        assert np.isclose(np.nansum(snapshot.self_s), 1e-3 * truth)
        assert self._follower.increase + self._follower.counted == truth
        self.found = snapshot
        return snapshot


def own(snapshot: Snapshot, service: str) -> dict[str, float]:
    """The calls of the service's operators that have series of their own."""
    found = calls(snapshot).items()
    return {key.op: n for key, n in found if key.service == service and key.op != "other"}


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes files of other users")


def shared(place: Path) -> Path:
    """A directory that all users write to, as the one that root prepares."""
    place.chmod(0o1777)
    return place


def test_a_late_user_gets_as_much_as_the_first_one(place: Path) -> None:
    first, late = Program(shared(place), "first", 1001), Program(place, "late", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    assert len(own(watched.after(), "first")) > 2 * PART
    late.run(*range(400))
    watched.after()
    for _ in range(4):
        first.run(*range(400))
        late.run(*range(400))
        watched.after()
    found = watched.found
    assert {len(own(found, name)) for name in ("first", "late")} <= {PART, PART + 1}
    assert found.own.limited["1001", "series"] > 0


def test_those_that_have_not_moved_go_first_and_then_the_smallest(place: Path) -> None:
    first, late = Program(shared(place), "first", 1001), Program(place, "late", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(140))
    first.run(*range(20), count=9)
    watched.after()
    first.run(*range(10, 60))
    watched.after()
    late.run(*range(400))
    watched.after()
    first.run(139)
    watched.after()
    found = own(watched.after(), "first")
    assert len(found) == PART
    assert set(found) >= {f"op{n}" for n in range(10, 60)}
    # Of those that stood still, the larger ones.
    assert "op0" not in found or "op100" not in found


def test_only_as_much_is_taken_as_is_needed(place: Path) -> None:
    first, late = Program(shared(place), "first", 1001), Program(place, "late", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    before = len(own(watched.after(), "first"))
    late.run(*range(30))
    for _ in range(4):
        watched.after()
        late.run(0)
    found = watched.found
    assert len(own(found, "late")) == 30
    assert PART < len(own(found, "first")) < before


def test_a_late_service_of_one_user_gets_half(place: Path) -> None:
    first, late = Program(place, "first", 0), Program(place, "late", 0)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    watched.after()
    late.run(*range(400))
    for _ in range(5):
        watched.after()
        late.run(*range(400))
    found = watched.found
    shares = [len(own(found, name)) for name in ("first", "late")]
    assert max(shares) - min(shares) <= 2
    assert sum(shares) > 0.8 * OWN_LIMIT


def test_what_was_folded_stays_folded_and_counts_once(place: Path) -> None:
    first, late = Program(shared(place), "first", 1001), Program(place, "late", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    watched.after()
    late.run(*range(400))
    watched.after()
    shown = []
    for turn in range(12):
        first.run(*range(400), count=turn + 1)
        late.run(*range(400))
        shown.append(set(calls(watched.after(100))) - {OTHER})
    # Retired series get a new time whenever more are retired.
    assert shown[4] == shown[-1]
    agent = watched.agent
    retired = agent.after(1).series_retired
    first.run(*range(400))
    assert agent.after(1).series_retired == retired


def test_nothing_is_taken_before_it_is_exported(place: Path) -> None:
    first, late = Program(shared(place), "first", 1001), Program(place, "late", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    before = own(watched.after(), "first")
    watched.agent.is_exporting = False
    late.run(*range(400))
    for _ in range(3):
        first.run(*range(400))
        found = own(watched.after(), "first")
        assert set(found) == set(before)
    watched.agent.is_exporting = True
    watched.after()
    assert len(own(watched.after(), "first")) == PART


def test_a_third_user_gets_an_equal_part_too(place: Path) -> None:
    programs = [Program(shared(place), f"of{n}", 1000 + n) for n in range(3)]
    watched = Watched(place, programs)
    for number in range(3):
        for _ in range(5):
            for one in programs[: number + 1]:
                one.run(*range(400))
            watched.after()
    found = watched.found
    for one in programs:
        assert OWN_LIMIT // 4 <= len(own(found, one.service)) <= OWN_LIMIT // 4 + 2


def test_processes_of_one_service_give_up_the_same_series(place: Path) -> None:
    first = [Program(shared(place), "first", 1001) for _ in range(3)]
    late = Program(place, "late", 1002)
    watched = Watched(place, [*first, late])
    for one in first:
        one.run(*range(400))
    watched.after()
    late.run(*range(400))
    for _ in range(5):
        watched.after()
        for one in (*first, late):
            one.run(*range(0, 400, 3))
    found = watched.found
    first[0].end()
    found = watched.after()
    assert {len(own(found, name)) for name in ("first", "late")} <= {PART, PART + 1}


def test_the_next_agent_counts_each_row_where_the_last_one_did(place: Path) -> None:
    first, late = Program(shared(place), "first", 1001), Program(place, "late", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    watched.after()
    late.run(*range(400))
    for turn in range(6):
        watched.agent.restart()
        assert watched.agent.host.goes_on
        watched.after()
        late.run(turn)
        watched.after()
        first.run(*range(turn, 400))
        late.run(*range(0, 400, turn + 1))
    found = watched.found
    assert {len(own(found, name)) for name in ("first", "late")} <= {PART, PART + 1}
    late.end()
    watched.agent.restart()
    after = watched.after()
    assert after.processes == tuple(one for one in after.processes if one.is_alive)
    watched.agent.restart()
    watched.after()
    state = decode((place / "agent.state").read_bytes())
    assert [len(files) for files in state.moved.values()] == [1]


def test_rows_without_a_series_keep_to_other_over_a_restart(place: Path) -> None:
    """Though there is room when the next agent starts."""
    first = Program(place, "first", 0)
    ended = [Program(place, f"ended{n}", 0) for n in range(20)]
    watched = Watched(place, [first, *ended])
    for one in ended:
        one.run(*range(8))
    watched.after()
    first.run(*range(100))
    watched.after()
    for one in ended:
        one.end()
    watched.after()
    before = own(watched.after(200), "first")
    watched.agent.restart()
    first.run(*range(100))
    found = watched.after()
    assert set(own(found, "first")) >= set(before)


def test_a_series_that_another_user_counts_under_too_becomes_theirs(place: Path) -> None:
    first, late = Program(shared(place), "same", 1001), Program(place, "same", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    named = own(watched.after(), "same")
    used = [int(op[2:]) for op in [*named][:20]]
    late.run(*used, *range(400, 600))
    for _ in range(5):
        watched.after()
        late.run(*used)
        first.run(*range(400))
    found = watched.found
    assert set(own(found, "same")) >= {f"op{n}" for n in used}


def test_a_user_that_comes_and_goes_makes_the_others_lose_nothing_more(place: Path) -> None:
    first, late = Program(shared(place), "first", 1001), Program(place, "late", 1002)
    watched = Watched(place, [first, late])
    first.run(*range(400))
    watched.after()
    late.run(*range(400))
    for _ in range(4):
        first.run(*range(400))
        watched.after()
        late.run(0)
    kept = set(own(watched.after(), "first"))
    late.end()
    for _ in range(4):
        first.run(*range(400))
        watched.after(200)
    found = watched.found
    assert set(own(found, "first")) >= kept


def test_parts() -> None:
    a, b = Owner(1, "a"), Owner(2, "b")
    assert targets({a: 80, b: 5}, {a: 50, b: 90}, 90, 80) == {a: 30, b: 30}
    assert targets({a: 80, b: 5}, {a: 50, b: 10}, 90, 80) == {a: 60, b: 15}
    assert targets({a: 30, b: 30}, {a: 50, b: 50}, 90, 80) == {}
    assert targets({a: 60, b: 15}, {a: 50}, 90, 80) == {}
    assert targets({a: 80}, {a: 50}, 90, 80) == {}
    assert targets({}, {}, 90, 80) == {}
    c = Owner(1, "c")
    assert targets({a: 70, c: 10}, {c: 50}, 90, 80) == {a: 40, c: 40}
    assert targets({a: 40, c: 40}, {c: 50}, 90, 80) == {}
    assert filled({1: 5, 2: 100, 3: 7}, 30) == {1: 5, 3: 7, 2: 18}
    assert filled({1: 5}, -3) == {1: 0}


def test_a_series_that_leaves_gets_no_new_process() -> None:
    table = SeriesTable(LIMIT)
    key = SeriesKey("service", "op", "forward", ())
    number = table.number(key, 1)
    table.leave([number], 5)
    other = table.number(key, 1)
    assert table.keys[other] == SeriesKey("service", "other", "other", ())
    table.remove(number)
    assert table.number(key, 1) == number
    assert table.keys[number] == key
