"""The data for the agent's live page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from opscope.host.host import Host
from opscope.host.snapshot import Process
from opscope.processes.inventory import Unobserved
from opscope.server.history import History
from opscope.server.live import CONTENT_TYPES, Live, file
from tests.segments.segment_writer import Range, SegmentWriter

ADD = Range("numpy::add", 1e-3, 100, self_s=1e-3)


class Looking:
    """A page in use, with its own clock."""

    def __init__(self, place: Path) -> None:
        self.now = 0.0
        self.passes = 0
        self.writer = SegmentWriter(dropped_count=3)
        self.writer.note("program", "train.py")
        self.writer.note("bridge.numpy", "attached")
        self.place = place
        self.host = Host([str(place)], consume=False, clock_ns=lambda: round(self.now * 1e9))
        self.live = Live(self.collect, self.others, lambda: self.now)

    def collect(self) -> Any:
        self.passes += 1
        return self.host.collect()

    @staticmethod
    def others(observed: Sequence[Process]) -> list[Unobserved]:
        assert len(observed) == 1
        return [Unobserved(7, "root", "pip", "pip: deny list", "denied")]

    def work(self, one: Range = ADD) -> None:
        self.writer.add([one]).write(self.place)

    def look(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.live.answer())
        return found


def test_the_first_answer_shows_everything_and_the_next_the_increase(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    page.work()
    assert page.look()["about"].startswith("since the start")
    page.now = 2.0
    page.work(Range("numpy::add", 1e-3, 50, self_s=1e-3))
    seen = page.look()
    (row,) = seen["operators"]
    assert seen["about"].startswith("in the last 2.0 s")
    assert (row["operator"], row["framework"]) == ("numpy::add", "numpy")
    assert row["calls_per_s"] == pytest.approx(25.0)
    assert seen["busy"] == pytest.approx(0.025)
    assert (seen["samples"], seen["dropped"]) == (50, 3)


def test_requests_in_quick_succession_share_a_pass(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    page.work()
    assert page.look() == page.look()
    assert page.passes == 1
    page.now = 1.5
    page.look()
    assert page.passes == 2


def test_an_old_sample_is_not_used_for_current_rates(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    page.work()
    page.look()
    page.now = 100.0
    assert page.look()["about"].startswith("since the start")


def test_processes_and_those_that_are_not_observed_are_listed(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    page.work()
    seen = page.look()
    (process,) = seen["processes"]
    assert (process["program"], process["bridges"]) == ("train.py", ["numpy"])
    assert seen["process_count"] == 1
    assert seen["others"] == [{"pid": 7, "user": "root", "program": "pip", "why": "pip: deny list"}]


def test_unknown_values_are_null(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    page.work(Range("numpy::add", 1e-3, 100))
    seen = page.look()
    assert seen["operators"][0]["self_share"] is None
    assert seen["busy"] is None


def test_the_page_needs_nothing_from_elsewhere() -> None:
    for name in CONTENT_TYPES:
        text = file(name).decode()

        assert "http" not in text
        assert "innerHTML" not in text


def test_the_span_is_ten_seconds_for_any_frequency_of_requests(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    page.work()
    for second in range(0, 40, 2):
        page.now = float(second)
        page.look()
    page.now = 40.0
    assert page.look()["about"].startswith("in the last 10.0 s")


def points_of(past: History) -> list[dict[str, Any]]:
    body = past.answer().body
    assert isinstance(body, bytes)
    found: list[dict[str, Any]] = json.loads(body)
    return found


def test_history_of_the_last_hour_has_one_point_in_20_seconds(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    past = History(lambda: page.now)
    for second in range(0, 4000, 4):
        page.now = float(second)
        page.work()
        past.note(page.collect())
    points = [one for one in points_of(past) if one["age_s"] <= 3600]
    assert len(points) == 180
    assert points[0]["age_s"] == pytest.approx(3600, abs=21)
    assert points[-1]["age_s"] < 20
    (row,) = points[-1]["operators"]
    assert (row["operator"], row["calls_per_s"]) == ("numpy::add", pytest.approx(25.0))
    assert row["threads"] == pytest.approx(0.025)
    assert points[-1]["by"]["framework"][0][:2] == ["numpy", pytest.approx(0.025)]


def test_older_history_is_coarser_and_has_all_that_ran_since_the_start(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    past = History(lambda: page.now)
    passes, every_s = 500, 360
    for number in range(passes):
        page.now = float(every_s * number)
        page.work()
        past.note(page.collect())
    points = points_of(past)
    ages = [one["age_s"] for one in points]
    assert ages == sorted(ages, reverse=True)
    assert ages[0] == every_s * (passes - 1) - 21_600, "the first one has the first six hours"
    assert len(points) < 300
    # Each covers the time since the one before: together they have every call.
    since = [every_s * (passes - 1), *ages]
    calls = [one["operators"][0]["calls_per_s"] for one in points]
    seen = sum(rate * (a - b) for rate, a, b in zip(calls, since, ages, strict=False))
    assert seen == pytest.approx(100 * (passes - 1))


def test_history_sums_operators_beyond_the_largest(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    past = History(lambda: page.now)
    for second in (0.0, 20.0):
        page.now = second
        for number in range(30):
            page.writer.add([Range(f"user::{number:02}", 1e-3, number + 1, self_s=1e-3)])
        page.writer.write(page.place)
        past.note(page.collect())
    (point,) = points_of(past)
    *named, others = point["operators"]
    assert [row["operator"] for row in named][:2] == ["user::29", "user::28"]
    assert others["operator"] == "others"
    busy = sum(row["threads"] for row in point["operators"])
    assert busy == pytest.approx(30 * 31 / 2 * 1e-3 / 20)


def test_an_operator_has_parts_by_service_and_phase(tmp_path: Path) -> None:
    page = Looking(tmp_path)
    page.work()
    page.look()
    page.now = 10.0
    page.work(Range("numpy::add", 1e-3, 40, self_s=1e-3, phase=2))
    (row,) = page.look()["operators"]
    (part,) = row["parts"]
    assert (part["service"], part["calls_per_s"]) == ("train.py", pytest.approx(4.0))
    assert part["threads"] == pytest.approx(0.004)
